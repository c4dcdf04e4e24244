// Runs a program of several devices as processes of MPI.
//
// What: a folder holds the program as a shared object and what each rank is given; mpirun starts this executable once
//   for each device (`kiln rank DIR`), which runs the program and leaves its results there.
// Cost: arguments and results pass through files of the folder; all ranks are on this machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "aot/compile.h"
#include "compiler/base/temp_folder.h"
#include "compiler/hlo/literal.h"

namespace kiln {

// `library`: the model as a shared object that shows all symbols. `arguments`: of each device, as they lie in memory.
// `result(device, k)`: where the bytes of a result go.
absl::Status RunRanks(const CompiledModel& model, const std::string& library,
                      const std::vector<std::vector<Literal>>& arguments,
                      const std::function<char*(size_t device, size_t k)>& result, TempFolder* dir);

// One rank: `kiln rank DIR`, which only mpirun is meant to start. Returns the exit code.
int RankCommand(const std::string& dir);

}  // namespace kiln
