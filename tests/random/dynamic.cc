// Random programs on an array with a bounded dynamic dimension: it gets a size, passes through operations, loops,
// choices and tuples that keep or change the size, and ends as static values.
#include "tests/random/growth.h"

namespace kiln {
namespace {

Expr WithDynamic(Instruction* i, int64_t d) {
  i->mutable_shape().set_dynamic(d, true);
  return i;
}

int64_t DynamicOf(const Shape& s) {
  for (int64_t d = 0; d < s.rank(); ++d)
    if (s.is_dynamic(d)) return d;
  return -1;
}

Expr Doubled(Growth& g, Expr y) {
  const Opcode op = Growth::Number(y) ? Opcode::Maximum : Opcode::And;
  Instruction* i =
      y.computation()->Add(g.Chance(50) && Growth::Number(y) ? Opcode::Add : op, y.shape(), {y.get(), y.get()});
  return i;
}

// A tuple that carries `y` and a number through a loop that doubles it.
Expr ThroughLoop(Growth& g, Computation* c, Expr y) {
  Instruction* init = TupleOf({IntegerIn(c, PrimitiveType::S32, 0), y});
  Computation* again = g.module->AddComputation("again");
  Expr s = again->AddParameter(0, init->shape(), "state");
  again->set_root(
      CompareExpr(Direction::LT, PartOf(s, 0), IntegerIn(again, PrimitiveType::S32, g.Between(0, 2))).get());
  Computation* body = g.module->AddComputation("body");
  Expr t = body->AddParameter(0, init->shape(), "state");
  Expr next = g.Chance(70) ? Doubled(g, PartOf(t, 1)) : PartOf(t, 1);
  body->set_root(body->Add(Opcode::Tuple, init->shape(), {(PartOf(t, 0) + 1).get(), next.get()}));
  Instruction* loop = c->Add(Opcode::While, init->shape(), {init});
  loop->mutable_attrs().condition = again;
  loop->mutable_attrs().body = body;
  return PartOf(loop, 1);
}

Expr ThroughChoice(Growth& g, Computation* c, Expr y) {
  std::vector<Instruction*> operands = {g.Fit(c, PrimitiveType::Pred, {}).get()};
  std::vector<Computation*> bodies;
  for (int k = 0; k < 2; ++k) {
    operands.push_back(TupleOf({y, y}));
    Computation* branch = g.module->AddComputation("branch");
    Expr given = branch->AddParameter(0, operands.back()->shape(), "given");
    Expr part = PartOf(given, g.Between(0, 1));
    branch->set_root(branch->Add(Opcode::Tuple, Shape::Tuple({y.shape()}), {(k == 0 ? Doubled(g, part) : part).get()}));
    bodies.push_back(branch);
  }
  Instruction* i = c->Add(Opcode::Conditional, Shape::Tuple({y.shape()}), operands);
  i->mutable_attrs().true_computation = bodies[0];
  i->mutable_attrs().false_computation = bodies[1];
  return PartOf(i, 0);
}

std::vector<Instruction*> WithStarts(Growth& g, Computation* c, std::vector<Instruction*> operands, int64_t rank) {
  for (int64_t k = 0; k < rank; ++k) operands.push_back(g.Index(c).get());
  return operands;
}

// The array, or a part of it of static extents, written into it at any place.
Expr Updated(Growth& g, Computation* c, Expr y) {
  const Shape& s = y.shape();
  Expr update = y;
  if (g.Chance(50)) {
    Ints part;
    for (int64_t extent : s.dims()) part.push_back(g.Between(1, extent));
    update = g.Fit(c, y.type(), part);
  }
  return c->Add(Opcode::DynamicUpdateSlice, s, WithStarts(g, c, {y.get(), update.get()}, s.rank()));
}

// All that there is along the dynamic dimension, a part along the others.
Expr Sliced(Growth& g, Computation* c, Expr y) {
  Shape part = y.shape();
  for (int64_t k = 0; k < part.rank(); ++k)
    if (!part.is_dynamic(k)) part.mutable_dims()[k] = g.Between(1, part.dim(k));
  Instruction* i = c->Add(Opcode::DynamicSlice, part, WithStarts(g, c, {y.get()}, part.rank()));
  i->mutable_attrs().dynamic_slice_sizes = part.dims();
  return i;
}

// Rows of another dimension, gathered or added to; the dynamic dimension is whole in each window.
Expr Indexed(Growth& g, Computation* c, Expr y, bool gathers) {
  const Shape s = y.shape();
  const int64_t d = DynamicOf(s), row = (d + 1) % s.rank(), count = g.Between(1, 4);
  Ints windows;
  for (int64_t k = 1; k < s.rank(); ++k) windows.push_back(k);
  Shape rows = s;
  for (int64_t k = row; k > 0; --k) {
    rows.mutable_dims()[k] = s.dim(k - 1);
    rows.set_dynamic(k, s.is_dynamic(k - 1));
  }
  rows.mutable_dims()[0] = count;
  rows.set_dynamic(0, false);
  if (s.rank() < 2 || s.dim(row) == 0 || rows.ElementCount() > g.most) return y;
  Expr indices = g.Fit(c, PrimitiveType::S32, {count});
  Ints sizes = s.dims();
  sizes[row] = 1;
  Instruction* gather = c->Add(Opcode::Gather, rows, {y.get(), indices.get()});
  gather->mutable_attrs().offset_dims = windows;
  gather->mutable_attrs().collapsed_slice_dims = gather->mutable_attrs().start_index_map = Ints{row};
  gather->mutable_attrs().index_vector_dim = 1;
  gather->mutable_attrs().slice_sizes = sizes;
  if (gathers || !Growth::Number(y)) return gather;
  Instruction* i = c->Add(Opcode::Scatter, s, {y.get(), g.Fit(c, PrimitiveType::S32, {count}).get(), gather});
  i->mutable_attrs().update_window_dims = windows;
  i->mutable_attrs().inserted_window_dims = i->mutable_attrs().scatter_dims_to_operand_dims = Ints{row};
  i->mutable_attrs().index_vector_dim = 1;
  i->mutable_attrs().to_apply = ScalarFunction(g.module, Opcode::Maximum, y.type());
  return i;
}

Expr Change(Growth& g, Computation* c, Expr y) {
  const Shape s = y.shape();
  const int64_t d = DynamicOf(s);
  switch (g.Pick(13)) {
    case 0:
      return Doubled(g, y);
    case 1: {
      Ints order(s.rank());
      for (int64_t k = 0; k < s.rank(); ++k) order[k] = (k + 1) % s.rank();
      return WithDynamic(TransposeBy(y, order).get(), (d + s.rank() - 1) % s.rank());
    }
    case 2: {
      Instruction* i = c->Add(Opcode::Reverse, s, {y.get()});
      i->mutable_attrs().dimensions = Ints{g.Between(0, s.rank() - 1)};
      return i;
    }
    case 3: {
      if (!Growth::Number(y)) return y;
      Computation* order = g.module->AddComputation("order");
      Expr a = order->AddParameter(0, Shape::Scalar(y.type()), "a"),
           b = order->AddParameter(1, Shape::Scalar(y.type()), "b");
      order->set_root(CompareExpr(Direction::LT, a, b).get());
      Instruction* i = c->Add(Opcode::Sort, s, {y.get()});
      i->mutable_attrs().dimensions = Ints{g.Between(0, s.rank() - 1)};
      i->mutable_attrs().to_apply = order;
      return i;
    }
    case 4: {
      if (2 * s.ElementCount() > g.most) return y;
      Shape joined = s;
      joined.mutable_dims()[d] *= 2;
      Instruction* i = c->Add(Opcode::Concatenate, joined, {y.get(), y.get()});
      i->mutable_attrs().dimensions = Ints{d};
      return i;
    }
    case 5: {
      attr::Padding padding(s.rank());
      padding[d] = {g.Between(0, 2), g.Between(0, 2), g.Between(0, 1)};
      Shape wide = s;
      wide.mutable_dims()[d] +=
          padding[d].low + padding[d].high + std::max<int64_t>(s.dim(d) - 1, 0) * padding[d].interior;
      Instruction* i = c->Add(Opcode::Pad, wide, {y.get(), g.Fit(c, y.type(), {}).get()});
      i->mutable_attrs().padding = padding;
      return i;
    }
    case 6:
      return ThroughLoop(g, c, y);
    case 7:
      return ThroughChoice(g, c, y);
    case 8:
      return Updated(g, c, y);
    case 9:
      return Sliced(g, c, y);
    case 10:
      return Indexed(g, c, y, true);
    case 11:
      return Indexed(g, c, y, false);
    default: {
      Instruction* tuple = TupleOf({y, IntegerIn(c, PrimitiveType::S32, 1)});
      return PartOf(c->Add(Opcode::OptimizationBarrier, tuple->shape(), {tuple}), 0);
    }
  }
}

std::optional<Expr> Dynamic(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0 || x.shape().ElementCount() == 0 || x.shape().rank() > 3) return std::nullopt;
  const int64_t d = g.Between(0, x.shape().rank() - 1), bound = x.shape().dim(d);
  Expr index = g.Index(c);
  Expr size = c->Add(Opcode::Clamp, index.shape(),
                     {index.Like(0).get(), index.get(), index.Like(static_cast<double>(bound)).get()});
  Instruction* set =
      c->Add(Opcode::SetDimensionSize, Shape::Array(x.type(), x.shape().dims()), {g.Tame(x).get(), size.get()});
  set->mutable_attrs().dimensions = Ints{d};
  Expr y = WithDynamic(set, d);
  const int64_t changes = g.Between(0, 4);
  for (int64_t k = 0; k < changes; ++k) y = Change(g, c, y);
  const int64_t last = DynamicOf(y.shape());
  if (g.Chance(20)) {
    Instruction* i = c->Add(Opcode::GetDimensionSize, Shape::Scalar(PrimitiveType::S32), {y.get()});
    i->mutable_attrs().dimensions = Ints{last};
    return i;
  }
  const Opcode op = g.Reducer(x.type());
  Expr init = c->AddConstant(Literal::Of(x.type(), Growth::Neutral(op, x.type())));
  return g.Tame(ReduceOf(y, init, {last}, ScalarFunction(g.module, op, x.type())));
}

}  // namespace

std::vector<Maker> DynamicMakers() { return {{12, Dynamic}}; }

}  // namespace kiln
