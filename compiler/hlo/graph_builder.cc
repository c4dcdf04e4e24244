#include "compiler/hlo/graph_builder.h"

#include <algorithm>

namespace kiln {

Expr BroadcastTo(Expr x, const Ints& dims, const Ints& mapped) {
  const bool moves_nothing = std::is_sorted(mapped.begin(), mapped.end());
  if (x.shape().dims() == dims && static_cast<int64_t>(mapped.size()) == x.shape().rank() && moves_nothing) return x;
  Instruction* b = x.computation()->Add(Opcode::Broadcast, Shape::Array(x.type(), dims), {x.get()});
  b->mutable_attrs().dimensions = mapped;
  return b;
}

Expr Expr::Like(double value) const {
  Expr c = computation()->AddConstant(Literal::Of(type(), value));
  return shape().rank() == 0 ? c : BroadcastTo(c, shape().dims());
}

Expr Unary(Opcode op, Expr x) {
  Shape s = Shape::Array(x.type(), x.shape().dims());
  if (op == Opcode::IsFinite) s.set_type(PrimitiveType::Pred);
  if (op == Opcode::Abs || op == Opcode::Real || op == Opcode::Imag) s.set_type(ComponentType(x.type()));
  return x.computation()->Add(op, s, {x.get()});
}

Expr Binary(Opcode op, Expr a, Expr b) {
  return a.computation()->Add(op, Shape::Array(a.type(), a.shape().dims()), {a.get(), b.get()});
}

Expr ConvertTo(PrimitiveType t, Expr x) {
  if (x.type() == t) return x;
  return x.computation()->Add(Opcode::Convert, Shape::Array(t, x.shape().dims()), {x.get()});
}

Expr CompareExpr(Direction direction, Expr a, Expr b) {
  Instruction* i =
      a.computation()->Add(Opcode::Compare, Shape::Array(PrimitiveType::Pred, a.shape().dims()), {a.get(), b.get()});
  i->mutable_attrs().direction = direction;
  return i;
}

Expr SelectExpr(Expr pred, Expr a, Expr b) {
  return a.computation()->Add(Opcode::Select, Shape::Array(a.type(), a.shape().dims()), {pred.get(), a.get(), b.get()});
}

Expr ReshapeTo(Expr x, const Ints& dims) {
  if (x.shape().dims() == dims) return x;
  return x.computation()->Add(Opcode::Reshape, Shape::Array(x.type(), dims), {x.get()});
}

Expr TransposeBy(Expr x, const Ints& p) {
  Ints dims;
  bool identity = true;
  for (size_t i = 0; i < p.size(); ++i) {
    dims.push_back(x.shape().dim(p[i]));
    identity = identity && p[i] == static_cast<int64_t>(i);
  }
  if (identity) return x;
  Instruction* t = x.computation()->Add(Opcode::Transpose, Shape::Array(x.type(), dims), {x.get()});
  t->mutable_attrs().dimensions = p;
  return t;
}

Expr IotaOf(Computation* c, PrimitiveType t, const Ints& dims, int64_t dim) {
  Instruction* i = c->Add(Opcode::Iota, Shape::Array(t, dims), {});
  i->mutable_attrs().iota_dimension = dim;
  return i;
}

Expr SliceOf(Expr x, const Ints& start, const Ints& limit) {
  attr::Slices ranges;
  Ints dims;
  for (size_t d = 0; d < start.size(); ++d) {
    ranges.push_back({start[d], limit[d], 1});
    dims.push_back(limit[d] - start[d]);
  }
  if (dims == x.shape().dims()) return x;
  Instruction* i = x.computation()->Add(Opcode::Slice, Shape::Array(x.type(), dims), {x.get()});
  i->mutable_attrs().slice = ranges;
  return i;
}

Expr ConcatOf(const std::vector<Expr>& parts, int64_t dim) {
  if (parts.size() == 1) return parts[0];
  Ints dims = parts[0].shape().dims();
  dims[dim] = 0;
  std::vector<Instruction*> operands;
  for (const Expr& p : parts) {
    dims[dim] += p.shape().dim(dim);
    operands.push_back(p.get());
  }
  Instruction* i = parts[0].computation()->Add(Opcode::Concatenate, Shape::Array(parts[0].type(), dims), operands);
  i->mutable_attrs().dimensions = Ints{dim};
  return i;
}

Expr DynamicSliceOf(Expr x, const std::vector<Expr>& starts, const Ints& sizes) {
  std::vector<Instruction*> operands = {x.get()};
  for (const Expr& s : starts) operands.push_back(s.get());
  Instruction* i = x.computation()->Add(Opcode::DynamicSlice, Shape::Array(x.type(), sizes), operands);
  i->mutable_attrs().dynamic_slice_sizes = sizes;
  return i;
}

Expr UpdateOf(Expr x, Expr update, const std::vector<Expr>& starts) {
  std::vector<Instruction*> operands = {x.get(), update.get()};
  for (const Expr& s : starts) operands.push_back(s.get());
  return x.computation()->Add(Opcode::DynamicUpdateSlice, Shape::Array(x.type(), x.shape().dims()), operands);
}

Expr IntegerIn(Computation* c, PrimitiveType t, int64_t value) { return c->AddConstant(Literal::Int(t, value)); }

Computation* ScalarFunction(Module* m, Opcode op, PrimitiveType t) {
  Computation* f = m->AddComputation(absl::StrCat(TextOf(op), "_", TextOf(t)));
  const Shape s = Shape::Scalar(t);
  Instruction *a = f->AddParameter(0, s, "a"), *b = f->AddParameter(1, s, "b");
  f->set_root(f->Add(op, s, {a, b}));
  return f;
}

Expr ReduceOf(Expr x, Expr init, const Ints& reduced, Computation* function) {
  Ints dims;
  for (int64_t d = 0; d < x.shape().rank(); ++d)
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) dims.push_back(x.shape().dim(d));
  Instruction* r = x.computation()->Add(Opcode::Reduce, Shape::Array(x.type(), dims), {x.get(), init.get()});
  r->mutable_attrs().dimensions = reduced;
  r->mutable_attrs().to_apply = function;
  return r;
}

