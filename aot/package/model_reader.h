// What a compiled library says of itself: its kiln_model, read from the file without running any of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln {

struct ArrayFacts {
  std::string name, path, type;                  // type: "f32"; "type 77" where this kiln does not know it
  std::vector<int64_t> extents, minor_to_major;  // the layout is empty if row major
  int64_t bytes = 0, alignment = 1, alias = -1, low = 1, high = 0;
  bool weight = false;                                           // a set of weights can give it
  std::vector<int64_t> whole_extents, tiles, tile_of_partition;  // empty unless the program is partitioned
};

struct VariantFacts {
  int64_t batch = 0, arena_bytes = 0;
  std::vector<ArrayFacts> arguments, results;
};

struct ModelFacts {
  std::string name, kiln_version, build;
  std::string library, entry;  // empty unless it is one of several entries
  int64_t model_version = 0, abi_version = 0;
  std::vector<std::string> cpu_levels, gpu_targets, callbacks;
  int64_t arena_bytes = 0, arena_alignment = 0, slow_arena_bytes = 0, gpu_arena_bytes = 0, constant_bytes = 0;
  int64_t gpu_host_arena_bytes = 0, stack_bytes = 0, threads = 0, devices = 1;
  bool communicates = false, on_cpu = false;
  std::vector<VariantFacts> variants;
};

// Of an archive that kiln wrote, or of a shared object of models.
absl::StatusOr<std::vector<ModelFacts>> ReadModels(const std::string& path);

}  // namespace kiln
