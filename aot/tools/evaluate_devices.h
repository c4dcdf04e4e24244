// The evaluator as several devices, a thread each.
#pragma once

#include "aot/tools/runner.h"

namespace kiln {

// As RunDevices (aot/tools/runner.h); programs are not partitioned: every device computes all of a program with
// shardings, and has whole arguments and results.
absl::StatusOr<std::vector<std::vector<Literal>>> EvaluateDevices(const std::vector<DeviceProgram>& devices,
                                                                  int64_t replicas, int64_t partitions,
                                                                  const std::vector<Literal>& infeed);

}  // namespace kiln
