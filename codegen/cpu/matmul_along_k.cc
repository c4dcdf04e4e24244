#include "codegen/cpu/matmul_along_k.h"

#include <vector>

#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {

llvm::Constant* FirstLanes(Ir& ir, int64_t lanes, int64_t live) {
  std::vector<llvm::Constant*> mask;
  for (int64_t l = 0; l < lanes; ++l) mask.push_back(llvm::ConstantInt::getBool(ir.ctx, l < live));
  return llvm::ConstantVector::get(mask);
}

llvm::Value* MultiplyAddLanes(Ir& ir, llvm::Value* x, llvm::Value* y, llvm::Value* sum) {
  return ir.level.fma ? ir.b.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {x, y, sum})
                      : ir.b.CreateFAdd(sum, ir.b.CreateFMul(x, y));
}

void StoreSumOfLanes(Ir& ir, const MatmulShape& s, llvm::Value* sum, llvm::Value* c, llvm::Value* at) {
  const bool integers = IsIntegral(s.c_type);
  llvm::Value* first = llvm::ConstantFP::get(ir.RegType(s.compute), 0);
  const Val so_far = s.accumulate ? ir.Load(s.c_type, c, at) : Val{};
  if (s.accumulate && !integers) first = ir.Convert(so_far, s.c_type, s.compute).re;
  auto* all = ir.b.CreateFAddReduce(first, sum);
  all->setHasAllowReassoc(true);
  Val result = ir.Convert({all}, s.compute, s.c_type);
  // Only the sum of a block is exact in floats.
  if (s.accumulate && integers) result.re = ir.b.CreateAdd(result.re, so_far.re);
  ir.Store(s.c_type, result, c, at);
}

}  // namespace kiln::cpu
