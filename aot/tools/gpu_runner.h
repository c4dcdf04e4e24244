// Compiled programs on the GPUs of this machine, in this process.
#pragma once

#include <string>
#include <vector>

#include "aot/tools/run_process.h"

namespace kiln {

// What one device runs, on what.
struct GpuRun {
  const CompiledModel* model;
  std::string so;                         // it, linked
  const std::vector<Literal>* arguments;  // in the layouts of the model's ports
};

struct GpuTimes {
  std::vector<double> us;  // of each run, from its start until its results are there
  double queued_us = 0;    // of a run among as many that are started one behind the other; 0: only one was asked for
};

// Runs the programs `repeat` times, each device as a thread: on a GPU of its own, or all on the first where there are
// fewer GPUs. `infeed`: what the first device's infeed queue holds, in order. Results are those of the first run,
// written behind `offsets`, as ResultOffsets gives them.
absl::Status RunOnGpus(const std::vector<GpuRun>& devices, const std::vector<Literal>& infeed, int repeat,
                       const std::vector<std::vector<size_t>>& offsets, const Shared& shared, GpuTimes* times);

}  // namespace kiln
