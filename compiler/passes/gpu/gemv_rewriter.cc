// Products with a vector get a matrix of one column or row, the form that matrix kernels take.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

int64_t Batch(const Instruction* i) { return static_cast<int64_t>(i->attrs().lhs_batch_dims.value_or(Ints()).size()); }
bool Vector(const Instruction* i, int64_t k) { return i->operand(k)->shape().rank() == Batch(i) + 1; }

}  // namespace

absl::StatusOr<bool> GemvRewriter(Module& m, PassContext& ctx) {
  const auto wanted = [](const Instruction* i) {
    if (!i->Is(Opcode::Dot) || i->attrs().sparsity || i->shape().HasDynamic() || !i->attrs().lhs_contracting_dims ||
        i->attrs().lhs_contracting_dims->size() != 1)
      return false;
    return Vector(i, 0) != Vector(i, 1);  // of two vectors nothing is gained
  };
  return ExpandEach(m, ctx, wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    const int64_t k = Vector(i, 0) ? 0 : 1;
    Ints dims = i->operand(k)->shape().dims(), out = i->shape().dims();
    dims.push_back(1);
    if (k == 1)
      out.push_back(1);
    else
      out.insert(out.begin() + Batch(i), 1);
    std::vector<Instruction*> operands = i->operands();
    operands[static_cast<size_t>(k)] = ReshapeTo(i->operand(k), dims).get();
    Instruction* dot = i->parent()->AddClone(i, Shape::Array(i->shape().type(), out), operands);
    return ReshapeTo(dot, i->shape().dims()).get();
  });
}

}  // namespace kiln
