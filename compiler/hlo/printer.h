// Prints HLO text. Guarantees: parse(print(m)) prints the same text again.
#pragma once

#include <string>

#include "compiler/hlo/instruction.h"

namespace kiln {

struct PrintOptions {
  bool metadata = true;
  // Constants of more elements than this print as {...}; negative prints all.
  int64_t max_constant_elements = -1;
  bool layouts = true;
};

std::string ToText(const Module& module, const PrintOptions& options = {});
std::string ToText(const Computation& computation, const PrintOptions& options = {});
std::string ToText(const Instruction& instruction, const PrintOptions& options = {});

}  // namespace kiln
