// Who touched each byte of a launch, to find accesses out of bounds and races.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace kiln {

class Shadow {
 public:
  struct Range {
    uintptr_t begin, end;
    bool shared;  // by the threads of one block only
  };
  // A new launch: nothing was touched, and only these bytes may be.
  void Begin(std::vector<Range> ranges) {
    ranges_ = std::move(ranges);
    cells_.clear();
    awaited_.clear();
  }
  // Forgets what a block did in the memory that only it shares.
  void NewBlock();
  // The block has seen at `counter` that all blocks of a pass are done: what comes is after what they did.
  void Await(uintptr_t counter);
  // Accesses after this come after all those before it, for threads of one block.
  void Barrier() { ++epoch_; }
  // Says what is wrong with this access, or nothing. `kind`: of gpu::AccessKind.
  std::string Access(uintptr_t at, int64_t bytes, int kind, int32_t block, int32_t thread);

 private:
  struct Touch {
    int32_t block = -1, thread = -1;
    int64_t epoch = -1;
    bool several = false;  // threads of the epoch, or blocks
  };
  struct Cell {
    Touch write, read, atomic;
  };
  bool Clashes(const Touch& t, int32_t block, int32_t thread) const;
  void Note(Touch* t, int32_t block, int32_t thread) const;

  std::vector<Range> ranges_;
  absl::flat_hash_map<uintptr_t, Cell> cells_;
  absl::flat_hash_set<uintptr_t> awaited_;  // counters that a block has seen
  int64_t epoch_ = 0;
};

}  // namespace kiln
