#include "compiler/hlo/named_operations.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/lapack.h"

namespace kiln {
namespace {

enum class Meaning { kTopK, kUnary, kAtan };

struct Known {
  const char* target;
  Meaning meaning;
  Opcode opcode;
};

constexpr Known kKnown[] = {
    {"TopK", Meaning::kTopK, Opcode::TopK},
    {"xla_builder.math.Acos", Meaning::kUnary, Opcode::Acos},
    {"xla_builder.math.Acosh", Meaning::kUnary, Opcode::Acosh},
    {"xla_builder.math.Asin", Meaning::kUnary, Opcode::Asin},
    {"xla_builder.math.Asinh", Meaning::kUnary, Opcode::Asinh},
    {"xla_builder.math.Atan", Meaning::kAtan, Opcode::Atan2},
    {"xla_builder.math.Atanh", Meaning::kUnary, Opcode::Atanh},
    {"xla_builder.math.Cosh", Meaning::kUnary, Opcode::Cosh},
    {"xla_builder.math.Erf", Meaning::kUnary, Opcode::Erf},
    {"xla_builder.math.Sinh", Meaning::kUnary, Opcode::Sinh},
    {"xla_builder.math.Tan", Meaning::kUnary, Opcode::Tan},
};

const Known* Find(const Instruction* i) {
  if (!i->Is(Opcode::CustomCall) || !i->attrs().custom_call_target) return nullptr;
  for (const Known& k : kKnown)
    if (i->attrs().custom_call_target->text == k.target) return &k;
  return nullptr;
}

bool Fits(const Instruction* i, const Known& k) {
  if (i->operand_count() != 1) return false;
  const Shape& in = i->operand(0)->shape();
  if (k.meaning != Meaning::kTopK) return i->shape().Compatible(in);
  if (!in.IsArray() || in.rank() == 0 || !i->shape().IsTuple() || i->shape().tuple().size() != 2) return false;
  const Shape &values = i->shape().tuple()[0], &positions = i->shape().tuple()[1];
  if (!values.IsArray() || values.rank() != in.rank() || values.dims().back() > in.dims().back()) return false;
  Ints dims = in.dims();
  dims.back() = values.dims().back();
  return values.Compatible(Shape::Array(in.type(), dims)) &&
         positions.Compatible(Shape::Array(PrimitiveType::S32, dims));
}

Instruction* KnownOf(const Instruction* call, Meaning meaning, Opcode opcode, Computation* c, Instruction* x) {
  switch (meaning) {
    case Meaning::kTopK: {
      Instruction* t = c->Add(Opcode::TopK, call->shape(), {x});
      t->mutable_attrs().k = call->shape().tuple()[0].dims().back();
      t->mutable_attrs().largest = true;
      return t;
    }
    case Meaning::kUnary:
      return Unary(opcode, x).get();
    case Meaning::kAtan:
      return Binary(Opcode::Atan2, x, Expr(x).Like(1)).get();
  }
  return nullptr;
}

// lapack_<type>trsm_ffi(a, b) and lapack_<type>potrf_ffi(a) are operations of HLO.
bool IsLapackOperation(const Instruction* i, absl::string_view routine, int64_t operands) {
  if (!i->Is(Opcode::CustomCall) || !i->attrs().custom_call_target || i->operand_count() != operands) return false;
  const std::string& t = i->attrs().custom_call_target->text;
  return t.size() > 12 && t.substr(8) == absl::StrCat(routine, "_ffi") && t.compare(0, 7, "lapack_") == 0 &&
         absl::string_view("sdcz").find(t[7]) != absl::string_view::npos;
}

// Square matrices, perhaps many.
bool AreSquare(const Shape& s) { return s.IsArray() && s.rank() >= 2 && s.dim(s.rank() - 1) == s.dim(s.rank() - 2); }

bool IsSolve(const Instruction* i) {
  if (!IsLapackOperation(i, "trsm", 2)) return false;
  const Shape &a = i->operand(0)->shape(), &b = i->operand(1)->shape();
  if (!AreSquare(a) || !b.IsArray() || b.rank() != a.rank() || !i->shape().Compatible(b)) return false;
  const bool left = CallAttribute(i, "side").value_or('L') == 'L';
  Ints dims = b.dims();
  dims[b.rank() - 2] = dims[b.rank() - 1] = b.dim(b.rank() - (left ? 2 : 1));
  return a.Compatible(Shape::Array(b.type(), dims));
}

bool IsFactor(const Instruction* i) {
  if (!IsLapackOperation(i, "potrf", 1) || !i->shape().IsTuple() || i->shape().tuple().size() != 2) return false;
  const Shape& a = i->operand(0)->shape();
  if (!AreSquare(a) || !i->shape().tuple()[0].Compatible(a)) return false;
  return i->shape().tuple()[1].Compatible(Shape::Array(PrimitiveType::S32, Ints(a.dims().begin(), a.dims().end() - 2)));
}

Instruction* SolveOf(const Instruction* i, Computation* c, const std::vector<Instruction*>& operands) {
  Instruction* s = c->Add(Opcode::TriangularSolve, i->shape(), operands);
  const int64_t how = CallAttribute(i, "trans_x").value_or('N');
  s->mutable_attrs().left_side = CallAttribute(i, "side").value_or('L') == 'L';
  s->mutable_attrs().lower = CallAttribute(i, "uplo").value_or('L') == 'L';
  s->mutable_attrs().unit_diagonal = CallAttribute(i, "diag").value_or('N') == 'U';
  s->mutable_attrs().transpose_a = how == 'T'   ? TransposeA::TRANSPOSE
                                   : how == 'C' ? TransposeA::ADJOINT
                                                : TransposeA::NO_TRANSPOSE;
  return s;
}

// (factor, info): info is not 0 where the matrix is not positive definite, which cholesky says by NaN.
Instruction* FactorOf(const Instruction* i, Computation* c, Instruction* matrix) {
  const Shape& s = matrix->shape();
  Instruction* f = c->Add(Opcode::Cholesky, Shape::Array(s.type(), s.dims()), {matrix});
  f->mutable_attrs().lower = CallAttribute(i, "uplo").value_or('L') == 'L';
  Expr part = IsComplex(s.type()) ? Unary(Opcode::Real, f) : Expr(f);
  Expr bad = ConvertTo(PrimitiveType::S32, CompareExpr(Direction::NE, part, part));
  Expr info = ReduceOf(bad, IntegerIn(c, PrimitiveType::S32, 0), {s.rank() - 2, s.rank() - 1},
                       ScalarFunction(c->module(), Opcode::Maximum, PrimitiveType::S32));
  return c->Add(Opcode::Tuple, i->shape(), {f, info.get()});
}

}  // namespace

bool IsNamedOperation(const Instruction* i) {
  const Known* k = Find(i);
  return (k && Fits(i, *k)) || IsSolve(i) || IsFactor(i);
}

Instruction* NamedOperationOf(const Instruction* call, Computation* c, const std::vector<Instruction*>& operands) {
  if (IsSolve(call)) return SolveOf(call, c, operands);
  if (IsFactor(call)) return FactorOf(call, c, operands[0]);
  const Known& k = *Find(call);
  return KnownOf(call, k.meaning, k.opcode, c, operands[0]);
}

}  // namespace kiln
