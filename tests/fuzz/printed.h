// What is accepted is printed as text that is read as the same module.
#pragma once

#include "compiler/hlo/parser.h"
#include "compiler/hlo/printer.h"

inline void CheckPrinted(const kiln::Module& module) {
  const std::string text = kiln::ToText(module);
  const auto again = kiln::ParseHlo(text, "f");
  if (!again.ok() || kiln::ToText(**again) != text) __builtin_trap();
}
