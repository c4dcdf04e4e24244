// Layouts of 4-bit and 2-bit elements say their size, "E(4)", for a target that packs them.
#include "absl/strings/str_cat.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/shelf/memory/edit_layouts.h"

namespace kiln {

absl::StatusOr<bool> SubByteSizeSet(Module& m, PassContext& ctx) {
  return EditModule(m, ctx, [](const Shape& s, Layout* l) {
    const std::string size = absl::StrCat("E(", BitWidth(s.type()), ")");
    if (l->extras.find("E(") != std::string::npos) return false;
    l->extras += size;
    return true;
  });
}

}  // namespace kiln
