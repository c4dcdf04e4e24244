#include "compiler/hlo/graph_builder.h"

namespace kiln {

Expr BroadcastTo(Expr x, const Ints& dims, const Ints& mapped) {
  if (x.shape().dims() == dims && static_cast<int64_t>(mapped.size()) == x.shape().rank()) return x;
  Instruction* b = x.computation()->Add(Opcode::Broadcast, Shape::Array(x.type(), dims), {x.get()});
  b->attrs().dimensions = mapped;
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

Expr CompareExpr(const char* direction, Expr a, Expr b) {
  Instruction* i =
      a.computation()->Add(Opcode::Compare, Shape::Array(PrimitiveType::Pred, a.shape().dims()), {a.get(), b.get()});
  i->attrs().direction = direction;
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
  t->attrs().dimensions = p;
  return t;
}

Expr IotaOf(Computation* c, PrimitiveType t, const Ints& dims, int64_t dim) {
  Instruction* i = c->Add(Opcode::Iota, Shape::Array(t, dims), {});
  i->attrs().iota_dimension = dim;
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
  i->attrs().slice = ranges;
  return i;
}

Expr Polynomial(Expr x, const std::vector<double>& coefficients) {
  Expr acc = x.Like(coefficients[0]);
  for (size_t i = 1; i < coefficients.size(); ++i) acc = acc * x + coefficients[i];
  return acc;
}

}  // namespace kiln
