// The constants by which a model's runtime knows its program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln {

// What <name>_run checks (kiln_program of runtime_min/abi.h).
struct CallChecks {
  struct Port {
    int64_t bytes, alignment, alias, low, high;
  };
  std::vector<Port> arguments, results;
  int64_t arena_bytes = 0, slow_arena_bytes = 0;
  int64_t devices = 0;  // 0: it does not communicate
  bool flush_subnormals = true, x87 = true, overlap = true;
};

// An object that defines <name>_program, with the entries <name>_entry_LEVEL of these levels. `any_machine`: the best
// of them stands where the dispatch looks for v2, which every machine has.
absl::StatusOr<std::string> ProgramObject(const std::string& name, const std::vector<std::string>& levels,
                                          bool any_machine, const CallChecks& checks);

// An object that defines <name>_device_timeout_ms.
std::string DeviceTimeoutObject(const std::string& name, int64_t milliseconds);

// An object that defines <name>_mpi_program: what ranks of MPI compare before they run (coll/mpi/world.h).
std::string MpiProgramObject(const std::string& name, int64_t devices);

}  // namespace kiln
