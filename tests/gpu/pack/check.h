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
  int devices;  // that it is a program of, all given the same arguments
  int32_t (*run)(void* const* arguments, void* const* results, void* arena, const void* comm);
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
  // Of programs that communicate; else NULL.
  void (*set_comm)(void* gpu, const void* comm);
  void* (*world_create)(int64_t devices);
  void* (*world_comm)(void* world, int64_t device);
  void (*world_abort)(void* world);
};

// Runs the model on the CPU and, where there is one, on the GPU with graphs off and on; compares and times. Prints one
// line. Devices are threads; where there are fewer GPUs than devices, the first GPU is several of them. Returns 0 if
// results agree or there is no GPU (and --need-gpu was not given).
int pack_check(const struct pack_model* model, int argc, char** argv);

#endif  // KILN_TESTS_GPU_PACK_CHECK_H_
