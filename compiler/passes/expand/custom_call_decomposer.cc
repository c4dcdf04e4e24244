// Custom calls that front ends and other compilers use as names for operations: annotations pass their operand on,
// TopK, the functions of XLA's builder, those of LAPACK that HLO has too, cuDNN's attention and JAX's product of a
// sparse matrix become what they name. Every other target is the user's own function.
#include <string>

#include "compiler/hlo/annotation.h"
#include "compiler/hlo/attention_call.h"
#include "compiler/hlo/csr_product.h"
#include "compiler/hlo/lapack.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/csr_product.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

enum class Meaning { kNone, kIdentity, kTopK, kUnary, kAtan };

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
  // Values stay where they are: other memories than the arena are the plan's to use.
  static constexpr Known kNote = {"", Meaning::kIdentity, Opcode::Copy};
  if (!i->Is(Opcode::CustomCall) || !i->attrs().custom_call_target) return nullptr;
  if (IsAnnotation(*i)) return &kNote;
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

Instruction* Expand(Instruction* i) {
  const Known& k = *Find(i);
  Computation* c = i->parent();
  switch (k.meaning) {
    case Meaning::kTopK: {
      Instruction* t = c->Add(Opcode::TopK, i->shape(), i->operands());
      t->mutable_attrs().k = i->shape().tuple()[0].dims().back();
      t->mutable_attrs().largest = true;
      return t;
    }
    case Meaning::kUnary:
      return Unary(k.opcode, i->operand(0)).get();
    case Meaning::kAtan: {
      Expr x = i->operand(0);
      return Binary(Opcode::Atan2, x, x.Like(1)).get();
    }
    default:
      return i->operand(0);
  }
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

Instruction* SolveOf(Instruction* i) {
  Instruction* s = i->parent()->Add(Opcode::TriangularSolve, i->shape(), i->operands());
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
Instruction* FactorOf(Instruction* i) {
  Computation* c = i->parent();
  const Shape& s = i->operand(0)->shape();
  Instruction* f = c->Add(Opcode::Cholesky, Shape::Array(s.type(), s.dims()), i->operands());
  f->mutable_attrs().lower = CallAttribute(i, "uplo").value_or('L') == 'L';
  Expr part = IsComplex(s.type()) ? Unary(Opcode::Real, f) : Expr(f);
  Expr bad = ConvertTo(PrimitiveType::S32, CompareExpr(Direction::NE, part, part));
  Expr info = ReduceOf(bad, IntegerIn(c, PrimitiveType::S32, 0), {s.rank() - 2, s.rank() - 1},
                       ScalarFunction(c->module(), Opcode::Maximum, PrimitiveType::S32));
  return c->Add(Opcode::Tuple, i->shape(), {f, info.get()});
}

}  // namespace

absl::StatusOr<bool> CustomCallDecomposer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        const Known* k = Find(i);
        return (k && Fits(i, *k)) || IsSolve(i) || IsFactor(i) || IsCsrProduct(i) || IsAttentionCall(i);
      },
      [](Instruction* i) {
        if (IsSolve(i)) return SolveOf(i);
        if (IsFactor(i)) return FactorOf(i);
        if (IsCsrProduct(i)) return CsrProductOf(i);
        if (IsAttentionCall(i)) return AttentionOf(i, i->parent(), i->operands());
        return Expand(i);
      });
}

}  // namespace kiln
