// cholesky and triangular-solve of narrow floats in f32: kernels compute in f32 and f64, and in complex numbers of
// them.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool IsNarrow(Instruction* i) {
  if (!i->Is(Opcode::Cholesky) && !i->Is(Opcode::TriangularSolve)) return false;
  const PrimitiveType t = i->shape().type();
  return IsFloat(t) && t != PrimitiveType::F32 && t != PrimitiveType::F64;
}

Instruction* Widen(Instruction* i) {
  std::vector<Instruction*> operands;
  for (Instruction* o : i->operands()) operands.push_back(ConvertTo(PrimitiveType::F32, Expr(o)).get());
  Instruction* wide = i->parent()->Add(i->opcode(), Shape::Array(PrimitiveType::F32, i->shape().dims()), operands);
  wide->mutable_attrs() = i->attrs();
  return ConvertTo(i->shape().type(), wide).get();
}

}  // namespace

absl::StatusOr<bool> NarrowLinalgUpcaster(Module& m, PassContext& ctx) { return ExpandEach(m, ctx, IsNarrow, Widen); }

}  // namespace kiln
