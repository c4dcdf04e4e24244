// Measuring how a model's products and convolutions are best computed on this machine's CPU (kiln tune --target cpu).
//
// What: each candidate of codegen/cpu/choices.def that gives a plan of its own is compiled for the operation alone and
//   run; the times become a results file (tuning.proto), which later compiles for the same level read.
// Guarantees: nothing but times depends on the machine: subjects, candidates and their order are the program's.
// Cost: a compile and some hundredths of a second for each candidate.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aot/compile.h"

namespace kiln {

// A product or convolution, as a program of its own.
struct CpuSubject {
  std::string key, text;
  std::unique_ptr<Module> module;
  std::vector<int64_t> choices;  // that differ, the planned one (0) first
};

struct CpuSubjects {
  std::string level;
  std::vector<CpuSubject> list;
  int64_t known = 0;   // that have results already, and are left out
  int64_t panels = 0;  // products by constant weights that lie as panels, which have no choices
};

// Of the one CPU level that `options` name. What they have a result for is left out unless `again`.
absl::StatusOr<CpuSubjects> FindCpuSubjects(std::unique_ptr<Module> module, const CompileOptions& options, bool again);

struct CpuMeasurement {
  int64_t choice = 0;
  double us = 0;
};

// The least time of a run of `module` as `options` compile it.
using MeasureCpu = std::function<absl::StatusOr<double>(const Module& module, const CompileOptions& options)>;

// Times of all choices of `subject`, fastest first. Each is measured twice, one after the other, and the fastest ones
// again.
absl::StatusOr<std::vector<CpuMeasurement>> MeasureChoices(const CpuSubject& subject, const std::string& level,
                                                           const CompileOptions& options, const MeasureCpu& measure);

// An entry of a results file, and the file with entries of one machine.
std::string EntryText(const CpuSubject& subject, const std::vector<CpuMeasurement>& measured);
std::string ResultsText(const std::string& level, const std::vector<std::string>& entries);

}  // namespace kiln
