// The header of a program of this folder: inputs, and what it computes (README.md).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aot/tools/program.h"

namespace kiln {

struct Header {
  int64_t devices = 0;                  // replicas; 0: as the module says
  std::vector<Values> inputs, results;  // by device; one entry: of every device
  std::vector<std::string> errors;
  std::set<std::string> skipped;     // backends
  std::vector<std::string> unknown;  // words in capitals that begin a comment and are no key
  Tolerance tolerance;
};

// Of the text of a program; fields that no line gives are empty.
absl::StatusOr<Header> ReadHeader(const std::string& text);
// The program of a file with its device counts settled, and the arguments of each device: the header's.
absl::StatusOr<std::unique_ptr<Module>> LoadProgram(const std::string& file, const Header& header);
std::vector<Values> InputsOf(const Header& header, const Module& module);

}  // namespace kiln
