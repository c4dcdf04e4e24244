// One model of the pack: what its program is told of it by generated code.
#ifndef KILN_TESTS_GPU_PACK_CHECK_H_
#define KILN_TESTS_GPU_PACK_CHECK_H_

#include <stddef.h>
#include <stdint.h>

struct pack_port {
  int64_t bytes;
  int type;       // XLA's number
  int64_t alias;  // the argument or result whose memory it is, or -1
};

struct pack_model {
  const char* name;
  int arguments, results;
  const struct pack_port *argument, *result;
  size_t arena_bytes;
  int32_t (*run)(void* const* arguments, void* const* results, void* arena, const void* pool);
  int32_t (*create)(void** gpu, int32_t device, void* stream, char* error, size_t error_bytes);
  void (*destroy)(void* gpu);
  int32_t (*run_gpu)(void* gpu, void* const* arguments, void* const* results, void* arena);
  int32_t (*wait)(void* gpu);
  void* (*malloc)(void* gpu, size_t bytes);
  void (*free)(void* gpu, void* array);
  int32_t (*to_device)(void* gpu, void* array, const void* host, size_t bytes);
  int32_t (*to_host)(void* gpu, void* host, const void* array, size_t bytes);
  void (*set_graphs)(void* gpu, int32_t on);
  const char* (*error)(const void* gpu);
};

// Runs the model on the CPU and, where there is one, on the GPU with graphs off and on; compares and times. Prints one
// line; returns 0 if results agree or there is no GPU (and --need-gpu was not given).
int pack_check(const struct pack_model* model, int argc, char** argv);

#endif  // KILN_TESTS_GPU_PACK_CHECK_H_
