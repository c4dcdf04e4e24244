// Which of a library's images runs: the best for the device that its driver takes. A driver may refuse machine code
// that a newer toolkit made, or PTX of a version it does not know; then the next best is tried, PTX last. Compiled to
// bitcode; kiln renames kiln_model_* for each model.
#include <stdlib.h>
#include <string.h>

#include "runtime_min/gpu/driver.h"

static int64_t version_of(const struct kiln_gpu_image* i) { return i->major * 100 + i->minor; }

static int fits(const struct kiln_gpu_image* i, int major, int minor) {
  return version_of(i) <= major * 100 + minor && (!i->machine_code || i->major == major);
}

// Machine code before PTX, then the later version.
static int better(const struct kiln_gpu_image* a, const struct kiln_gpu_image* b) {
  if (a->machine_code != b->machine_code) return a->machine_code != 0;
  return version_of(a) > version_of(b);
}

static void say(char* text, size_t bytes, const char* more) {
  const size_t n = strlen(text);
  snprintf(text + n, bytes - n, "%s%s", n ? "; " : "", more);
}

int32_t kiln_model_gpu_load_image(struct kiln_model_gpu* g, struct kiln_gpu_residence* r, int device, int major,
                                  int minor) {
  const struct kiln_gpu_program* p = g->program;
  const struct kiln_gpu_image* last = NULL;
  for (;;) {
    const struct kiln_gpu_image* best = NULL;
    for (int64_t k = 0; k < p->images; ++k) {
      const struct kiln_gpu_image* i = &p->image[k];
      if (fits(i, major, minor) && (!last || better(last, i)) && (!best || better(i, best))) best = i;
    }
    if (!best) break;
    last = best;
    const int code = g->driver->ModuleLoad(&r->module, best->data);
    if (code) {
      r->module = NULL;
      failed(g, best->name, code);
      say(r->images_refused, sizeof r->images_refused, g->error);
      continue;
    }
    r->image = best - p->image;
    g->error[0] = 0;
    return 0;
  }
  if (!last) {
    snprintf(g->error, sizeof g->error, "the library has no code for GPU %d of compute capability %d.%d (it has: %s)",
             device, major, minor, p->architectures);
  } else {
    int driver_version = 0;
    g->driver->DriverGetVersion(&driver_version);
    snprintf(g->error, sizeof g->error, "the driver (for CUDA %d.%d) loads none of the library's images: %s",
             driver_version / 1000, driver_version % 1000 / 10, r->images_refused);
  }
  return KILN_NO_DEVICE;
}
