// NVIDIA GPUs as the compiler sees them: one text file each under gpus/, built into the program.
//
// What: capabilities that decide which code is generated, and sizes and speeds that the cost model uses. No device is
//   ever asked: a program compiles the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln {

// The most elements that the topk kernel selects: a block sorts them in shared memory.
inline constexpr int64_t kMostTopK = 1024;

struct GpuTarget {
  std::string name;          // "sm_90"
  std::string device;        // that the figures are of
  int major = 0, minor = 0;  // compute capability
  int64_t memory_bytes = 0;
  int64_t multiprocessors = 0;
  int64_t shared_bytes_per_block = 0, shared_bytes_per_multiprocessor = 0;
  int64_t threads_per_multiprocessor = 0, registers_per_multiprocessor = 0;
  int64_t bandwidth_bytes_per_second = 0, clock_hz = 0, l2_bytes = 0;
  int64_t f32_flops_per_cycle = 0, f16_tensor_flops_per_cycle = 0;  // of one multiprocessor
  bool bf16_tensor_cores = false;
  std::string llvm_cpu, llvm_features;
  // What a compile allows, not the device: products of f32 with factors of TF32, where the program asks for no more
  // than the default precision.
  bool tf32 = false;
};

// All of them, by capability.
const std::vector<GpuTarget>& AllGpuTargets();
// By name; fails naming the ones that exist.
absl::StatusOr<GpuTarget> FindGpuTarget(absl::string_view name);
// Reads one description; `file` is named in errors, with the line.
absl::StatusOr<GpuTarget> ParseGpuTarget(absl::string_view text, const std::string& file);

}  // namespace kiln
