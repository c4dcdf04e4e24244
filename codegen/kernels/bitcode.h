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
extern const unsigned char kGraphsBitcode[];
extern const size_t kGraphsBitcodeSize;
extern const unsigned char kArraysBitcode[];
extern const size_t kArraysBitcodeSize;
extern const unsigned char kCublasBitcode[];
extern const size_t kCublasBitcodeSize;
extern const unsigned char kTuneBitcode[];
extern const size_t kTuneBitcodeSize;
extern const unsigned char kTuneMainBitcode[];
extern const size_t kTuneMainBitcodeSize;
extern const unsigned char kGpuBitcode[];
extern const size_t kGpuBitcodeSize;
extern const unsigned char kWorldBitcode[];
extern const size_t kWorldBitcodeSize;
extern const unsigned char kLapackBitcode[];
extern const size_t kLapackBitcodeSize;
extern const unsigned char kPoolBitcode[];
extern const size_t kPoolBitcodeSize;

}  // namespace kiln
