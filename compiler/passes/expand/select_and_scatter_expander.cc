// select-and-scatter as a reduce-window that finds, for each window, the place of the selected element, and a scatter
// of the sources to those places.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/expand/scalar_body.h"

namespace kiln {
namespace {

using P = PrimitiveType;

// (value, place) x 2 -> the selected pair; a place of -1 stands for nothing yet.
Computation* Selector(Module* m, const Computation* select, P t) {
  Computation* f = m->AddComputation("select_place");
  const Shape value = Shape::Scalar(t), place = Shape::Scalar(P::S64);
  Expr a = f->AddParameter(0, value, "a"), at = f->AddParameter(1, place, "at");
  Expr b = f->AddParameter(2, value, "b"), bt = f->AddParameter(3, place, "bt");
  Expr picked = ApplyScalarBody(select, {a, b})[0];
  Expr first = (bt < 0.0) | ((at >= 0.0) & picked);
  f->set_root(TupleOf({SelectExpr(first, a, b), SelectExpr(first, at, bt)}));
  return f;
}

}  // namespace

absl::StatusOr<bool> SelectAndScatterExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return i->Is(Opcode::SelectAndScatter) && IsScalarBody(*i->attrs().select) &&
               i->operand(1)->shape().ElementCount() > 0;
      },
      [&](Instruction* i) -> absl::StatusOr<Instruction*> {
        Computation* c = i->parent();
        Expr x = i->operand(0), source = i->operand(1), init = ConvertTo(i->shape().type(), i->operand(2));
        const Ints dims = x.shape().dims();
        const int64_t n = x.shape().ElementCount(), sources = source.shape().ElementCount();
        Expr places = ReshapeTo(IotaOf(c, P::S64, {n}, 0), dims);
        const Shape found =
            Shape::Tuple({Shape::Array(x.type(), source.shape().dims()), Shape::Array(P::S64, source.shape().dims())});
        Instruction* window =
            c->Add(Opcode::ReduceWindow, found,
                   {x.get(), places.get(), c->AddConstant(Literal::Of(x.type(), 0)), IntegerIn(c, P::S64, -1).get()});
        window->mutable_attrs().window = i->attrs().window;
        window->mutable_attrs().to_apply = Selector(&m, *i->attrs().select, x.type());
        Instruction* at = c->Add(Opcode::GetTupleElement, found.tuple()[1], {window});
        at->mutable_attrs().tuple_index = 1;
        Instruction* scatter = c->Add(
            Opcode::Scatter, Shape::Array(x.type(), {n}),
            {BroadcastTo(init, {n}).get(), ReshapeTo(at, {sources, 1}).get(), ReshapeTo(source, {sources}).get()});
        Attributes& a = scatter->mutable_attrs();
        a.update_window_dims = Ints();
        a.inserted_window_dims = Ints{0};
        a.scatter_dims_to_operand_dims = Ints{0};
        a.index_vector_dim = 1;
        a.to_apply = i->attrs().scatter;
        return ReshapeTo(scatter, dims).get();
      });
}

}  // namespace kiln
