// Maps of functions that are one operation, one of their parameters or a constant; scatters of one such update.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/reducer.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

// `function` of arrays of the extents of `i`, element by element; null if it is more than one step.
Instruction* Applied(Instruction* i, const Computation* function, const std::vector<Instruction*>& arrays) {
  const Instruction* root = function->root();
  if (root->shape().type() != i->shape().type() || !root->shape().IsScalar()) return nullptr;
  if (root->Is(Opcode::Parameter)) return arrays[static_cast<size_t>(*root->attrs().parameter_number)];
  if (root->Is(Opcode::Constant))
    return BroadcastTo(i->parent()->AddConstant(root->literal()), i->shape().dims()).get();
  if (!root->IsElementwise() || root->operands().empty() || root->HasSideEffect()) return nullptr;
  std::vector<Instruction*> operands;
  for (const Instruction* o : root->operands()) {
    if (!o->Is(Opcode::Parameter)) return nullptr;
    operands.push_back(arrays[static_cast<size_t>(*o->attrs().parameter_number)]);
  }
  return i->parent()->AddClone(root, Shape::Array(i->shape().type(), i->shape().dims()), operands);
}

Instruction* OfOneStep(Instruction* i) {
  return IsStatic(i) && i->shape().IsArray() ? Applied(i, *i->attrs().to_apply, i->operands()) : nullptr;
}

// Without an index there is one update, of the whole array.
Instruction* OfWholeUpdate(Instruction* i) {
  if (!IsStatic(i) || i->operand_count() != 3 || i->operand(1)->shape().ElementCount() != 0) return nullptr;
  const Ints& dims = i->shape().dims();
  const int64_t vector = *i->attrs().index_vector_dim;
  const Shape& indices = i->operand(1)->shape();
  if (indices.rank() != 1 || vector != 0 || i->operand(2)->shape().dims() != dims) return nullptr;
  return Applied(i, *i->attrs().to_apply, {i->operand(0), i->operand(2)});
}

const Rule kRules[] = {
    {"map-of-one-step",
     {Opcode::Map},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] map(q, p), dimensions={0,1}, to_apply=sum",
     "twice { a = $T[] parameter(0)\n b = $T[] copy(a)\n ROOT c = $T[] copy(b) }\n"
     "ENTRY e { p = $T[4,6] parameter(0)\n ROOT r = $T[4,6] map(p), dimensions={0,1}, to_apply=twice }",
     OfOneStep},
    {"map-of-parameter",
     {Opcode::Map},
     kAllTypes,
     Numerics::Exact,
     "second { a = $T[] parameter(0)\n ROOT b = $T[] parameter(1) }\n"
     "ENTRY e { p = $T[4,6] parameter(0)\n q = $T[4,6] parameter(1)\n"
     " ROOT r = $T[4,6] map(p, q), dimensions={0,1}, to_apply=second }",
     "twice { a = $T[] parameter(0)\n b = $T[] copy(a)\n ROOT c = $T[] copy(b) }\n"
     "ENTRY e { p = $T[4,6] parameter(0)\n ROOT r = $T[4,6] map(p), dimensions={0,1}, to_apply=twice }",
     OfOneStep},
    {"map-of-constant",
     {Opcode::Map},
     kAllTypes,
     Numerics::Exact,
     "one { a = $T[] parameter(0)\n ROOT b = $T[] constant(1) }\n"
     "ENTRY e { p = $T[4,6] parameter(0)\n ROOT r = $T[4,6] map(p), dimensions={0,1}, to_apply=one }",
     "twice { a = $T[] parameter(0)\n b = $T[] copy(a)\n ROOT c = $T[] copy(b) }\n"
     "ENTRY e { p = $T[4,6] parameter(0)\n ROOT r = $T[4,6] map(p), dimensions={0,1}, to_apply=twice }",
     OfOneStep},
    {"scatter-of-whole-update",
     {Opcode::Scatter},
     kAllTypes,
     Numerics::Exact,
     "i = s32[0] constant({})\n ROOT r = $T[4,6] scatter(p, i, q), update_window_dims={0,1}, inserted_window_dims={},"
     " scatter_dims_to_operand_dims={}, index_vector_dim=0, to_apply=sum",
     "i = s32[1] constant({0})\n ROOT r = $T[4,6] scatter(p, i, q), update_window_dims={0,1}, inserted_window_dims={},"
     " scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=sum",
     OfWholeUpdate},
};

}  // namespace

absl::Span<const Rule> MapRules() { return kRules; }

}  // namespace kiln
