// LLVM bitcode of the kernel library and the runtime, embedded when kiln is built.
#pragma once

#include <cstddef>

namespace kiln {

extern const unsigned char kMathBitcode[];
extern const size_t kMathBitcodeSize;
extern const unsigned char kAlgorithmsBitcode[];
extern const size_t kAlgorithmsBitcodeSize;
extern const unsigned char kDispatchBitcode[];
extern const size_t kDispatchBitcodeSize;
extern const unsigned char kParallelBitcode[];
extern const size_t kParallelBitcodeSize;
extern const unsigned char kBoundsBitcode[];
extern const size_t kBoundsBitcodeSize;
extern const unsigned char kGpuArraysBitcode[];
extern const size_t kGpuArraysBitcodeSize;
extern const unsigned char kGpuConditionsBitcode[];
extern const size_t kGpuConditionsBitcodeSize;
extern const unsigned char kGpuCreateBitcode[];
extern const size_t kGpuCreateBitcodeSize;
extern const unsigned char kGpuCublasBitcode[];
extern const size_t kGpuCublasBitcodeSize;
extern const unsigned char kGpuCublasLibraryBitcode[];
extern const size_t kGpuCublasLibraryBitcodeSize;
extern const unsigned char kGpuDriverBitcode[];
extern const size_t kGpuDriverBitcodeSize;
extern const unsigned char kGpuGraphsBitcode[];
extern const size_t kGpuGraphsBitcodeSize;
extern const unsigned char kGpuImagesBitcode[];
extern const size_t kGpuImagesBitcodeSize;
extern const unsigned char kGpuProductsBitcode[];
extern const size_t kGpuProductsBitcodeSize;
extern const unsigned char kGpuRunBitcode[];
extern const size_t kGpuRunBitcodeSize;
extern const unsigned char kGpuTuneBitcode[];
extern const size_t kGpuTuneBitcodeSize;
extern const unsigned char kGpuTuneMainBitcode[];
extern const size_t kGpuTuneMainBitcodeSize;
extern const unsigned char kGpuTurnsBitcode[];
extern const size_t kGpuTurnsBitcodeSize;
extern const unsigned char kWorldBitcode[];
extern const size_t kWorldBitcodeSize;
extern const unsigned char kLapackBitcode[];
extern const size_t kLapackBitcodeSize;
extern const unsigned char kPoolBitcode[];
extern const size_t kPoolBitcodeSize;

}  // namespace kiln
