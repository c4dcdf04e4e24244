// What a library has on a device: its code and its weights, there once however many of its programs are created.
// kiln renames kiln_model_* for each library.
#include <stdlib.h>

#include "runtime_min/gpu/driver.h"

// Held while a device is settled: a second program waits for the first one's copy of the weights.
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static struct kiln_gpu_residence* all;

static int32_t copy_weights(struct kiln_model_gpu* g, struct kiln_gpu_residence* r) {
  const size_t bytes = (size_t)g->program->weights_bytes;
  if (!bytes) return 0;
  TRY(g, "no memory for the weights", g->driver->Alloc(&r->weights, bytes));
  TRY(g, "the weights cannot be copied", g->driver->ToDevice(r->weights, g->program->weights, bytes, g->stream));
  // Others use them on streams of theirs, and the caller may begin a recording of this one next.
  TRY(g, "the weights cannot be copied", g->driver->StreamWait(g->stream));
  return 0;
}

static int32_t furnish(struct kiln_model_gpu* g, struct kiln_gpu_residence* r, int device) {
  enum { kMajor = 75, kMinor = 76 };
  int major = 0, minor = 0;
  TRY(g, "the GPU cannot be asked", g->driver->DeviceGetAttribute(&major, kMajor, g->device));
  TRY(g, "the GPU cannot be asked", g->driver->DeviceGetAttribute(&minor, kMinor, g->device));
  const int32_t status = kiln_model_gpu_load_image(g, r, device, major, minor);
  return status ? status : copy_weights(g, r);
}

static void clear(const struct kiln_gpu_driver* d, struct kiln_gpu_residence* r, int usable) {
  if (usable && r->weights) d->Free(r->weights);
  if (usable && r->module) d->ModuleUnload(r->module);
  free(r);
}

static int32_t settle(struct kiln_model_gpu* g, int device) {
  struct kiln_gpu_residence* r = all;
  while (r && r->device != g->device) r = r->next;
  if (!r) {
    r = calloc(1, sizeof *r);
    if (!r) {
      snprintf(g->error, sizeof g->error, "no memory");
      return KILN_GPU;
    }
    r->device = g->device;
    const int32_t status = furnish(g, r, device);
    if (status) {
      clear(g->driver, r, 1);
      return status;
    }
    r->next = all;
    all = r;
  }
  ++r->users;
  g->residence = r;
  return 0;
}

int32_t kiln_model_gpu_settle(struct kiln_model_gpu* g, int device) {
  pthread_mutex_lock(&turn);
  const int32_t status = settle(g, device);
  pthread_mutex_unlock(&turn);
  return status;
}

void kiln_model_gpu_move_out(struct kiln_model_gpu* g, int usable) {
  struct kiln_gpu_residence* r = g->residence;
  if (!r) return;
  pthread_mutex_lock(&turn);
  if (--r->users == 0) {
    struct kiln_gpu_residence** at = &all;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    clear(g->driver, r, usable);
  }
  g->residence = NULL;
  pthread_mutex_unlock(&turn);
}
