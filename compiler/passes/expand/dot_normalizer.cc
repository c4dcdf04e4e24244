// Dots that contract nothing, or have no free dimension on either side, get one of extent 1 in its place: behind it
// every dot multiplies matrices.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/dot_form.h"

namespace kiln {
namespace {

bool IsWanted(const Instruction* i) {
  if (!IsPlainDot(i)) return false;
  const DotSide l = SideOf(i, 0), r = SideOf(i, 1);
  return l.contracting.empty() || (l.free.empty() && r.free.empty());
}

absl::StatusOr<Instruction*> Normalized(Instruction* i) {
  DotSide sides[2] = {SideOf(i, 0), SideOf(i, 1)};
  const bool contracts = !sides[0].contracting.empty();
  std::vector<Expr> operands;
  for (int64_t k = 0; k < 2; ++k) {
    Ints dims = i->operand(k)->shape().dims();
    const auto added = static_cast<int64_t>(dims.size());
    dims.push_back(1);
    (contracts ? sides[k].free : sides[k].contracting).push_back(added);
    operands.push_back(ReshapeTo(i->operand(k), dims));
  }
  const Expr dot = DotLike(i, operands[0], sides[0], operands[1], sides[1]);
  return contracts ? ReshapeTo(dot, i->shape().dims()).get() : dot.get();
}

}  // namespace

absl::StatusOr<bool> DotNormalizer(Module& m, PassContext& ctx) { return ExpandEach(m, ctx, IsWanted, Normalized); }

}  // namespace kiln
