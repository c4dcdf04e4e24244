// A stable sort for a target whose sort is not: the places of the elements are sorted along, and break ties. A sort
// that has them already, as an argsort does, takes its own.
#include <limits>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/expand/scalar_body.h"

namespace kiln {
namespace {

// Whether `i` counts along `dim`, in a type that has all numbers.
bool CountsAlong(const Instruction* i, int64_t dim) {
  if (!i->Is(Opcode::Iota) || i->attrs().iota_dimension.value_or(0) != dim) return false;
  const int64_t extent = i->shape().dim(dim);
  switch (i->shape().type()) {
    case PrimitiveType::S32:
      return extent <= std::numeric_limits<int32_t>::max();
    case PrimitiveType::U32:
      return extent <= std::numeric_limits<uint32_t>::max();
    case PrimitiveType::S64:
    case PrimitiveType::U64:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<bool> StableSortExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return i->Is(Opcode::Sort) && i->attrs().is_stable.value_or(false) && IsScalarBody(*i->attrs().to_apply);
      },
      [&](Instruction* i) -> absl::StatusOr<Instruction*> {
        Computation* c = i->parent();
        const Ints dims = i->operand(0)->shape().dims();
        const int64_t dim = i->attrs().dimensions ? (*i->attrs().dimensions)[0] : static_cast<int64_t>(dims.size()) - 1;
        const PrimitiveType t = dims[dim] > INT32_MAX ? PrimitiveType::S64 : PrimitiveType::S32;
        std::vector<Instruction*> operands = i->operands();
        size_t places = 0;
        while (places < operands.size() && !CountsAlong(operands[places], dim)) ++places;
        if (places == operands.size()) operands.push_back(IotaOf(c, t, dims, dim).get());
        // less'(a, b) = less(a, b) or (not less(b, a) and place(a) < place(b))
        Computation* less = m.AddComputation("stable_less");
        std::vector<Expr> forward, backward;
        for (size_t k = 0; k < operands.size(); ++k)
          for (int64_t side = 0; side < 2; ++side)
            forward.push_back(less->AddParameter(static_cast<int64_t>(2 * k) + side,
                                                 Shape::Scalar(operands[k]->shape().type()), "p"));
        const size_t own_operands = i->operands().size();
        for (size_t k = 0; k < own_operands; ++k) {
          backward.push_back(forward[2 * k + 1]);
          backward.push_back(forward[2 * k]);
        }
        const Computation* own = *i->attrs().to_apply;
        const std::vector<Expr> plain(forward.begin(), forward.begin() + static_cast<int64_t>(2 * own_operands));
        Expr after = ApplyScalarBody(own, backward)[0], before = ApplyScalarBody(own, plain)[0];
        Expr earlier = forward[2 * places] < forward[2 * places + 1];
        less->set_root((before | (Unary(Opcode::Not, after) & earlier)).get());
        std::vector<Shape> shapes;
        for (const Instruction* o : operands) shapes.push_back(o->shape());
        Instruction* sort = c->AddClone(i, Shape::Tuple(shapes), operands);
        sort->mutable_attrs().to_apply = less;
        sort->mutable_attrs().is_stable = false;
        std::vector<Expr> parts;
        for (int64_t k = 0; k < i->operand_count(); ++k) {
          Instruction* e = PartOf(sort, k).get();
          parts.push_back(e);
        }
        return i->shape().IsTuple() ? TupleOf(parts) : parts[0].get();
      });
}

}  // namespace kiln
