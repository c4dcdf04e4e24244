// Which matrix factorisations have kernels of their own.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// f32 and f64 go to the library's kernels; other types are expanded.
inline bool HasLinalgKernel(PrimitiveType t) { return t == PrimitiveType::F32 || t == PrimitiveType::F64; }

}  // namespace kiln
