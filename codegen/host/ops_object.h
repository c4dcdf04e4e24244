// The table of a library's operations, for its profiler and its numeric check (runtime_min/profile.h).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln {

// The fields of kiln_profile_op.
struct OpRow {
  std::string name, label, kind, opcode, op_name, source_file;
  int64_t source_line = 0, hlo_line = 0, parent = -1, flops = 0, bytes = 0;
};

// An object that defines <name>_ops, <name>_op_count and zeroed <name>_profile_counters.
absl::StatusOr<std::string> OpsObject(const std::string& name, const std::vector<OpRow>& rows);

}  // namespace kiln
