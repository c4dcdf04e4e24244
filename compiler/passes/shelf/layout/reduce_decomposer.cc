// A reduce whose result's layout is not its operand's without the reduced dimensions gives that one, and a copy makes
// the layout that was asked for.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

Layout Natural(const Instruction* i) {
  const Ints& gone = *i->attrs().dimensions;
  const auto is_gone = [&](int64_t d) { return std::find(gone.begin(), gone.end(), d) != gone.end(); };
  Layout out;
  for (int64_t d : i->operand(0)->shape().LayoutOrDefault().minor_to_major) {
    if (is_gone(d)) continue;
    out.minor_to_major.push_back(d - std::count_if(gone.begin(), gone.end(), [&](int64_t g) { return g < d; }));
  }
  return out;
}

}  // namespace

absl::StatusOr<bool> ReduceDecomposer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return i->Is(Opcode::Reduce) && i->shape().IsArray() && i->shape().layout() &&
               i->shape().layout()->minor_to_major != Natural(i).minor_to_major;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Shape natural = i->shape();
        natural.set_layout(Natural(i));
        return i->parent()->Add(Opcode::Copy, i->shape(), {i->parent()->AddClone(i, natural, i->operands())});
      });
}

}  // namespace kiln
