// <model>_gpu_create. kiln renames kiln_model_* for each model, and kiln_library_* for each library.
#include "runtime_min/gpu/driver.h"

// Written by the compiler (aot/gpu_code_generation.cc).
INTERNAL extern const struct kiln_gpu_program kiln_model_gpu_program;

int32_t kiln_model_gpu_create(struct kiln_model_gpu** out, int32_t device, void* stream, char* error,
                              size_t error_bytes) {
  return kiln_library_gpu_open(out, &kiln_model_gpu_program, device, stream, error, error_bytes);
}
