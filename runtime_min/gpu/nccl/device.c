// A program on a GPU whose devices NCCL connects: its collectives on the run's stream, or beside it, and waits that end
// when other devices do not come.
//
// Order: every device puts its exchanges on its streams in the program's order, one behind the other whichever stream
//   each is on, since kernels of two communicators that wait for each other's devices may not run at once.
// Time: an exchange, or a recorded stretch with some, may take as long as the time limit once what was put there before
//   it is done.
// kiln renames kiln_model_* for each model.
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_min/gpu/driver.h"
#include "runtime_min/gpu/nccl/nccl.h"

INTERNAL extern const int64_t kiln_model_device_timeout_ms;

enum { kNotReady = 600, kMostUnderWay = 32 };

// An exchange that was put on a stream, and when it is over.
struct under_way {
  void* over;
  const char* name;
};

struct kiln_gpu_nccl {
  struct kiln_nccl n;
  int (*stream_query)(void* stream);
  int (*event_query)(void* event);
  void* beside;  // the stream of exchanges that other work does not wait for
  void *begins, *ends[KILN_GPU_MOST_OFFERS];
  void* last;  // of the events `ends`: that of the last exchange beside the stream, unless the stream waits for it
  int last_recorded;  // in a graph, outside of which it means nothing
  struct under_way under_way[kMostUnderWay];
  int64_t first, count;
  struct kiln_comm face;  // of a device that has an id and no kiln_comm
};

static int32_t keep_error(struct kiln_model_gpu* g, int32_t status) {
  const struct kiln_nccl* n = &g->nccl->n;
  if (!status) return 0;
  if (n->failure) snprintf(g->error, sizeof g->error, "%s", n->error);
  const struct kiln_comm* c = g->comm;
  if (c && c->fail) c->fail(c->self, c->device, status);
  return status;
}

// Remembers what the stream has come to, for waits. In a recording nothing is under way.
static int32_t note(struct kiln_model_gpu* g, const char* name, void* stream) {
  struct kiln_gpu_nccl* c = g->nccl;
  if (g->recording) return 0;
  if (c->count < kMostUnderWay) ++c->count;  // else the last is known no more
  struct under_way* u = &c->under_way[(c->first + c->count - 1) % kMostUnderWay];
  u->name = name;
  if (!u->over) TRY(g, "no event", g->driver->EventCreate(&u->over, kNoTiming));
  TRY(g, "an event fails", g->driver->EventRecord(u->over, stream));
  return 0;
}

// The stream goes on behind every exchange beside it.
static int32_t join(struct kiln_model_gpu* g) {
  struct kiln_gpu_nccl* c = g->nccl;
  if (c->last && c->last_recorded == g->recording)
    TRY(g, "a stream cannot wait", g->driver->StreamAwait(g->stream, c->last, 0));
  c->last = NULL;
  return 0;
}

static int32_t exchange(void* self, const struct kiln_gpu_exchange* what, void* const* buffers) {
  struct kiln_model_gpu* g = self;
  int32_t status = join(g);
  if (!status) status = kiln_model_nccl_exchange(&g->nccl->n, what, buffers, g->stream, &g->table);
  if (!status) status = note(g, what->name, g->stream);
  return keep_error(g, status);
}

static int32_t offer(void* self, int64_t place, const struct kiln_gpu_exchange* what, void* const* buffers) {
  struct kiln_model_gpu* g = self;
  struct kiln_gpu_nccl* c = g->nccl;
  if (!c->beside) TRY(g, "no stream", g->driver->StreamCreate(&c->beside, kNonBlocking));
  if (!c->begins) TRY(g, "no event", g->driver->EventCreate(&c->begins, kNoTiming));
  if (!c->ends[place]) TRY(g, "no event", g->driver->EventCreate(&c->ends[place], kNoTiming));
  TRY(g, "an event fails", g->driver->EventRecord(c->begins, g->stream));
  TRY(g, "a stream cannot wait", g->driver->StreamAwait(c->beside, c->begins, 0));
  void* const own = g->stream;
  g->stream = c->beside;  // for what the exchange fills
  int32_t status = kiln_model_nccl_exchange(&c->n, what, buffers, c->beside, &g->table);
  g->stream = own;
  if (status) return keep_error(g, status);
  TRY(g, "an event fails", g->driver->EventRecord(c->ends[place], c->beside));
  c->last = c->ends[place];
  c->last_recorded = g->recording;
  return keep_error(g, note(g, what->name, c->beside));
}

