// Kernels of dots. dot_plan.h says which algorithm a dot gets.
#include <algorithm>

#include "codegen/cpu/contractions.h"
#include "codegen/cpu/kernels.h"
#include "codegen/cpu/matmul.h"
#include "codegen/elemental/element.h"

namespace kiln::cpu {

absl::StatusOr<int64_t> EmitDot(Body& body, std::optional<PrimitiveType> stored, const Epilogue& epilogue,
                                const Copies& copies) {
  ASSIGN_OR_RETURN(const DotPlan plan, PlanDot(body.ir.level, body.i, stored, copies.count));
  if (copies.count > 1 && plan.algorithm != DotAlgorithm::kProducts)
    return ErrorAt(body.i, "is computed beside others by an algorithm for one", absl::StatusCode::kInternal);
  switch (plan.algorithm) {
    case DotAlgorithm::kPlainLoops:
      EmitPlainDot(body, plan, epilogue);
      break;
    case DotAlgorithm::kDotsWithVector:
      EmitDotsWithVector(body, plan, epilogue);
      break;
    case DotAlgorithm::kMultiplesOfLines:
      EmitMultiplesOfLines(body, plan, epilogue);
      break;
    case DotAlgorithm::kProducts:
      EmitDotAsProducts(body, plan, epilogue, copies);
      break;
  }
  return plan.units * copies.count;
}

// Sums of some results side by side in memory: of those of a column if A's rows lie beside each other, else of a row.
void EmitPlainDot(Body& body, const DotPlan& plan, const Epilogue& epilogue) {
  constexpr int64_t kTogether = 64;
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  const DotShape& s = plan.shape;
  const PrimitiveType t = plan.sum;
  const bool in_columns = s.n == 1 || (s.a_m == 1 && s.b_n != 1);
  const int64_t extent = in_columns ? s.m : s.n, others = in_columns ? s.n : s.m;
  const Pieces pieces = Pieces::Of(extent, std::clamp<int64_t>(extent, 1, kTogether));
  llvm::Type* number = ir.RegType(t);
  llvm::Value* re = ir.Alloca(number, pieces.size, 64);
  llvm::Value* im = IsComplex(t) ? ir.Alloca(number, pieces.size, 64) : nullptr;
  const auto get = [&](llvm::Value* x) -> Val {
    Val v{b.CreateLoad(number, b.CreateInBoundsGEP(number, re, x))};
    if (im) v.im = b.CreateLoad(number, b.CreateInBoundsGEP(number, im, x));
    return v;
  };
  const auto put = [&](llvm::Value* x, const Val& v) {
    b.CreateStore(v.re, b.CreateInBoundsGEP(number, re, x));
    if (im) b.CreateStore(v.im, b.CreateInBoundsGEP(number, im, x));
  };
  const auto sum_up = [&](llvm::Value* g, llvm::Value* other, llvm::Value* first, int64_t count) {
    const auto each =
        [&](const std::function<void(llvm::Value * sum, llvm::Value * row, llvm::Value * column)>& visit) {
          ir.Loop(
              ir.I64(0), ir.I64(count), 1,
              [&](llvm::Value* x) {
                llvm::Value* place = ir.Add(first, x);
                visit(x, in_columns ? place : other, in_columns ? other : place);
              },
              true);
        };
    each([&](llvm::Value* sum, llvm::Value*, llvm::Value*) { put(sum, ir.Constant(t, Element{})); });
    ir.Loop(ir.I64(0), ir.I64(s.k), 1, [&](llvm::Value* q) {
      each([&](llvm::Value* sum, llvm::Value* row, llvm::Value* column) {
        llvm::Value* ai = ir.Add(ir.Mul(g, s.m * s.k), ir.Add(ir.Mul(row, s.a_m), ir.Mul(q, s.a_k)));
        llvm::Value* bi = ir.Add(ir.Mul(g, s.n * s.k), ir.Add(ir.Mul(q, s.b_k), ir.Mul(column, s.b_n)));
        put(sum, MultiplyAdd(ir, t, get(sum), ir.Convert(ir.Load(s.a, body.operands[0], ai), s.a, t),
                             ir.Convert(ir.Load(s.b, body.operands[1], bi), s.b, t)));
      });
    });
    each([&](llvm::Value* sum, llvm::Value* row, llvm::Value* column) {
      Val v = get(sum);
      if (IsFloat(t)) v.re = ir.Round(t, v.re);
      ir.Store(t, v, body.results[0], ir.Add(ir.Mul(g, s.m * s.n), ir.Add(ir.Mul(row, s.n), column)));
    });
  };
  ir.Loop(body.begin, body.end, 1, [&](llvm::Value* g) {
    ir.Loop(ir.I64(0), ir.I64(others), 1, [&](llvm::Value* other) {
      ir.Loop(ir.I64(0), ir.I64(pieces.count), 1, [&](llvm::Value* k) {
        VisitPiece(ir, pieces, k, [&](llvm::Value* first, int64_t count) { sum_up(g, other, first, count); });
      });
    });
    if (epilogue) epilogue({s.n, ir.Mul(g, s.m), ir.I64(s.m), ir.I64(0), ir.I64(s.n)});
  });
}

}  // namespace kiln::cpu