Expr DotOf(Expr a, Expr b, int64_t batch, int64_t a_contracting, int64_t b_contracting) {
  Ints dims, lead;
  for (int64_t d = 0; d < batch; ++d) {
    dims.push_back(a.shape().dim(d));
    lead.push_back(d);
  }
  for (int64_t d = batch; d < a.shape().rank(); ++d)
    if (d != a_contracting) dims.push_back(a.shape().dim(d));
  for (int64_t d = batch; d < b.shape().rank(); ++d)
    if (d != b_contracting) dims.push_back(b.shape().dim(d));
  Instruction* i = a.computation()->Add(Opcode::Dot, Shape::Array(a.type(), dims), {a.get(), b.get()});
  if (batch) {
    i->mutable_attrs().lhs_batch_dims = lead;
    i->mutable_attrs().rhs_batch_dims = lead;
  }
  i->mutable_attrs().lhs_contracting_dims = Ints{a_contracting};
  i->mutable_attrs().rhs_contracting_dims = Ints{b_contracting};
  return i;
}

Expr PartOf(Expr tuple, int64_t k) {
  Instruction* e =
      tuple.computation()->Add(Opcode::GetTupleElement, tuple.shape().tuple()[static_cast<size_t>(k)], {tuple.get()});
  e->mutable_attrs().tuple_index = k;
  return e;
}

std::optional<double> FloatSplat(const Instruction* i) {
  if (i->Is(Opcode::Broadcast)) return FloatSplat(i->operand(0));
  if (i->Is(Opcode::Convert) && IsFloat(i->operand(0)->shape().type())) return FloatSplat(i->operand(0));
  if (!i->Is(Opcode::Constant) || i->shape().ElementCount() != 1 || !IsFloat(i->shape().type())) return std::nullopt;
  return i->literal().Get(0).re;
}

Instruction* TupleOf(const std::vector<Expr>& values) {
  if (values.size() == 1) return values[0].get();
  std::vector<Shape> shapes;
  std::vector<Instruction*> operands;
  for (const Expr& v : values) {
    shapes.push_back(v.shape());
    operands.push_back(v.get());
  }
  return values[0].computation()->Add(Opcode::Tuple, Shape::Tuple(shapes), operands);
}

std::vector<Expr> LoopOf(Computation* c, int64_t steps, const std::vector<Expr>& init,
                         const std::function<std::vector<Expr>(Expr step, const std::vector<Expr>& values)>& body) {
  Module* m = c->module();
  std::vector<Expr> state = {IntegerIn(c, PrimitiveType::S32, 0)};
  state.insert(state.end(), init.begin(), init.end());
  Instruction* tuple = c->Add(Opcode::Tuple, Shape::Tuple({}), {});
  std::vector<Shape> shapes;
  for (const Expr& e : state) {
    shapes.push_back(e.shape());
    tuple->AppendOperand(e.get());
  }
  tuple->mutable_shape() = Shape::Tuple(shapes);
  auto parts = [](Instruction* t) {
    std::vector<Expr> out;
    for (size_t k = 0; k < t->shape().tuple().size(); ++k) {
      Instruction* g = t->parent()->Add(Opcode::GetTupleElement, t->shape().tuple()[k], {t});
      g->mutable_attrs().tuple_index = static_cast<int64_t>(k);
      out.emplace_back(g);
    }
    return out;
  };
  Computation *cond = m->AddComputation("loop_condition"), *step = m->AddComputation("loop_body");
  Expr at = parts(cond->AddParameter(0, tuple->shape(), "state"))[0];
  cond->set_root((at < IntegerIn(cond, PrimitiveType::S32, steps)).get());
  std::vector<Expr> in = parts(step->AddParameter(0, tuple->shape(), "state"));
  std::vector<Expr> out = body(in[0], std::vector<Expr>(in.begin() + 1, in.end()));
  out.insert(out.begin(), in[0] + 1.0);
  std::vector<Instruction*> operands;
  for (const Expr& e : out) operands.push_back(e.get());
  step->set_root(step->Add(Opcode::Tuple, tuple->shape(), operands));
  Instruction* loop = c->Add(Opcode::While, tuple->shape(), {tuple});
  loop->mutable_attrs().condition = cond;
  loop->mutable_attrs().body = step;
  std::vector<Expr> results = parts(loop);
  results.erase(results.begin());
  return results;
}

Expr Polynomial(Expr x, const std::vector<double>& coefficients) {
  Expr acc = x.Like(coefficients[0]);
  for (size_t i = 1; i < coefficients.size(); ++i) acc = acc * x + coefficients[i];
  return acc;
}

}  // namespace kiln
