// Long sums of floats are cut into windows of 32, whose sums are added: the error grows with the depth of the tree
// instead of the length. Repeated until no reduced dimension is longer than a window.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

constexpr int64_t kWindow = 32;

bool Wanted(const Instruction* i) {
  if (!i->Is(Opcode::Reduce) || i->operand_count() != 2 || !IsFloat(i->shape().type()) || i->shape().IsTuple())
    return false;
  const Instruction* f = (*i->attrs().to_apply)->root();
  if (!f->Is(Opcode::Add) || i->operand(0)->Is(Opcode::ReduceWindow)) return false;
  const Shape& s = i->operand(0)->shape();
  // A dimension shorter than the window gains nothing, and one that short spoils the others.
  bool longer = false;
  for (int64_t d : *i->attrs().dimensions) {
    if (s.dim(d) < kWindow) return false;
    longer = longer || s.dim(d) > kWindow;
  }
  return longer && !s.HasDynamic();
}

}  // namespace

absl::StatusOr<bool> TreeReductionRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, Wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    Instruction *x = i->operand(0), *init = i->operand(1);
    while (true) {
      attr::Win window(static_cast<size_t>(x->shape().rank()));
      Ints dims = x->shape().dims();
      bool longer = false;
      for (int64_t d : *i->attrs().dimensions) {
        const int64_t n = dims[d];
        if (n <= kWindow) continue;
        longer = true;
        const int64_t blocks = (n + kWindow - 1) / kWindow, missing = blocks * kWindow - n;
        window[d].size = window[d].stride = kWindow;
        window[d].pad_low = missing / 2;  // as "same" padding does
        window[d].pad_high = missing - missing / 2;
        dims[d] = blocks;
      }
      if (!longer) break;
      x = i->parent()->Add(Opcode::ReduceWindow, Shape::Array(i->shape().type(), dims), {x, init});
      x->mutable_attrs().window = std::move(window);
      x->mutable_attrs().to_apply = i->attrs().to_apply;
    }
    return i->parent()->AddClone(i, i->shape(), {x, init});
  });
}

}  // namespace kiln
