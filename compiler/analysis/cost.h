// Cost analysis: floating-point operations and bytes that a finished module reads and writes.
//
// Loop bodies count once. Bytes are those of each kernel's operands and results; values inside a fusion cost nothing.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

struct Cost {
  int64_t flops = 0;
  int64_t bytes_accessed = 0;
  // Of the flops, those of products of 8-bit numbers, of bf16 and of f16, which machines have instructions for.
  int64_t flops_of_bytes = 0, flops_of_bf16 = 0, flops_of_f16 = 0;
  // What takes longer than an addition, in additions: functions, divisions, comparisons of a sort, steps that wait for
  // each other. Not among the flops.
  int64_t slow = 0;
};

Cost CostOf(const Module& module);
// Of one instruction that runs as a kernel, once.
Cost CostOfKernel(const Instruction* i);

// What one core of a target can do at best, for estimates. Figures of a server's core with vectors of 256 bits.
struct CoreModel {
  double bytes_per_us = 12000;    // from memory
  double flops_per_us = 60000;    // multiply-adds of f32
  double launch_us = 0.02;        // of one kernel
  int64_t cache_bytes = 1 << 20;  // kernels of so few bytes find them in a cache
  double cached_bytes_per_us = 60000;
  double byte_speed = 8, bf16_speed = 2, f16_speed = 1;  // of products of narrow numbers over those of f32
  double slow_speed = 1;                                 // of what is no addition (Cost::slow), over this core's
};
// The longer of moving the bytes and doing the arithmetic.
double EstimatedMicroseconds(const Cost& cost, const CoreModel& core = {});

}  // namespace kiln
