#include "compiler/import/public_functions.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "compiler/base/status.h"
#include "compiler/import/bytecode.h"
#include "compiler/import/symbols.h"

namespace kiln {
namespace {

absl::StatusOr<mlir::Program> ParseProgram(absl::string_view bytes, const std::string& file) {
  if (absl::StartsWith(bytes, kBytecodeMagic)) return ParseBytecode(bytes, file);
  if (const absl::string_view artifact = ArtifactOfExported(bytes); !artifact.empty())
    return ParseBytecode(artifact, file);
  if (absl::StrContains(bytes, "func.func")) return mlir::Parse(bytes, file);
  return mlir::Program();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> PublicFunctions(absl::string_view bytes, const std::string& file) {
  ASSIGN_OR_RETURN(const mlir::Program program, ParseProgram(bytes, file));
  absl::flat_hash_set<const mlir::Function*> reached;
  for (const mlir::Function& f : program.functions) {
    if (!f.is_public) continue;
    ASSIGN_OR_RETURN(const auto order, mlir::CalleesFirst(program, file, &f));
    for (const mlir::Function* callee : order)
      if (callee != &f) reached.insert(callee);
  }
  std::vector<std::string> out;
  for (const mlir::Function& f : program.functions)
    if ((f.is_public || f.name == "main") && !reached.contains(&f)) out.push_back(f.name);
  return out;
}

}  // namespace kiln
