#include "codegen/gpu/library_call.h"

#include <cstring>

#include "compiler/hlo/library_calls.h"
#include "compiler/hlo/tuning.h"
#include "runtime_min/gpu/abi.h"

namespace kiln::gpu {
namespace {

int64_t Bits(double v) {
  int64_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits;
}

int64_t Number(PrimitiveType t) { return InfoOf(t).proto; }

absl::StatusOr<RoutineCall> Gemm(const Instruction* call, bool tf32) {
  ASSIGN_OR_RETURN(GemmConfig g, GemmConfigOf(call));
  const Shape &a = call->operand(0)->shape(), &b = call->operand(1)->shape(), &o = call->shape();
  for (const Shape* s : {&a, &b, &o})
    if (!s->HasDefaultLayout())
      return ErrorAt(call, "products take row-major arrays", absl::StatusCode::kUnimplemented);
  const int64_t batch_rank = o.rank() - 2, m = o.dim(batch_rank), n = o.dim(batch_rank + 1);
  int64_t batch = 1;
  for (int64_t d = 0; d < batch_rank; ++d) batch *= o.dim(d);
  const bool a_first = g.lhs_contracting[0] == batch_rank, b_last = g.rhs_contracting[0] == batch_rank + 1;
  const int64_t k = a.dim(a.rank() - (a_first ? 2 : 1));
  const int64_t epilogue = (g.HasBias() ? 1 : 0) + (g.HasRelu() ? 2 : 0) + (g.HasGelu() ? 4 : 0);
  return RoutineCall{KILN_GPU_GEMM,
                     {Number(a.type()), Number(o.type()), batch, m, n, k, a_first, b_last, g.lhs_broadcast ? 0 : m * k,
                      g.rhs_broadcast ? 0 : n * k, Bits(g.alpha), Bits(g.beta), epilogue, Number(b.type()),
                      IsCallTo(call, kGemmF8Target), tf32 && a.type() == PrimitiveType::F32 && !g.precise}};
}

}  // namespace

LibraryAlgorithm ChosenLibraryAlgorithm(const Instruction* call, const std::string& target,
                                        const LibraryAlgorithms* known) {
  LibraryAlgorithm out;
  out.number = ChosenAlgorithm(call, target);
  if (!known || out.number < 0) return out;
  const auto it = known->find({target, TuningKey(call), out.number});
  return it == known->end() ? out : it->second;
}

int64_t LibraryCandidates(const Instruction* call) {
  constexpr int64_t kProducts = 16;  // that cublas.c asks for
  return IsCallTo(call, kGemmTarget) ? kProducts : 0;
}

absl::StatusOr<RoutineCall> RoutineOf(const Instruction* call, bool tf32) {
  if (IsGemmCall(call)) return Gemm(call, tf32);
  return ErrorAt(call, "the runtime has no routine of that name", absl::StatusCode::kUnimplemented);
}

}  // namespace kiln::gpu