static int32_t take(void* self, int64_t place) {
  struct kiln_model_gpu* g = self;
  struct kiln_gpu_nccl* c = g->nccl;
  TRY(g, "a stream cannot wait", g->driver->StreamAwait(g->stream, c->ends[place], 0));
  if (c->last == c->ends[place]) c->last = NULL;
  return 0;
}

static void replayed(struct kiln_model_gpu* g) { note(g, "a recorded stretch with collectives", g->stream); }

// Whether something that was under way is over.
static int advanced(struct kiln_gpu_nccl* c) {
  int any = 0;
  while (c->count && !c->event_query(c->under_way[c->first].over)) {
    c->first = (c->first + 1) % kMostUnderWay;
    --c->count;
    any = 1;
  }
  return any;
}

static int32_t wait(struct kiln_model_gpu* g) {
  struct kiln_gpu_nccl* c = g->nccl;
  struct kiln_nccl* n = &c->n;
  int64_t since = kiln_model_nccl_now();
  while (!n->failure) {
    const int code = c->stream_query(g->stream);
    if (code == 0) {
      c->count = 0;
      return 0;
    }
    if (code != kNotReady) return failed(g, "the stream failed", code);
    if (advanced(c)) since = kiln_model_nccl_now();
    const char* name = c->count ? c->under_way[c->first].name : "a collective";
    if (kiln_model_nccl_look(n, name)) break;
    if (c->count && n->timeout_ms > 0 && kiln_model_nccl_now() - since > n->timeout_ms)
      kiln_model_nccl_fail(n, KILN_TIMEOUT, "%s: another device did not come within %lld ms, or is gone", name,
                           (long long)n->timeout_ms);
    sched_yield();
  }
  // What was aborted ends by itself.
  const int code = g->driver->StreamWait(g->stream);
  return keep_error(g, code ? failed(g, "the stream failed", code) : n->failure);
}

static void fail(struct kiln_model_gpu* g) {
  kiln_model_nccl_fail(&g->nccl->n, KILN_COMMUNICATION, "a run of this device failed: %.400s", g->error);
}

static void free_events(struct kiln_model_gpu* g) {
  struct kiln_gpu_nccl* c = g->nccl;
  const struct kiln_gpu_driver* d = g->driver;
  if (c->beside) {
    d->StreamWait(c->beside);
    d->StreamDestroy(c->beside);
  }
  if (c->begins) d->EventDestroy(c->begins);
  for (int k = 0; k < KILN_GPU_MOST_OFFERS; ++k)
    if (c->ends[k]) d->EventDestroy(c->ends[k]);
  for (int k = 0; k < kMostUnderWay; ++k)
    if (c->under_way[k].over) d->EventDestroy(c->under_way[k].over);
}

static void disconnect(struct kiln_model_gpu* g, int usable) {
  struct kiln_gpu_nccl* c = g->nccl;
  if (!usable) kiln_model_nccl_fail(&c->n, KILN_GPU, "the context of this device is gone");
  kiln_model_nccl_close(&c->n);
  if (usable) free_events(g);
  if (g->comm == &c->face) g->comm = NULL;
  free(c);
  g->nccl = NULL;
  g->collectives = NULL;
  g->table.exchange = NULL;
  g->table.offer = NULL;
  g->table.take = NULL;
}

