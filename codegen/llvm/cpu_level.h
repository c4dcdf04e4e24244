// CPU levels: the machines that code is made for. No LLVM header is read here, so that plans of kernels can be made,
// and tested, without it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln {

// A CPU level: what LLVM may assume.
struct CpuLevel {
  std::string name;      // "v3"; suffix of symbols
  std::string cpu;       // LLVM's -mcpu
  std::string features;  // LLVM's -mattr additions
  int vector_bytes;      // of one register
  int vector_registers;
  bool f16c;
  bool fma;
  bool dot_bytes;      // sums of products of four 8-bit integers in each lane: VNNI
  bool dot_bf16;       // of two bf16: AVX512-BF16
  bool amx;            // tile products of the same
  bool fp16 = false;   // arithmetic of f16: AVX512-FP16
  int multiplies = 2;  // vectors of floats that are multiplied in a cycle

  // Whether loops become vectors. A thread of a GPU (ptx.h) is one lane, with 255 registers.
  bool HasVectors() const { return vector_registers <= 32; }
};
// "v2", "v3", "v4" of x86-64, "v3dot" (v3 with AVX-VNNI), "v4dot" (v4 with AVX512-VNNI), "v4fp16" (v4dot with
// AVX512-FP16), "v4bf16" (v4dot with AVX512-BF16), "amx" (v4bf16 with tile products), or "native": the best that this
// machine runs and gains by. Fails naming the ones that exist.
absl::StatusOr<CpuLevel> FindCpuLevel(absl::string_view name);

// The levels of an archive whose config names none: all. Of these an archive has only the ones whose instructions its
// program can use.
std::vector<std::string> DefaultCpuLevels();

// The level of x86-64 that `level` adds instructions for products to: "v4" for "v4dot"; "" for itself.
std::string PlainLevelOf(const CpuLevel& level);

// Whether `level` is `below` with instructions for products added.
bool IsBelow(const CpuLevel& below, const CpuLevel& level);

}  // namespace kiln
