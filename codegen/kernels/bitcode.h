// LLVM bitcode of the kernel library, embedded when kiln is built.
#pragma once

#include <cstddef>

namespace kiln {

extern const unsigned char kMathBitcode[];
extern const size_t kMathBitcodeSize;
// The same for machines that have fused multiply-add.
extern const unsigned char kFusedMathBitcode[];
extern const size_t kFusedMathBitcodeSize;
extern const unsigned char kAlgorithmsBitcode[];
extern const size_t kAlgorithmsBitcodeSize;
extern const unsigned char kLinalgBitcode[];
extern const size_t kLinalgBitcodeSize;

}  // namespace kiln
