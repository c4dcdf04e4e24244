// Kernels of dots. dot_plan.h says which algorithm a dot gets.
#include "codegen/cpu/contractions.h"
#include "codegen/cpu/kernels.h"
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

void EmitPlainDot(Body& body, const DotPlan& plan, const Epilogue& epilogue) {
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  const DotShape& s = plan.shape;
  const PrimitiveType t = plan.sum;
  llvm::Value* sum = ir.Alloca(ir.RegType(t), 2, 16);
  auto get = [&]() -> Val {
    Val v{b.CreateLoad(ir.RegType(t), sum)};
    if (IsComplex(t)) v.im = b.CreateLoad(ir.RegType(t), b.CreateGEP(ir.RegType(t), sum, ir.I64(1)));
    return v;
  };
  auto put = [&](const Val& v) {
    b.CreateStore(v.re, sum);
    if (v.im) b.CreateStore(v.im, b.CreateGEP(ir.RegType(t), sum, ir.I64(1)));
  };
  ir.Loop(body.begin, body.end, 1, [&](llvm::Value* g) {
    ir.Loop(ir.I64(0), ir.I64(s.m), 1, [&](llvm::Value* row) {
      ir.Loop(ir.I64(0), ir.I64(s.n), 1, [&](llvm::Value* column) {
        put(ir.Constant(t, Element{}));
        ir.Loop(ir.I64(0), ir.I64(s.k), 1, [&](llvm::Value* q) {
          llvm::Value* ai = ir.Add(ir.Mul(g, s.m * s.k), ir.Add(ir.Mul(row, s.a_m), ir.Mul(q, s.a_k)));
          llvm::Value* bi = ir.Add(ir.Mul(g, s.n * s.k), ir.Add(ir.Mul(q, s.b_k), ir.Mul(column, s.b_n)));
          put(MultiplyAdd(ir, t, get(), ir.Convert(ir.Load(s.a, body.operands[0], ai), s.a, t),
                          ir.Convert(ir.Load(s.b, body.operands[1], bi), s.b, t)));
        });
        Val v = get();
        if (IsFloat(t)) v.re = ir.Round(t, v.re);
        ir.Store(t, v, body.results[0], ir.Add(ir.Mul(g, s.m * s.n), ir.Add(ir.Mul(row, s.n), column)));
      });
    });
    if (epilogue) epilogue({s.n, ir.Mul(g, s.m), ir.I64(s.m), ir.I64(0), ir.I64(s.n)});
  });
}

}  // namespace kiln::cpu
