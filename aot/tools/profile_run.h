// Runs a program that measures itself, and reads what it measured.
#pragma once

#include "aot/report/profile.h"
#include "aot/tools/runner.h"

namespace kiln {

struct ProfiledRun {
  Profile profile;  // peaks excepted
  RunResult run;
};

// As RunModule, with `debug { profile }`. The first run, which warms caches up, does not count. `trace_path`: a file
// for the events of all counted runs, as JSON for Perfetto; empty: none.
absl::StatusOr<ProfiledRun> RunProfiled(std::unique_ptr<Module> module, const std::vector<Literal>& arguments,
                                        CompileOptions compile, RunOptions run, const std::string& trace_path);

}  // namespace kiln
