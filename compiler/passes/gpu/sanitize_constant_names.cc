// Constants become symbols of PTX: their names get letters, digits and underscores only, and stay unique.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> SanitizeConstantNames(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Constant)) continue;
      std::string name = i->name();
      std::replace_if(
          name.begin(), name.end(), [](char ch) { return !absl::ascii_isalnum(ch) && ch != '_'; }, '_');
      if (name == i->name() || !ctx.Take()) continue;
      i->Rename(name);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
