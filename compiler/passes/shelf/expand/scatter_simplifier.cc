// Scatters in one form: a matrix of index vectors, update windows of the operand's full rank behind one batch
// dimension.
#include <numeric>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/shelf/expand/indexed_form.h"

namespace kiln {
namespace {

Ints WindowDims(const Instruction* i) {
  Ints window(static_cast<size_t>(i->operand(0)->shape().rank()));
  std::iota(window.begin(), window.end(), 1);
  return window;
}

bool Simple(const Instruction* i) {
  const Shape& indices = i->operand(i->operand_count() / 2)->shape();
  return indices.rank() == 2 && *i->attrs().index_vector_dim == 1 &&
         i->attrs().inserted_window_dims.value_or(Ints()).empty() &&
         i->attrs().input_batching_dims.value_or(Ints()).empty() &&
         i->attrs().update_window_dims.value_or(Ints()) == WindowDims(i);
}

}  // namespace

absl::StatusOr<bool> ScatterSimplifier(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return i->Is(Opcode::Scatter) && !Simple(i); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Instruction* plain = WithoutBatching(i);
        const int64_t n = plain->operand_count() / 2;
        std::vector<Instruction*> operands = plain->operands();
        operands[static_cast<size_t>(n)] = IndexRows(plain->operand(n), *plain->attrs().index_vector_dim).get();
        for (int64_t k = n + 1; k < plain->operand_count(); ++k)
          operands[static_cast<size_t>(k)] = UpdateRows(plain, plain->operand(k)).get();
        Instruction* out = i->parent()->AddClone(plain, i->shape(), operands);
        out->mutable_attrs().index_vector_dim = 1;
        out->mutable_attrs().inserted_window_dims = Ints();
        out->mutable_attrs().update_window_dims = WindowDims(plain);
        if (plain != i) i->parent()->Remove(plain);
        return out;
      });
}

}  // namespace kiln
