// <model>_model: what a host can ask of the model, and the functions that only hosts call.
// kiln renames kiln_model_* for each model.
#include <stddef.h>
#include <stdint.h>

#include "runtime_min/cpu/level.h"
#include "runtime_min/kiln.h"

// Written by the compiler (aot/package/model_object.cc).
__attribute__((visibility("hidden"))) extern const kiln_model kiln_model_descriptor;

const kiln_model* kiln_model_model(void) { return &kiln_model_descriptor; }

const char* kiln_model_status_text(int32_t status) {
  switch (status) {
#define STATUS(name, text) \
  case KILN_##name:        \
    return text;
#include "runtime_min/statuses.def"
    default:
      return "unknown status";
  }
}

static int same(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

// As dispatch.c chooses.
const char* kiln_model_cpu_level(void) {
  static const char* const names[LEVELS] = KILN_CPU_LEVELS;
  unsigned held = 0;
  for (const char* const* name = kiln_model_descriptor.cpu_levels; *name; ++name)
    for (int level = 0; level < LEVELS; ++level)
      if (same(*name, names[level])) held |= 1u << level;
  const int best = best_level(held);
  return best < 0 ? NULL : names[best];
}
