// Factorisations and triangular solves become calls of cuSOLVER and cuBLAS. A factorisation that fails says so in
// `info`: its matrix is NaN then, as the operation has it.
#include "absl/strings/str_cat.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool IsServed(const Instruction* i) {
  const PrimitiveType t = i->shape().type();
  return (t == PrimitiveType::F32 || t == PrimitiveType::F64 || t == PrimitiveType::C64 || t == PrimitiveType::C128) &&
         i->shape().ElementCount() > 0;
}

const char* Flag(bool v) { return v ? "true" : "false"; }

Instruction* Cholesky(Instruction* i) {
  Computation* c = i->parent();
  const Shape& s = i->shape();
  const Ints batch(s.dims().begin(), s.dims().end() - 2);
  Instruction* call =
      c->Add(Opcode::CustomCall,
             Shape::Tuple({s, Shape::Array(PrimitiveType::U8, {0}), Shape::Array(PrimitiveType::S32, batch)}),
             i->operands(), "cusolver-cholesky");
  call->mutable_attrs().custom_call_target = attr::Str(kCholeskyTarget);
  call->mutable_attrs().backend_config = absl::StrCat("{\"lower\":", Flag(i->attrs().lower.value_or(false)), "}");
  Expr info = PartOf(call, 2);
  Ints dims;
  for (size_t d = 0; d < batch.size(); ++d) dims.push_back(static_cast<int64_t>(d));
  Expr well = BroadcastTo(info == 0.0, s.dims(), dims);
  Expr factor = PartOf(call, 0);
  Literal nan(Shape::Scalar(s.type()));
  Element e;
  e.re = std::numeric_limits<double>::quiet_NaN();
  e.im = IsComplex(s.type()) ? e.re : 0;
  nan.Set(0, e);
  return SelectExpr(well, factor, BroadcastTo(c->AddConstant(nan), s.dims())).get();
}

Instruction* Solve(Instruction* i) {
  const Attributes& a = i->attrs();
  Instruction* call =
      i->parent()->Add(Opcode::CustomCall, Shape::Tuple({i->shape(), Shape::Array(PrimitiveType::U8, {0})}),
                       i->operands(), "cublas-triangular-solve");
  call->mutable_attrs().custom_call_target = attr::Str(kTriangularSolveTarget);
  call->mutable_attrs().backend_config =
      absl::StrCat("{\"left_side\":", Flag(a.left_side.value_or(false)), ",\"lower\":", Flag(a.lower.value_or(false)),
                   ",\"unit_diagonal\":", Flag(a.unit_diagonal.value_or(false)), ",\"transpose_a\":\"",
                   TextOf(a.transpose_a.value_or(TransposeA::NO_TRANSPOSE)), "\"}");
  return PartOf(call, 0).get();
}

}  // namespace

absl::StatusOr<bool> TriangularSolveRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](const Instruction* i) { return i->Is(Opcode::TriangularSolve) && IsServed(i); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> { return Solve(i); });
}

absl::StatusOr<bool> CusolverRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) { return (i->Is(Opcode::Cholesky) || i->Is(Opcode::TriangularSolve)) && IsServed(i); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> { return i->Is(Opcode::Cholesky) ? Cholesky(i) : Solve(i); });
}

}  // namespace kiln
