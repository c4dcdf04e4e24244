// What each fuzz target feeds: bytes that a user may have in a file. A reader must answer every input with a value or
// one clear error that names file, line and column; what it accepts must verify or be refused, and print to a fixed
// point.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
