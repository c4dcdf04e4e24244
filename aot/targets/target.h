// A target of a library as a value: which passes its programs take, and what they become in the archive.
//
// Compile (aot/compile.cc) plans every program for every wanted target and then lets each emit; nothing else in it
// knows what a CPU or a GPU is.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "aot/code_generation.h"
#include "aot/compile.h"
#include "aot/debug/op_table.h"
#include "aot/planning.h"
#include "aot/weights.h"

namespace kiln {

// One program of the library, planned.
struct Planned {
  std::string suffix;  // of its names; empty unless there are entries or batch sizes
  size_t entry;        // of the library
  PlannedProgram program;
  std::vector<int64_t> offsets;  // of its constants in the library's weights
  std::vector<Port> arguments, results;
  OpTable ops;  // of a CPU program, if its debug options ask for any
};

// A compile as far as it has come.
struct Compilation {
  const CompileOptions& options;
  CompiledModel out;
  Weights weights;
  bool large_weights = false;
  std::vector<std::pair<std::string, std::string>> members;  // of the archive: name, object

  // The interface that a program belongs to: an entry's, or the library's.
  CompiledModel& ModelOf(size_t entry) { return out.entries.empty() ? out : out.entries[entry]; }

  ProgramToGenerate ToGenerate(const Planned& p) const;
  void Add(GeneratedCode code);
};

struct Target {
  const char* name;
  ProgramTarget pipeline;  // passes and scratch
  bool (*wanted)(const CompileOptions& options);
  // Adds the objects of its programs, one for each batch size, to the archive.
  absl::Status (*emit)(const std::vector<Planned>& programs, Compilation* c);
  // The parts of the runtime that the programs call: a sum of RuntimeNeed.
  unsigned (*runtime)(const std::vector<Planned>& programs, const CompileOptions& options);
};

// Whether GPU programs run on the host.
bool Emulates(const CompileOptions& options);

extern const Target kCpuTarget, kGpuTarget;
// GPU programs on the host, for tests; in place of both others.
extern const Target kEmulatedTarget;

}  // namespace kiln
