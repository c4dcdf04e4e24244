// <library>_weights_*: opens, swaps and closes sets of weights. kiln renames kiln_model_* and kiln_library_* for each
// library.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime_min/weights/set.h"

typedef struct kiln_library_weights_set set;

struct kiln_weights {
  int lock;  // held for a few instructions
  set* current;
};

static void acquire(kiln_weights* w) {
  while (__atomic_exchange_n(&w->lock, 1, __ATOMIC_ACQUIRE))
    while (__atomic_load_n(&w->lock, __ATOMIC_RELAXED)) __builtin_ia32_pause();
}

static void release(kiln_weights* w) { __atomic_store_n(&w->lock, 0, __ATOMIC_RELEASE); }

set* kiln_library_weights_use(kiln_weights* w) {
  acquire(w);
  set* s = w->current;
  __atomic_add_fetch(&s->users, 1, __ATOMIC_RELAXED);
  release(w);
  return s;
}

void kiln_library_weights_leave(set* s) {
  if (__atomic_sub_fetch(&s->users, 1, __ATOMIC_ACQ_REL)) return;
  if (s->mapped) munmap(s->mapped, s->bytes);
  if (s->source.release) s->source.release(s->source.self);
  free(s);
}

static int32_t no_memory(struct kiln_model_text* why) {
  kiln_model_text_add(why, "memory ran out");
  return KILN_WEIGHTS;
}

// Makes the weights of a set whose arrays are found, or frees it.
static int32_t finish(int32_t status, set* s, kiln_weights** out, struct kiln_model_text* why) {
  kiln_weights* w = status ? NULL : malloc(sizeof *w);
  if (!status && !w) status = no_memory(why);
  if (status) {
    kiln_library_weights_leave(s);
    return status;
  }
  w->lock = 0;
  w->current = s;
  *out = w;
  return KILN_OK;
}

static set* new_set(void) {
  const size_t arrays = (size_t)kiln_model_weights_table.count;
  set* s = calloc(1, sizeof *s + arrays * sizeof s->array[0]);
  if (s) s->users = 1;
  return s;
}

static void failed(struct kiln_model_text* why, const char* path, const char* what) {
  kiln_model_text_add(why, path);
  kiln_model_text_add(why, what);
}

// Maps the file; NULL with a message if that cannot be.
static void* map(const char* path, size_t* bytes, struct kiln_model_text* why) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    failed(why, path, errno == ENOENT ? ": there is no such file" : ": the file cannot be opened");
    return NULL;
  }
  struct stat about;
  void* at = MAP_FAILED;
  if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
    *bytes = (size_t)about.st_size;
    at = mmap(NULL, *bytes, PROT_READ, MAP_SHARED, file, 0);
  }
  close(file);
  if (at != MAP_FAILED) return at;
  failed(why, path, ": not a file that can be mapped");
  return NULL;
}

int32_t kiln_model_weights_open(kiln_weights** out, const char* path, char* error, size_t error_bytes) {
  struct kiln_model_text why = {error, error_bytes, 0};
  kiln_model_text_add(&why, "");
  if (!out || !path) return KILN_NULL_POINTER;
  *out = NULL;
  set* s = new_set();
  if (!s) return no_memory(&why);
  s->mapped = map(path, &s->bytes, &why);
  if (!s->mapped) return finish(KILN_WEIGHTS, s, out, &why);
  failed(&why, path, ": ");
  const int32_t status = kiln_model_weights_find(s->mapped, s->bytes, s->array, &why);
  if (!status && error && error_bytes) error[0] = 0;
  return finish(status, s, out, &why);
}

int32_t kiln_model_weights_open_memory(kiln_weights** out, const void* image, size_t bytes, char* error,
                                       size_t error_bytes) {
  struct kiln_model_text why = {error, error_bytes, 0};
  kiln_model_text_add(&why, "");
  if (!out || !image) return KILN_NULL_POINTER;
  *out = NULL;
  set* s = new_set();
  if (!s) return no_memory(&why);
  return finish(kiln_model_weights_find(image, bytes, s->array, &why), s, out, &why);
}

int32_t kiln_model_weights_open_source(kiln_weights** out, const kiln_weights_source* source, char* error,
                                       size_t error_bytes) {
  struct kiln_model_text why = {error, error_bytes, 0};
  kiln_model_text_add(&why, "");
  if (!out || !source || !source->tensor) return KILN_NULL_POINTER;
  *out = NULL;
  set* s = new_set();
  if (!s) return no_memory(&why);
  s->source = *source;
  const struct kiln_weights_table* t = &kiln_model_weights_table;
  int32_t status = KILN_OK;
  for (int64_t k = 0; k < t->count && !status; ++k) {
    const char* name = (const char*)t + t->weight[k].names;
    s->array[k] = source->tensor(source->self, name, t->weight[k].bytes);
    const int misaligned = ((uintptr_t)s->array[k] & (uint64_t)(t->weight[k].alignment - 1)) != 0;
    if (s->array[k] && !misaligned) continue;
    failed(&why, name, misaligned ? ": the source gives it misaligned" : ": the source does not have it");
    status = KILN_WEIGHTS;
  }
  return finish(status, s, out, &why);
}

int32_t kiln_model_weights_verify(kiln_weights* w, char* error, size_t error_bytes) {
  struct kiln_model_text why = {error, error_bytes, 0};
  kiln_model_text_add(&why, "");
  if (!w) return KILN_NULL_POINTER;
  set* s = kiln_library_weights_use(w);
  const struct kiln_weights_table* t = &kiln_model_weights_table;
  int32_t status = KILN_OK;
  for (int64_t k = 0; k < t->count && !status; ++k) {
    if (!t->weight[k].hashed || kiln_weights_hash(s->array[k], t->weight[k].bytes) == t->weight[k].hash) continue;
    failed(&why, (const char*)t + t->weight[k].names, ": other values than the library was compiled with");
    status = KILN_WEIGHTS;
  }
  kiln_library_weights_leave(s);
  return status;
}

void kiln_model_weights_swap(kiln_weights* w, kiln_weights* fresh) {
  set* old = w->current;
  if (w != fresh) {
    acquire(w);
    old = w->current;
    w->current = fresh->current;
    release(w);
    kiln_library_weights_leave(old);
    free(fresh);
  }
}

void kiln_model_weights_close(kiln_weights* w) {
  if (!w) return;
  kiln_library_weights_leave(w->current);
  free(w);
}
