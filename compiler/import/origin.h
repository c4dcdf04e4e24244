// Where an operation or argument of StableHLO comes from: what `loc(...)` says, as HLO's metadata has it.
//
// What: of MLIR's nested locations the name that the front end gave ("jit(f)/layer0/dot_general", "params['w']") and
// the
//   innermost place in the user's sources. Aliases (#loc3) are looked up, each once.
// Guarantees: never fails: what is not a location, is cyclic or nests too deep says nothing.
// Source: MLIR's builtin locations (NameLoc, FileLineColLoc and FileLineColRange, CallSiteLoc, FusedLoc, UnknownLoc).
// Internal to compiler/import.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "compiler/hlo/scanner.h"

namespace kiln {

struct Origin {
  std::string name, file;
  int64_t line = 0;  // 0: no place in a file

  bool empty() const { return name.empty() && file.empty(); }
  // As MLIR writes it: "name"("file":line:0).
  std::string ToString() const;
  // As the attribute of an instruction: {op_name="..." source_file="..." source_line=4}; empty if nothing is known.
  std::string Metadata() const;
};

// What an operation in `callee` that was inlined into `caller` comes from.
Origin CallSite(Origin callee, const Origin& caller);
// What is called `name` and lies where `child` does.
Origin Named(std::string name, Origin child);

class Origins {
 public:
  // `aliases`: "#loc3" to its text; outlives this.
  explicit Origins(const absl::flat_hash_map<std::string, std::string>& aliases) : aliases_(aliases) {}
  // Of the text between the parentheses of loc(...).
  Origin Of(absl::string_view text);

 private:
  Origin Read(Scanner* s, int depth);
  Origin ReadAlias(absl::string_view name, int depth);
  Origin ReadNamed(Scanner* s, int depth);
  Origin ReadFused(Scanner* s, int depth);

  const absl::flat_hash_map<std::string, std::string>& aliases_;
  absl::flat_hash_map<std::string, Origin> known_;
};

}  // namespace kiln
