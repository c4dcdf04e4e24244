// Runs a module on values: through the compiled library, in a process of its own or on a GPU, or through the evaluator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aot/compile.h"
#include "compiler/hlo/literal.h"

namespace kiln {

// Values between the nested form of a shape and its list of arrays (tokens have no value).
void FlattenLiteral(const Literal& literal, std::vector<Literal>* arrays);
Literal UnflattenLiteral(const Shape& shape, const std::vector<Literal>& arrays, size_t* next);

struct RunOptions {
  std::string backend = "cpu";  // or "cpu-emulated", "gpu", "gpu-emulated", "reference"
  // What the devices of a program are: "threads" of a process, or ranks of "mpi".
  std::string launcher = "threads";
  // The emulator watches every access, for those out of bounds and for races.
  bool check_accesses = false;
  int threads = 1;
  int repeat = 1;
  // Called in the process that runs the program, with the library as dlopen gave it: before each run, the first of
  // which is 0, and behind the last.
  std::function<void(void* library, const CompiledModel& model, int run)> before_run;
  std::function<void(void* library, const CompiledModel& model)> after_runs;
};

// What a device spends in exchanges, in medians, and of that waiting for devices that had not come yet.
struct InExchanges {
  double us = 0, late_us = 0;
};

// The same where none begins before its results are wanted: the difference is hidden behind the work. Zeros: not
// measured.
struct ExchangeTimes {
  InExchanges early, alone;
  // The part of the time that is hidden; negative where beginning early takes longer.
  double overlap() const { return alone.us > 0 ? 1 - early.us / alone.us : 0; }
};

struct RunResult {
  CompiledModel model;           // empty for the reference backend
  std::vector<Literal> results;  // leaves, in order
  double first_us = 0, min_us = 0, median_us = 0;
  double queued_us = 0;  // on GPUs: of a run among several that are started one behind the other
  ExchangeTimes exchanges;
};

// Makes bounded dynamic dimensions static, as compiling does: sizes become arguments and results of their own.
absl::Status MakeStatic(Module* module);

// Random or patterned arguments, the same for the same seed on every machine.
std::vector<Literal> SeededArguments(const Module& module, uint64_t seed);

// What each of several devices runs, on what.
struct DeviceProgram {
  const Module* module;  // of the grid's replica and partition counts; may be shared by devices
  std::vector<Literal> arguments;
};

// Runs one program a device, together. `infeed`: what the first device's infeed queue holds, in order. `about`, if
// given, is told what the first device's program was compiled to, and how long runs of all devices took where they are
// threads. The results of each device, flattened.
absl::StatusOr<std::vector<std::vector<Literal>>> RunDevices(const std::vector<DeviceProgram>& devices,
                                                             int64_t replicas, int64_t partitions,
                                                             const std::vector<Literal>& infeed,
                                                             const CompileOptions& compile, const RunOptions& options,
                                                             RunResult* about = nullptr);

// `arguments`: one literal for each flattened argument.
absl::StatusOr<RunResult> RunModule(std::unique_ptr<Module> module, const std::vector<Literal>& arguments,
                                    const CompileOptions& compile, const RunOptions& options);

}  // namespace kiln
