// The whole compile: a module and options in, the files of the product out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aot/model.h"
#include "aot/options.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// The program for one batch size; 0: the only one.
struct BatchVariant {
  int64_t batch;
  std::unique_ptr<Module> module;
};

// A function of a library: its variants, under a name that is empty if it is the only one.
struct EntryPrograms {
  std::string name;
  std::vector<BatchVariant> variants;
};

// `progress` is told each stage. Entries and variants share equal weights, threads and the header.
absl::StatusOr<CompiledModel> Compile(std::vector<EntryPrograms> entries, const CompileOptions& options,
                                      const std::function<void(const std::string&)>& progress = nullptr);
absl::StatusOr<CompiledModel> Compile(std::vector<BatchVariant> variants, const CompileOptions& options,
                                      const std::function<void(const std::string&)>& progress = nullptr);
absl::StatusOr<CompiledModel> Compile(std::unique_ptr<Module> module, const CompileOptions& options,
                                      const std::function<void(const std::string&)>& progress = nullptr);

}  // namespace kiln
