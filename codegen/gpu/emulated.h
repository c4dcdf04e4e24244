// A GPU program lowered for the host: what its object offers to an emulator, and what it asks of one.
//
// Used in tests only: kernels keep their LLVM IR, and what a GPU gives them by instructions comes from these tables.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "codegen/gpu/entry.h"

namespace kiln::gpu {

struct EmulatedKernel {
  const char* name;
  // One thread, at the place that `where` says.
  void (*thread)(void* const* buffers);
  // All threads one after the other; null where threads wait for each other.
  void (*grid)(void* const* buffers, int64_t blocks, int64_t threads);
  const int64_t* buffer_bytes;
  int64_t buffers;
  // What a block shares: addresses and bytes in turn.
  void* const* shared;
  int64_t shared_arrays;
};

struct EmulatorHooks {
  void (*barrier)();
  int32_t (*shuffle_xor)(int32_t value, int32_t mask);
  // Before each access of memory that threads share; in checked programs only.
  void (*access)(const void* at, int64_t bytes, int32_t kind);
  // The warp's product (Grid::Mma): this lane's four words of a and two of b, and its four sums, which it updates.
  void (*mma)(int32_t kind, const int32_t* words, void* sums);
  // The block goes on once blocks before it have counted to `count` at `counter`.
  void (*await)(const int32_t* counter, int32_t count);
};
enum FragmentKind { kHalves = 0, kBrainHalves = 1, kBytes = 2, kTf32 = 3 };
enum AccessKind { kReads = 0, kWrites = 1, kUpdatesAtomically = 2 };

struct EmulatedPlace {
  int32_t thread, block;
};

// The object's one symbol: <library>_emulated.
struct EmulatedLibrary {
  int64_t kernels;
  const EmulatedKernel* kernel;
  EmulatedPlace* where;
  EmulatorHooks* hooks;
  void* weights;
};

// Makes `ir`'s module, which holds the program's kernels, one of the host.
// `weights`: the symbol of the constants, or empty.
absl::Status LowerToHost(Ir& ir, const Program& program, const std::string& library, const std::string& weights,
                         bool checked);

}  // namespace kiln::gpu
