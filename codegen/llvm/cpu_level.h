// CPU levels: the machines that code is made for. No LLVM header is read here, so that plans of kernels can be made,
// and tested, without it.
#pragma once

#include <string>

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
  bool amx;  // tile products of 8-bit integers and bf16
};
// "v2", "v3", "v4" of x86-64, "amx" (v4 with tile products), or "native" for this machine. Fails naming the ones that
// exist.
absl::StatusOr<CpuLevel> FindCpuLevel(absl::string_view name);

}  // namespace kiln
