// The runtime's parts as object files, embedded when kiln is built.
#pragma once

#include <cstddef>

namespace kiln {

struct EmbeddedObject {
  const unsigned char* data;
  size_t size;
};

// Each as it is, for -fsanitize=address, for -fsanitize=thread, and with unwind tables.
#define RUNTIME_PART(name, ...) extern const EmbeddedObject k##name##Objects[4];
#include "codegen/kernels/runtime_parts.def"

}  // namespace kiln