static void describe(const struct kiln_model_gpu* g, char* text, size_t bytes) {
  const struct kiln_nccl* n = &g->nccl->n;
  int version = 0;
  n->api->GetVersion(&version);
  snprintf(text, bytes, "device %lld of %lld, connected by NCCL %d.%d.%d: %lld calls%s%.300s", (long long)n->device,
           (long long)n->groups->devices, version / 10000, version / 100 % 100, version % 100, (long long)n->calls,
           n->failure ? "; failed: " : "", n->error);
}

// Functions of the driver that nobody else asks for.
static int32_t find_queries(struct kiln_model_gpu* g, struct kiln_gpu_nccl* c) {
  void* lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  *(void**)&c->stream_query = lib ? dlsym(lib, "cuStreamQuery") : NULL;
  *(void**)&c->event_query = lib ? dlsym(lib, "cuEventQuery") : NULL;
  if (c->stream_query && c->event_query) return 0;
  snprintf(g->error, sizeof g->error, "the NVIDIA driver is too old: it lacks cuStreamQuery or cuEventQuery");
  return KILN_GPU;
}

// Makes the connection, by the caller's comm or by an id.
static int32_t connect_by(struct kiln_model_gpu* g, int64_t device, const kiln_nccl_id* id) {
  struct kiln_gpu_nccl* c = calloc(1, sizeof *c);
  if (!c) {
    snprintf(g->error, sizeof g->error, "no memory");
    return KILN_GPU;
  }
  int32_t status = find_queries(g, c);
  const char* problem = status ? NULL : kiln_model_nccl_library(&c->n.api);
  if (problem) {
    snprintf(g->error, sizeof g->error, "%s", problem);
    status = KILN_COMMUNICATION;
  }
  if (status) {
    free(c);
    return status;
  }
  g->nccl = c;
  c->n.groups = g->program->communication->groups;
  c->n.timeout_ms = kiln_model_device_timeout_ms;
  status = id ? kiln_model_nccl_connect(&c->n, device, id) : kiln_model_nccl_connect_by(&c->n, g->comm);
  if (status) snprintf(g->error, sizeof g->error, "%s", c->n.error);
  g->collectives = kiln_model_gpu_collectives();
  g->table.exchange = exchange;
  g->table.offer = offer;
  g->table.take = take;
  return status;
}

static int32_t connect(struct kiln_model_gpu* g) { return connect_by(g, g->comm->device, NULL); }

const struct kiln_gpu_collectives* kiln_model_gpu_collectives(void) {
  static const struct kiln_gpu_collectives all = {connect, wait, replayed, fail, disconnect, describe};
  return &all;
}

// What only a kiln_comm has.
static int no_queue(void* self, int64_t device, int64_t channel, const void* data, int64_t bytes) {
  (void)self, (void)device, (void)channel, (void)data, (void)bytes;
  return KILN_COMMUNICATION;
}
static int nothing_queued(void* self, int64_t device, int64_t channel, void* data, int64_t bytes) {
  return no_queue(self, device, channel, data, bytes);
}

int32_t kiln_model_gpu_nccl_id(void* id, char* error, size_t error_bytes) {
  if (!id) return KILN_NULL_POINTER;
  const struct kiln_nccl_library* api = NULL;
  const char* problem = kiln_model_nccl_library(&api);
  if (!problem && api->GetUniqueId(id) != kNcclSuccess) problem = "NCCL makes no id";
  if (problem && error && error_bytes) snprintf(error, error_bytes, "%s", problem);
  return problem ? KILN_COMMUNICATION : 0;
}

int32_t kiln_model_gpu_connect(struct kiln_model_gpu* g, int64_t device, const void* id) {
  if (!g || !id) return KILN_NULL_POINTER;
  kiln_model_gpu_set_comm(g, NULL);
  int32_t status = kiln_model_gpu_enter(g, 0);
  if (status) return status;
  status = connect_by(g, device, id);
  if (!status) {
    g->nccl->face = (struct kiln_comm){.device = device, .send = no_queue, .receive = nothing_queued};
    g->comm = &g->nccl->face;
  }
  return kiln_model_gpu_leave(g, 0, status);
}
