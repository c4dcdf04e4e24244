// A GPU program as data: code for each architecture, and what the runtime must know of the model. Programs of one
// library have the same images, in which kernels have names of their own, and the same weights. C11.
#ifndef KILN_RUNTIME_MIN_GPU_PROGRAM_H_
#define KILN_RUNTIME_MIN_GPU_PROGRAM_H_

#include <stdint.h>

enum { KILN_GPU_MOST_BUFFERS = 500 };  // of one kernel: what its parameters have room for

struct kiln_gpu_image {
  int64_t machine_code;  // 1: a cubin, for devices of its major and at least its minor; 0: PTX, for all from it on
  int64_t major, minor;
  const void* data;
  const char* name;  // "sm_90" or "PTX of sm_90"
};

struct kiln_gpu;
struct kiln_gpu_call;
struct kiln_gpu_collectives;
struct kiln_gpu_gemm;
struct kiln_gpu_groups;

// What connects a program with other devices, or with queues of the host program.
struct kiln_gpu_communication {
  int64_t exchange_bytes;  // of host memory that this passes through: the largest block that goes out and all that come
  void (*by_host)(struct kiln_gpu* table);                  // fills in what passes through the host (by_host.c)
  const struct kiln_gpu_groups* groups;                     // that NCCL connects; null: it is not asked
  const struct kiln_gpu_collectives* (*collectives)(void);  // what asks it (nccl/device.c)
};

struct kiln_gpu_program {
  int64_t images;
  const struct kiln_gpu_image* image;
  int64_t kernels;
  const char* const* kernel;  // their names
  int64_t regions;            // that the entry records
  int64_t calls;              // of library routines
  const struct kiln_gpu_call* const* call;
  const struct kiln_gpu_gemm* (*gemm)(void);  // what computes these (gemm.h); null: there are none
  const void* weights;                        // of the library; null: it has none
  int64_t weights_bytes, arena_bytes;
  const struct kiln_gpu_communication* communication;  // null: there is none
  int64_t arguments, results;
  const int64_t* argument_bytes;
  const int64_t* result_bytes;
  const int64_t* result_in_argument;  // the argument that holds it, or -1
  const char* architectures;          // for people: "sm_80, sm_90, PTX of sm_90"
  // What a run does, asking `gpu` (abi.h).
  int32_t (*entry)(void* const* arguments, void* const* results, void* arena, const void* gpu, const void* comm);
  int64_t host_arena_bytes;
  // Of each argument, then of each result: 1 if the caller has it in the host's memory. Null: none.
  const int64_t* on_host;
};

#endif  // KILN_RUNTIME_MIN_GPU_PROGRAM_H_
