// All-gathers go without dimensions of extent 1, the gathered one excepted: what is left may be gathered along its
// major dimension.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// The dimensions that stay.
Ints Kept(const Shape& result, int64_t gathered) {
  Ints out;
  for (int64_t d = 0; d < result.rank(); ++d)
    if (d == gathered || result.dim(d) != 1) out.push_back(d);
  return out;
}

Ints Extents(const Shape& s, const Ints& dims) {
  Ints out;
  for (int64_t d : dims) out.push_back(s.dim(d));
  return out;
}

const Shape& ResultOf(const Instruction* i, int64_t k) {
  return i->shape().IsTuple() ? i->shape().tuple()[k] : i->shape();
}

bool Wanted(const Instruction* i) {
  if (!i->Is(Opcode::AllGather) || i->attrs().constrain_layout.value_or(false) || i->shape().HasDynamic()) return false;
  const int64_t gathered = (*i->attrs().dimensions)[0];
  bool fewer = false;
  std::optional<int64_t> place;
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    const Ints kept = Kept(ResultOf(i, k), gathered);
    const int64_t at = std::find(kept.begin(), kept.end(), gathered) - kept.begin();
    if (place && *place != at) return false;
    place = at;
    fewer = fewer || static_cast<int64_t>(kept.size()) < ResultOf(i, k).rank();
  }
  return fewer;
}

}  // namespace

absl::StatusOr<bool> AllGatherRemoveDegenerateDims(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, Wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    Computation* c = i->parent();
    const int64_t gathered = (*i->attrs().dimensions)[0];
    std::vector<Instruction*> operands;
    std::vector<Shape> shapes;
    int64_t place = 0;
    for (int64_t k = 0; k < i->operand_count(); ++k) {
      const Ints kept = Kept(ResultOf(i, k), gathered);
      place = std::find(kept.begin(), kept.end(), gathered) - kept.begin();
      operands.push_back(ReshapeTo(i->operand(k), Extents(i->operand(k)->shape(), kept)).get());
      shapes.push_back(Shape::Array(ResultOf(i, k).type(), Extents(ResultOf(i, k), kept)));
    }
    Instruction* n = c->AddClone(i, i->shape().IsTuple() ? Shape::Tuple(shapes) : shapes[0], operands);
    n->mutable_attrs().dimensions = Ints{place};
    if (!i->shape().IsTuple()) return ReshapeTo(n, i->shape().dims()).get();
    std::vector<Expr> parts;
    for (int64_t k = 0; k < i->operand_count(); ++k) parts.push_back(ReshapeTo(PartOf(n, k), ResultOf(i, k).dims()));
    return c->Add(Opcode::Tuple, i->shape(), [&] {
      std::vector<Instruction*> out;
      for (Expr p : parts) out.push_back(p.get());
      return out;
    }());
  });
}

}  // namespace kiln
