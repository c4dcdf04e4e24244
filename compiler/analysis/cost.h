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
// Of one instruction that runs as a kernel, once.
Cost CostOfKernel(const Instruction* i);

// What one core of a target can do at best, for estimates.
struct CoreModel {
  double bytes_per_us = 12000;  // from memory
  double flops_per_us = 60000;  // multiply-adds of f32 in vectors of 256 bits
  double launch_us = 0.02;      // of one kernel
};
// The longer of moving the bytes and doing the arithmetic.
double EstimatedMicroseconds(const Cost& cost, const CoreModel& core = {});

}  // namespace kiln
