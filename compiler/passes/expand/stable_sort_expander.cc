// A stable sort for a target whose sort is not: the places of the elements are sorted along, and break ties.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/expand/scalar_body.h"

namespace kiln {

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
        operands.push_back(IotaOf(c, t, dims, dim).get());
        // less'(a, b) = less(a, b) or (not less(b, a) and place(a) < place(b))
        Computation* less = m.AddComputation("stable_less");
        std::vector<Expr> forward, backward;
        for (size_t k = 0; k < operands.size(); ++k)
          for (int64_t side = 0; side < 2; ++side)
            forward.push_back(less->AddParameter(static_cast<int64_t>(2 * k) + side,
                                                 Shape::Scalar(operands[k]->shape().type()), "p"));
        for (size_t k = 0; k + 1 < operands.size(); ++k) {
          backward.push_back(forward[2 * k + 1]);
          backward.push_back(forward[2 * k]);
        }
        const Computation* own = *i->attrs().to_apply;
        const std::vector<Expr> plain(forward.begin(), forward.end() - 2);
        Expr after = ApplyScalarBody(own, backward)[0], before = ApplyScalarBody(own, plain)[0];
        Expr earlier = forward[forward.size() - 2] < forward.back();
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
