// Layouts without element sizes, for a target that gives each element a byte, as kiln's CPU code does.
#include "compiler/pass/pass.h"
#include "compiler/passes/shelf/memory/edit_layouts.h"

namespace kiln {

absl::StatusOr<bool> SubByteSizeRemoval(Module& m, PassContext& ctx) {
  return EditModule(m, ctx, [](const Shape&, Layout* l) {
    const size_t at = l->extras.find("E(");
    if (at == std::string::npos) return false;
    l->extras.erase(at, l->extras.find(')', at) - at + 1);
    return true;
  });
}

}  // namespace kiln
