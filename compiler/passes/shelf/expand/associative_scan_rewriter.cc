// A scan said to be associative whose step is one operation of carry and element, by blocks instead of one element
// after the other.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/cumulative.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// step(x, carry) -> (s, s) with s = op(x, carry) and an identity element `init` is known to be.
bool OneOperation(const Computation* f, const Instruction* init) {
  const Instruction* r = f->root();
  if (f->parameters().size() != 2 || !r->Is(Opcode::Tuple) || r->operand_count() != 2 || r->operand(0) != r->operand(1))
    return false;
  const Instruction* s = r->operand(0);
  if (s->operand_count() != 2 || !s->operand(0)->Is(Opcode::Parameter) || !s->operand(1)->Is(Opcode::Parameter) ||
      s->operand(0) == s->operand(1))
    return false;
  while (init->Is(Opcode::Broadcast)) init = init->operand(0);
  if (!init->Is(Opcode::Constant)) return false;
  return (s->Is(Opcode::Add) && init->literal().IsAll(0)) || (s->Is(Opcode::Multiply) && init->literal().IsAll(1));
}

}  // namespace

absl::StatusOr<bool> AssociativeScanRewriter(Module& m, PassContext& ctx) {
  ASSIGN_OR_RETURN(const bool changed,
                   ExpandEach(
                       m, ctx,
                       [](Instruction* i) {
                         return i->Is(Opcode::Scan) && i->operand_count() == 2 &&
                                i->attrs().num_carries.value_or(0) == 1 && i->attrs().is_associative &&
                                *i->attrs().is_associative && !i->attrs().is_reverse.value_or(false) &&
                                OneOperation(*i->attrs().to_apply, i->operand(1)) &&
                                i->operand(0)->shape().dim(*i->attrs().scan_dimension) > 0;
                       },
                       [&](Instruction* i) -> absl::StatusOr<Instruction*> {
                         const int64_t dim = *i->attrs().scan_dimension;
                         const Opcode op = (*i->attrs().to_apply)->root()->operand(0)->opcode();
                         const PrimitiveType t = i->operand(0)->shape().type();
                         Expr init = i->parent()->AddConstant(Literal::Of(t, op == Opcode::Add ? 0 : 1));
                         Expr all = Cumulate(i->operand(0), init, ScalarFunction(&m, op, t), dim);
                         const Ints dims = all.shape().dims();
                         Ints from(dims.size(), 0);
                         from[dim] = dims[dim] - 1;
                         return TupleOf({all, ReshapeTo(SliceOf(all, from, dims), i->operand(1)->shape().dims())});
                       }));
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
