// Cumulative reduce-windows over n elements, n * n steps as written, by blocks of 16: cumulate inside each block,
// cumulate the blocks' totals (again by blocks, until one is left), and combine. Other windows over vectors become
// windows over matrices of one column, for kernels that have only these.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/cumulative.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

Shape AsColumn(const Shape& s) { return Shape::Array(s.type(), {s.dim(0), 1}); }

bool IsOverVectors(const Instruction* i) {
  return i->Is(Opcode::ReduceWindow) && i->operand(0)->shape().rank() == 1 && !i->operand(0)->shape().HasDynamic();
}

// A window over vectors as one over columns.
Instruction* OverColumns(Instruction* i) {
  Computation* c = i->parent();
  std::vector<Instruction*> operands = i->operands();
  for (size_t k = 0; k < operands.size() / 2; ++k)
    operands[k] = ReshapeTo(operands[k], {operands[k]->shape().dim(0), 1}).get();
  std::vector<Shape> columns;
  for (const Shape& s : i->shape().IsTuple() ? i->shape().tuple() : std::vector<Shape>{i->shape()})
    columns.push_back(AsColumn(s));
  Instruction* out = c->AddClone(i, i->shape().IsTuple() ? Shape::Tuple(columns) : columns[0], operands);
  attr::Win window = i->attrs().window.value_or(attr::Win(1));
  window.resize(2);
  out->mutable_attrs().window = window;
  if (!i->shape().IsTuple()) return ReshapeTo(out, i->shape().dims()).get();
  std::vector<Instruction*> parts;
  for (size_t k = 0; k < columns.size(); ++k)
    parts.push_back(ReshapeTo(PartOf(out, static_cast<int64_t>(k)), {columns[k].dim(0)}).get());
  return c->Add(Opcode::Tuple, i->shape(), parts);
}

}  // namespace

absl::StatusOr<bool> ReduceWindowRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return CumulativeDim(i) >= 0 || IsOverVectors(i); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        if (CumulativeDim(i) < 0) return OverColumns(i);
        return Cumulate(i->operand(0), i->operand(1), *i->attrs().to_apply, CumulativeDim(i)).get();
      });
}

}  // namespace kiln
