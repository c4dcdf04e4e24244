// Short-hand for building HLO expressions over one computation: shapes are inferred, constants are broadcast.
//
// Used by the importer's CHLO decompositions and by expander passes. An Expr is a handle; operators add instructions.
#pragma once

#include <functional>
#include <optional>

#include "compiler/hlo/instruction.h"

namespace kiln {

class Expr {
 public:
  Expr(Instruction* i) : i_(i) {}  // NOLINT: handles convert freely
  Instruction* get() const { return i_; }
  Computation* computation() const { return i_->parent(); }
  const Shape& shape() const { return i_->shape(); }
  PrimitiveType type() const { return i_->shape().type(); }
  // A constant of this expression's shape and type.
  Expr Like(double value) const;

 private:
  Instruction* i_;
};

Expr Unary(Opcode op, Expr x);
Expr Binary(Opcode op, Expr a, Expr b);
Expr ConvertTo(PrimitiveType t, Expr x);
Expr CompareExpr(Direction direction, Expr a, Expr b);
Expr SelectExpr(Expr pred, Expr a, Expr b);
// `scalar` to the extents of `dims` (no dimension mapped), or along `mapped` dimensions.
Expr BroadcastTo(Expr x, const Ints& dims, const Ints& mapped = {});
Expr ReshapeTo(Expr x, const Ints& dims);
Expr TransposeBy(Expr x, const Ints& permutation);
Expr IotaOf(Computation* c, PrimitiveType t, const Ints& dims, int64_t dim);
Expr SliceOf(Expr x, const Ints& start, const Ints& limit);
Expr ConcatOf(const std::vector<Expr>& parts, int64_t dim);
// `sizes` of `x` from scalar starts, one for each dimension.
Expr DynamicSliceOf(Expr x, const std::vector<Expr>& starts, const Ints& sizes);
// `x` with `update` written at scalar starts.
Expr UpdateOf(Expr x, Expr update, const std::vector<Expr>& starts);
// A scalar integer constant in `c`.
Expr IntegerIn(Computation* c, PrimitiveType t, int64_t value);
// The computation (a, b) -> op(a, b) over scalars.
Computation* ScalarFunction(Module* m, Opcode op, PrimitiveType t);
Expr ReduceOf(Expr x, Expr init, const Ints& dims, Computation* function);
// The product over one contracting dimension of each side, `batch` leading dimensions of both held alike.
Expr DotOf(Expr a, Expr b, int64_t batch, int64_t a_contracting, int64_t b_contracting);
// `steps` times: values = body(step as s32[], values). The values' shapes stay.
std::vector<Expr> LoopOf(Computation* c, int64_t steps, const std::vector<Expr>& init,
                         const std::function<std::vector<Expr>(Expr step, const std::vector<Expr>& values)>& body);
// Element `k` of a tuple.
Expr PartOf(Expr tuple, int64_t k);
// The number that every element of `i` is, where its constant is a float's and that is known.
std::optional<double> FloatSplat(const Instruction* i);
// A tuple of several values, or the one.
Instruction* TupleOf(const std::vector<Expr>& values);

// Horner's scheme, highest coefficient first.
Expr Polynomial(Expr x, const std::vector<double>& coefficients);

inline Expr operator+(Expr a, Expr b) { return Binary(Opcode::Add, a, b); }
inline Expr operator-(Expr a, Expr b) { return Binary(Opcode::Subtract, a, b); }
inline Expr operator*(Expr a, Expr b) { return Binary(Opcode::Multiply, a, b); }
inline Expr operator/(Expr a, Expr b) { return Binary(Opcode::Divide, a, b); }
inline Expr operator-(Expr a) { return Unary(Opcode::Negate, a); }
inline Expr operator+(Expr a, double b) { return a + a.Like(b); }
inline Expr operator-(Expr a, double b) { return a - a.Like(b); }
inline Expr operator-(double a, Expr b) { return b.Like(a) - b; }
inline Expr operator*(Expr a, double b) { return a * a.Like(b); }
inline Expr operator/(Expr a, double b) { return a / a.Like(b); }
inline Expr operator/(double a, Expr b) { return b.Like(a) / b; }
inline Expr operator<(Expr a, Expr b) { return CompareExpr(Direction::LT, a, b); }
inline Expr operator<(Expr a, double b) { return a < a.Like(b); }
inline Expr operator<=(Expr a, double b) { return CompareExpr(Direction::LE, a, a.Like(b)); }
inline Expr operator>(Expr a, double b) { return CompareExpr(Direction::GT, a, a.Like(b)); }
inline Expr operator>=(Expr a, double b) { return CompareExpr(Direction::GE, a, a.Like(b)); }
inline Expr operator==(Expr a, Expr b) { return CompareExpr(Direction::EQ, a, b); }
inline Expr operator==(Expr a, double b) { return a == a.Like(b); }
inline Expr operator&(Expr a, Expr b) { return Binary(Opcode::And, a, b); }
inline Expr operator|(Expr a, Expr b) { return Binary(Opcode::Or, a, b); }

}  // namespace kiln
