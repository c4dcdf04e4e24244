// Cost analysis: floating-point operations and bytes that a finished module reads and writes.
//
// Loop bodies count once. Bytes are those of each kernel's operands and results; values inside a fusion cost nothing.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

struct Cost {
  int64_t flops = 0;
  int64_t bytes_accessed = 0;
};

Cost CostOf(const Module& module);

}  // namespace kiln
