// A loop whose results an update alone reads, and which reads the updated array around each element, joins the update:
// one kernel overwrites the array row by row and keeps the few old rows that others still read (row_stencil.h). Without
// that, new values wait in an array of their own until the last old one was read.
//
// Rows around the ends of blocks are copied by a kernel before it, so that blocks are independent and threads share
// them. Behind all other fusions, which take a fusion for what its root is.
#include "compiler/analysis/row_stencil.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/plan/alias.h"

namespace kiln {
namespace {

bool IsPlainLoop(const Instruction* i) {
  return i->Is(Opcode::Fusion) && i->attrs().fusion_kind == FusionKind::kLoop && !i->attrs().backend_config &&
         i->shape().IsArray() && i->control_predecessors().empty() && i->control_successors().empty();
}

struct Match {
  Instruction *array, *values;
  RowStencil stencil;
};

std::optional<Match> MatchOf(const Instruction* update) {
  if (!IsPlainLoop(update)) return std::nullopt;
  const Instruction* root = RootOf(update);
  if (!root->Is(Opcode::DynamicUpdateSlice) || !root->operand(0)->Is(Opcode::Parameter) ||
      !root->operand(1)->Is(Opcode::Parameter))
    return std::nullopt;
  const int64_t k = *root->operand(0)->attrs().parameter_number;
  Instruction *array = update->operand(k), *values = update->operand(*root->operand(1)->attrs().parameter_number);
  if (!IsPlainLoop(values) || values->users().size() != 1 || values->IsRoot()) return std::nullopt;
  const int64_t read = values->OperandIndex(array);
  if (read < 0) return std::nullopt;
  const Computation* f = *values->attrs().calls;
  const auto stencil = RowStencilOf(root, f->root(), f->parameter(read));
  if (!stencil) return std::nullopt;
  return Match{array, values, *stencil};
}

Instruction* EdgesOf(Instruction* array, const RowStencil& s) {
  Computation* c = array->parent();
  Shape shape = array->shape();
  shape.mutable_dims()[0] = s.blocks - 1;
  std::vector<Expr> rows;
  for (int64_t q = 0; q < s.before + s.after; ++q) {
    Instruction* slice = c->Add(Opcode::Slice, shape, {array});
    std::vector<SliceDim> dims;
    for (int64_t d : array->shape().dims()) dims.push_back({0, d, 1});
    const int64_t first = s.first + s.block - s.before + q;
    dims[0] = {first, first + (s.blocks - 2) * s.block + 1, s.block};
    slice->mutable_attrs().slice = dims;
    rows.emplace_back(slice);
  }
  if (rows.size() == 1) return WrapInFusion(rows[0].get());
  Instruction* edges = ConcatOf(rows, 0).get();
  edges->mutable_shape().SetDefaultLayouts();
  edges = WrapInFusion(edges);
  for (const Expr& slice : rows) {
    edges = FuseInto(slice.get(), edges);
    c->Remove(slice.get());
  }
  return edges;
}

}  // namespace

absl::StatusOr<bool> CpuRowStencilFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* update : c->PostOrder()) {
      const std::optional<Match> match = MatchOf(update);
      if (!match || !ctx.Take()) continue;
      Instruction* fusion = FuseInto(match->values, update);
      c->Remove(match->values);
      fusion->mutable_attrs().fusion_kind = FusionKind::kCustom;
      fusion->mutable_attrs().backend_config =
          std::string("{\"fusion_backend_config\":{\"kind\":\"") + kRowsInPlace + "\"}}";
      if (match->stencil.Edges()) {
        Instruction* edges = EdgesOf(match->array, match->stencil);
        (*fusion->attrs().calls)->AddParameter(fusion->operand_count(), edges->shape(), "edges");
        fusion->AppendOperand(edges);
      }
      changed = true;
    }
  return changed;
}

}  // namespace kiln
