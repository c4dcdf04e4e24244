// Sorts of lines of at most one element, or of equal elements.
#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

Instruction* Unsorted(Instruction* i) {
  if (i->shape().IsArray()) return i->operand(0);
  return i->parent()->Add(Opcode::Tuple, i->shape(), i->operands());
}

Instruction* OfOneElement(Instruction* i) {
  const Shape& x = i->operand(0)->shape();
  const int64_t dim = i->attrs().dimensions && !i->attrs().dimensions->empty() ? (*i->attrs().dimensions)[0] : 0;
  const bool moves = x.rank() > 0 && x.dim(dim) > 1 && x.ElementCount() > 0;
  return moves ? nullptr : Unsorted(i);
}

Instruction* OfEqualElements(Instruction* i) {
  for (const Instruction* x : i->operands())
    if (!x->Is(Opcode::Broadcast) || !x->operand(0)->shape().IsScalar()) return nullptr;
  return Unsorted(i);
}

constexpr const char* kSort =
    "before { a = $T[] parameter(0)\n b = $T[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { p = $T[4,6] parameter(0)\n ROOT r = $T[4,6] sort(p), dimensions={1}, to_apply=before }";

const Rule kRules[] = {
    {"sort-one",
     {Opcode::Sort},
     kReal | kTuples,
     Numerics::Exact,
     "before { a = $T[] parameter(0)\n b = $T[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=LT }\n"
     "ENTRY e { p = $T[4,1] parameter(0)\n ROOT r = $T[4,1] sort(p), dimensions={1}, to_apply=before }",
     kSort,
     OfOneElement},
    {"sort-equal",
     {Opcode::Sort},
     kReal | kTuples,
     Numerics::Exact,
     "before { a = $T[] parameter(0)\n b = $T[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=LT }\n"
     "ENTRY e { s = $T[] parameter(0)\n p = $T[4,6] broadcast(s), dimensions={}\n"
     " ROOT r = $T[4,6] sort(p), dimensions={1}, to_apply=before }",
     kSort,
     OfEqualElements},
};

}  // namespace

absl::Span<const Rule> SortRules() { return kRules; }

}  // namespace kiln
