// The stand-alone program that measures a model's products and convolutions on a GPU (kiln tune).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "aot/compile.h"

namespace kiln {

struct Tuner {
  std::string name, target;
  int64_t subjects = 0;    // that it measures
  int64_t candidates = 0;  // of all of them
  int64_t known = 0;       // that have results already, and are left out
  std::string archive;     // with main(); empty where nothing is to be measured
  std::vector<std::string> notes;
};

// For the one GPU that `options` name. Everything that `options.tuning` has a result for is left out unless `again`.
// `options.emulation`: the candidates' kernels for an emulator instead, as <name>_emulated.
absl::StatusOr<Tuner> MakeTuner(std::unique_ptr<Module> module, const CompileOptions& options, bool again);

}  // namespace kiln
