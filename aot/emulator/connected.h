// An emulated device that others are connected with, by what a program's runtime uses on a GPU
// (runtime_min/gpu/nccl/nccl.h) over the library that stands in for NCCL.
#pragma once

#include "aot/emulator/emulator.h"
#include "runtime_min/gpu/nccl/nccl.h"

namespace kiln {

struct Emulator::Devices {
  kiln_nccl nccl = {};
  int device = 0;  // whose address is the stream: work on it is done when it is put there
  const kiln_gpu* table = nullptr;
  // An exchange beside the stream: what its arrays hold once it has been made.
  struct Beside {
    const kiln_gpu_exchange* what = nullptr;  // null: none
    bool ended = false;                       // behind it another began, so that its operands are read no more
    std::vector<void*> buffers;
    std::vector<std::vector<char>> arrays;
  };
  Beside beside[KILN_GPU_MOST_OFFERS];
  static void Check(const Beside& b);
  int32_t Exchange(const kiln_gpu_exchange* what, void* const* buffers);
};

}  // namespace kiln
