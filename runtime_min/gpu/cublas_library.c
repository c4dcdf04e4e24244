// Where cuBLASLt is: the loader's own path, or one of the places that installers use.
// kiln renames kiln_model_* for each model.
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_min/gpu/gemm.h"

// The newest first; the plain name is a developer's link.
static const char* const kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"};

// Directories: of an environment variable, or as they are. Wheels and environments of Python have theirs.
static const struct place {
  const char *variable, *rest;
} kPlaces[] = {
    {"CUDA_PATH", "/lib64"},
    {"CUDA_HOME", "/lib64"},
    {NULL, "/usr/local/cuda/lib64"},
    {"CONDA_PREFIX", "/lib"},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/cu13/lib"},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/cublas/lib"},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/cu13/lib"},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/cublas/lib"},
    {"HOME", "/.local/lib/python3*/site-packages/nvidia/cu13/lib"},
    {"HOME", "/.local/lib/python3*/site-packages/nvidia/cublas/lib"},
    {NULL, "/usr/local/lib/python3*/*-packages/nvidia/cu13/lib"},
    {NULL, "/usr/local/lib/python3*/*-packages/nvidia/cublas/lib"},
    {NULL, "/usr/lib/python3*/*-packages/nvidia/cu13/lib"},
    {NULL, "/usr/lib/python3*/*-packages/nvidia/cublas/lib"},
};

static void* open_in(const struct place* p, const char* name) {
  enum { kMostPath = 4096 };
  char pattern[kMostPath];
  const char* base = p->variable ? getenv(p->variable) : "";
  if (!base || (p->variable && !*base)) return NULL;
  if (snprintf(pattern, sizeof pattern, "%s%s/%s", base, p->rest, name) >= (int)sizeof pattern) return NULL;
  glob_t found;
  void* lib = NULL;
  if (glob(pattern, 0, NULL, &found)) return NULL;
  for (size_t k = 0; k < found.gl_pathc && !lib; ++k) lib = dlopen(found.gl_pathv[k], RTLD_NOW | RTLD_LOCAL);
  globfree(&found);
  return lib;
}

void* kiln_model_gpu_open_cublaslt(char* error, size_t error_bytes) {
  const size_t names = sizeof kNames / sizeof kNames[0];
  const char* const chosen = getenv("KILN_CUBLASLT");
  if (chosen && *chosen) {
    void* lib = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    if (!lib) snprintf(error, error_bytes, "cuBLASLt cannot be opened where KILN_CUBLASLT names it: %s", dlerror());
    return lib;
  }
  void* lib = NULL;
  for (size_t k = 0; k < names && !lib; ++k) lib = dlopen(kNames[k], RTLD_NOW | RTLD_LOCAL);
  for (size_t at = 0; at < sizeof kPlaces / sizeof kPlaces[0] && !lib; ++at)
    for (size_t k = 0; k < names && !lib; ++k) lib = open_in(&kPlaces[at], kNames[k]);
  if (!lib)
    snprintf(error, error_bytes,
             "cuBLASLt (libcublasLt.so.13, .12 or .11) is neither on the loader's path nor under CUDA_PATH, CUDA_HOME, "
             "/usr/local/cuda or a Python environment's nvidia packages; KILN_CUBLASLT may name the file");
  return lib;
}
