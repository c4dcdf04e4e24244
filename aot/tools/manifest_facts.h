// What a NAME.manifest.json says, for commands that look at a library that is there.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/types.h"

namespace kiln {

struct ManifestPort {
  PrimitiveType type = PrimitiveType::F32;
  int64_t elements = 0;
  // Of an argument that states the size of a dimension: its largest value; -1: it states none.
  int64_t full_size = -1;
  bool donated = false;
};

struct ManifestFacts {
  std::string name, build, target;
  int64_t code_bytes = 0, constant_bytes = 0, temp_bytes = 0, slow_arena_bytes = 0, argument_bytes = 0,
          output_bytes = 0, archive_bytes = 0;
  int64_t threads = 0;  // 1: the library has no code for threads
  int64_t devices = 1;
  bool has_cpu_program = true;
  std::vector<int64_t> batch_sizes;
  std::vector<ManifestPort> arguments, results;  // of the largest batch size
  // Of a library with several entries: each, by the name that its functions begin with; and whose it is, as what.
  std::vector<ManifestFacts> entries;
  std::string library, entry;
};

// `file` names the text in errors.
absl::StatusOr<ManifestFacts> ReadManifest(const std::string& text, const std::string& file);

// The library's only program, or the entry of that name; an error says which there are.
absl::StatusOr<ManifestFacts> ProgramOf(const ManifestFacts& library, const std::string& entry);

}  // namespace kiln
