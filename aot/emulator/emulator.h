// Runs GPU programs on the host, for tests: every thread of a block is a fiber, blocks run one after the other.
//
// What: a kiln_gpu whose kernels are the program's own LLVM IR compiled for the host (codegen/gpu/emulated.h) and whose
//   library routines are plain loops (routines.h).
// Finds: barriers that not all threads of a block reach, shuffles without all lanes, waiting for ever; in checked
//   programs also accesses outside the kernel's arrays, and races: two threads at one byte, one of them writing, with
//   no barrier between. Says which kernel, block and thread on stderr and ends the process with kEmulatorFault.
// Cannot find: what depends on the memory model, on timing, or on rounding by other instructions.
#pragma once

#include <memory>
#include <string>

#include "codegen/gpu/emulated.h"
#include "runtime_min/abi.h"
#include "runtime_min/gpu/abi.h"
#include "runtime_min/gpu/nccl/exchange.h"

namespace kiln {

inline constexpr int kEmulatorFault = 6;  // exit status

class Emulator {
 public:
  explicit Emulator(const gpu::EmulatedLibrary* library);
  ~Emulator();
  const kiln_gpu* table() const { return &table_; }
  void set_host_arena(void* memory) { table_.host_arena = memory; }

  // Devices of a program whose collectives are NCCL's: those go to the library that stands in for it (nccl_stand_in.h).
  // All devices call these, each in a thread of its own. 0, or a kiln_status, of which error() says more.
  int32_t Connect(const kiln_gpu_groups* groups, const kiln_comm& comm, int64_t timeout_ms);
  void Disconnect();
  // The others need not wait for this device.
  void Fail();
  std::string error() const;

 private:
  struct State;
  struct Devices;
  static Devices* OfTable(void* self);
  std::unique_ptr<State> state_;
  std::unique_ptr<Devices> devices_;
  kiln_gpu table_;
};

}  // namespace kiln
