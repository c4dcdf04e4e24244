// Character-level scanner under the text readers: position, errors with line and column, tokens, balanced raw text.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler/base/status.h"

namespace kiln {

class Scanner {
 public:
  Scanner(absl::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  // Skips whitespace and `//` and `/* */` comments.
  void Skip();
  bool AtEnd() {
    Skip();
    return pos_ >= text_.size();
  }
  // Next character after whitespace, or 0 at the end.
  char Peek() {
    Skip();
    return pos_ < text_.size() ? text_[pos_] : 0;
  }
  char PeekRaw(size_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : 0; }
  // Consumes `token` if it comes next.
  bool Eat(absl::string_view token);
  absl::Status Expect(absl::string_view token);
  // Letters, digits and any of `extra`; empty if none is next.
  absl::string_view Word(absl::string_view extra = "_.-");
  absl::string_view PeekWord(absl::string_view extra = "_.-");
  absl::StatusOr<int64_t> Integer();
  // A C-style quoted string, unescaped.
  absl::StatusOr<std::string> Quoted();
  // A word of letters, digits and any of _ . $ -, or a quoted string; empty if neither is next.
  std::string Name();
  // [2,1,4]; false if that is not what comes next.
  bool IntList(std::vector<int64_t>* out);
  // Text up to (not including) the first `,` outside brackets and strings, or a closing bracket of an outer level.
  // Runs of whitespace become one space; comments go.
  absl::StatusOr<std::string> Balanced(absl::string_view stops = ",");

  absl::Status Error(absl::string_view message) const { return ErrorAtPos(pos_, message); }
  absl::Status ErrorAtPos(size_t pos, absl::string_view message) const;
  SourceLoc Loc(size_t pos) const;
  size_t pos() const { return pos_; }
  void set_pos(size_t p) { pos_ = p; }
  absl::string_view text() const { return text_; }
  const std::string& file() const { return file_; }

 private:
  absl::string_view text_;
  std::string file_;
  size_t pos_ = 0;
  // Line numbering is incremental: positions asked for mostly grow.
  mutable size_t loc_pos_ = 0;
  mutable int loc_line_ = 1;
  mutable size_t loc_line_start_ = 0;
};

}  // namespace kiln
