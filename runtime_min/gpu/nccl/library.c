// NCCL's functions, from the library that the program finds when its devices are connected.
// kiln renames kiln_model_* for each model.
#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime_min/gpu/nccl/nccl.h"

static struct kiln_nccl_library library;
static char problem[512];
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Where wheels of Python and environments have it, behind the loader's own path.
static const struct place {
  const char *variable, *rest;
} kPlaces[] = {
    {"CONDA_PREFIX", "/lib"},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/nccl/lib"},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/nccl/lib"},
    {"HOME", "/.local/lib/python3*/site-packages/nvidia/nccl/lib"},
    {NULL, "/usr/local/lib/python3*/*-packages/nvidia/nccl/lib"},
    {NULL, "/usr/lib/python3*/*-packages/nvidia/nccl/lib"},
};

static void* open_in(const struct place* p) {
  enum { kMostPath = 4096 };
  char pattern[kMostPath];
  const char* base = p->variable ? getenv(p->variable) : "";
  if (!base || (p->variable && !*base)) return NULL;
  if (snprintf(pattern, sizeof pattern, "%s%s/libnccl.so.2", base, p->rest) >= (int)sizeof pattern) return NULL;
  glob_t found;
  void* lib = NULL;
  if (glob(pattern, 0, NULL, &found)) return NULL;
  for (size_t k = 0; k < found.gl_pathc && !lib; ++k) lib = dlopen(found.gl_pathv[k], RTLD_NOW | RTLD_LOCAL);
  globfree(&found);
  return lib;
}

static void* find(void) {
  const char* const chosen = getenv("KILN_NCCL");
  if (chosen && *chosen) {
    void* lib = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    if (!lib) snprintf(problem, sizeof problem, "NCCL cannot be opened where KILN_NCCL names it: %s", dlerror());
    return lib;
  }
  void* lib = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  for (size_t k = 0; k < sizeof kPlaces / sizeof kPlaces[0] && !lib; ++k) lib = open_in(&kPlaces[k]);
  if (!lib)
    snprintf(problem, sizeof problem,
             "there is no NCCL (libnccl.so.2 is neither on the loader's path nor in a Python environment's nvidia "
             "packages; KILN_NCCL may name the file); a program compiled with gpu { transport: HOST } needs none");
  return lib;
}

static void open_library(void) {
  void* lib = find();
  if (!lib) return;
#define F(name, result, parameters)                  \
  *(void**)&library.name = dlsym(lib, "nccl" #name); \
  if (!library.name && !problem[0])                  \
    snprintf(problem, sizeof problem, "this NCCL is too old: it lacks nccl" #name ", which came with 2.18");
  KILN_NCCL_FUNCTIONS(F)
#undef F
  int version = 0;
  if (problem[0]) return;
  if (library.GetVersion(&version) || version < KILN_NCCL_OLDEST)
    snprintf(problem, sizeof problem, "this NCCL is too old: its version is %d, and the program needs %d (2.18)",
             version, KILN_NCCL_OLDEST);
}

const char* kiln_model_nccl_library(const struct kiln_nccl_library** out) {
  pthread_once(&once, open_library);
  *out = &library;
  return problem[0] ? problem : NULL;
}
