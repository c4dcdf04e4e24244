// <model>_model: what a host can ask of the model, and the functions that only hosts call.
// kiln renames kiln_model_* for each model.
#include <stddef.h>
#include <stdint.h>

#include "runtime_min/cpu/level.h"
#include "runtime_min/kiln.h"

// Written by the compiler (aot/package/model_object.cc).
__attribute__((visibility("hidden"))) extern const kiln_model kiln_model_descriptor;

const kiln_model* kiln_model_model(void) { return &kiln_model_descriptor; }

// The texts one behind the other, without a table of addresses that a loader would have to fill in.
static const char texts[] =
#define STATUS(name, text) text "\0"
#include "runtime_min/statuses.def"
    "unknown status";

const char* kiln_model_status_text(int32_t status) {
  enum {
#define STATUS(name, text) k##name,
#include "runtime_min/statuses.def"
    kUnknown
  };
  _Static_assert(kOK == KILN_OK && kNUMERICS == KILN_NUMERICS, "texts are in the order of kiln_status");
  const char* text = texts;
  for (int32_t k = status < 0 || status > kUnknown ? kUnknown : status; k > 0; --k)
    while (*text++) continue;
  return text;
}

static int same(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

// As dispatch.c chooses.
const char* kiln_model_cpu_level(void) {
  static const char names[KILN_LEVELS][8] = KILN_CPU_LEVELS;
  unsigned held = 0;
  for (const char* const* name = kiln_model_descriptor.cpu_levels; *name; ++name)
    for (int level = 0; level < KILN_LEVELS; ++level)
      if (same(*name, names[level])) held |= 1u << level;
  const int best = best_level(held);
  return best < 0 ? NULL : names[best];
}
