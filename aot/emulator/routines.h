// Library routines in plain loops, as the emulator runs them.
#pragma once

#include <cstdint>

#include "runtime_min/gpu/abi.h"

namespace kiln {

// Returns 0, or 1 for a routine or type that it has not.
int32_t EmulateRoutine(const kiln_gpu_call& call, void* const* buffers);

}  // namespace kiln
