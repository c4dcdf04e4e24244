// Emitters of dots and convolutions by algorithm, used by EmitDot and EmitConvolution. Each emits what its plan says.
#pragma once

#include "codegen/cpu/convolution_plan.h"
#include "codegen/cpu/dot_plan.h"
#include "codegen/cpu/epilogue.h"
#include "codegen/cpu/kernels.h"
#include "codegen/elemental/library.h"

namespace kiln::cpu {

void EmitPlainDot(Body& body, const DotPlan& plan, const Epilogue& epilogue);
void EmitDotsWithVector(Body& body, const DotPlan& plan, const Epilogue& epilogue);
void EmitMultiplesOfLines(Body& body, const DotPlan& plan, const Epilogue& epilogue);
void EmitDotAsProducts(Body& body, const DotPlan& plan, const Epilogue& epilogue, const Copies& copies);

void EmitDirectConvolution(Body& body, const ConvolutionPlan& plan, const Epilogue& epilogue);
void EmitPointwiseConvolution(Body& body, const ConvolutionPlan& plan, const Epilogue& epilogue);
void EmitConvolutionAsProducts(Body& body, const ConvolutionPlan& plan, const Epilogue& epilogue);

// A position of the input as the window sees it, with padding and holes, made one of the input itself.
struct InputPlace {
  llvm::Value* position;
  llvm::Value* inside;  // whether the input has it, besides what the caller said; null: always
};
InputPlace PlaceInInput(Ir& ir, const WindowDim& window, int64_t extent, llvm::Value* position, llvm::Value* inside);

// Copies `lines` positions of the outermost spatial dimension of `image`, from `first` on, to `slab`: padded, dilated
// and converted as the products read them.
void FillSlab(Ir& ir, const ConvolutionPlan& plan, llvm::Value* image, llvm::Value* slab, llvm::Value* first,
              int64_t lines);

}  // namespace kiln::cpu
