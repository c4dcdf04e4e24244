// What the pages of `kiln explain` and `kiln profile` share: style, the script that sorts tables, pieces of HTML.
//
// Guarantees: a page is one file that fetches nothing; without scripts it still shows everything.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace kiln {

std::string Escape(absl::string_view text);
// "4.2 MB".
std::string Bytes(int64_t n);
// Of an opcode or a name: the same colour everywhere.
std::string Colour(absl::string_view name);

// The head of a page, up to its first heading; and its end.
std::string PageBegin(absl::string_view title, absl::string_view command);
std::string PageEnd();

// A table whose columns sort at a click. Cells are HTML; `number` ones are right-aligned and sort by `value`.
struct Column {
  std::string title, hint;
  bool number = false;
};
struct Cell {
  std::string html;
  double value = 0;
};
std::string SortableTable(absl::string_view id, const std::vector<Column>& columns,
                          const std::vector<std::vector<Cell>>& rows);

// What takes the time, by the user's scopes: one box for each, as wide as its time, under the one that it is part of.
struct FlameLeaf {
  std::string path;  // "jit(f)/layer0/dot_general"
  double us;
  std::string detail;  // for the tooltip
};
std::string FlameGraph(const std::vector<FlameLeaf>& leaves);

// The name that a user would know an operation by: its path, or else what it is called here.
std::string UserName(const std::string& op_name, const std::string& instruction);
// "model.py:12", without folders; empty if unknown.
std::string SourceText(const std::string& file, int64_t line);

}  // namespace kiln
