// A GPU program lowered for NVIDIA's devices.
#pragma once

#include "codegen/gpu/entry.h"

namespace kiln::gpu {

// Makes the functions of grid.h instructions of NVPTX, and the program's kernels entry points.
void LowerToDevice(Ir& ir, const std::vector<Program>& programs);

}  // namespace kiln::gpu
