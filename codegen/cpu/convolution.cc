// Kernels of convolutions. convolution_plan.h says which algorithm a convolution gets.
#include "codegen/cpu/contractions.h"
#include "codegen/cpu/kernels.h"

namespace kiln::cpu {

absl::StatusOr<int64_t> EmitConvolution(Body& body, const Epilogue& epilogue) {
  ASSIGN_OR_RETURN(const ConvolutionPlan plan, PlanConvolution(body.ir.level, body.i, static_cast<bool>(epilogue)));
  switch (plan.algorithm) {
    case ConvolutionAlgorithm::kDirect:
      EmitDirectConvolution(body, plan, epilogue);
      break;
    case ConvolutionAlgorithm::kPointwise:
      EmitPointwiseConvolution(body, plan, epilogue);
      break;
    case ConvolutionAlgorithm::kProducts:
      EmitConvolutionAsProducts(body, plan, epilogue);
      break;
  }
  return plan.units;
}

InputPlace PlaceInInput(Ir& ir, const WindowDim& w, int64_t extent, llvm::Value* position, llvm::Value* inside) {
  llvm::IRBuilder<>& b = ir.b;
  auto also = [&](llvm::Value* v) { inside = inside ? b.CreateAnd(inside, v) : v; };
  if (w.lhs_dilate > 1) {
    also(b.CreateICmpSGE(position, ir.I64(0)));
    also(b.CreateICmpEQ(b.CreateSRem(position, ir.I64(w.lhs_dilate)), ir.I64(0)));
    position = b.CreateSDiv(position, ir.I64(w.lhs_dilate));
    also(b.CreateICmpSLT(position, ir.I64(extent)));
  } else if (w.pad_low || w.pad_high) {
    also(b.CreateICmpULT(position, ir.I64(extent)));
  }
  return {position, inside};
}

}  // namespace kiln::cpu
