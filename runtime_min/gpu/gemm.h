// Products by cuBLASLt, as cublas.c offers them to the rest of the runtime. C11.
//
// A table of functions that the program's description points to where it has products: what is not pointed to is not
// linked. A state belongs to one program on one device and is used by one thread at a time.
#ifndef KILN_RUNTIME_MIN_GPU_GEMM_H_
#define KILN_RUNTIME_MIN_GPU_GEMM_H_

#include <stddef.h>
#include <stdint.h>

#include "runtime_min/gpu/abi.h"

// What a call came to. Refused: the library does not compute this, and nothing was started.
enum { kGemmDone = 0, kGemmRefused = 1, kGemmFailed = 2 };

struct kiln_gemm_memory {
  void* workspace;
  size_t bytes;
};

struct kiln_gpu_gemm {
  // Opens the library, from where cublas_library.c finds it. Not 0: `error` says what was tried.
  int32_t (*open)(void** state, char* error, size_t error_bytes);
  void (*close)(void* state);
  // Chooses the algorithm of a call: the tuned one if the library takes it, else the library's first. What was chosen
  // stays, so that recordings and runs agree.
  int32_t (*prepare)(void* state, const struct kiln_gpu_call* call, const struct kiln_gpu_algorithm* algorithm,
                     const struct kiln_gemm_memory* memory, char* error, size_t error_bytes);
  // Puts the product on the stream; prepares it if nobody did.
  int32_t (*multiply)(void* state, const struct kiln_gpu_call* call, const struct kiln_gpu_algorithm* algorithm,
                      void* const* buffers, const struct kiln_gemm_memory* memory, void* stream, char* error,
                      size_t error_bytes);
  // Puts the relu of a small product of the call's types, from `a`, `b` and the f32 `scale` to `out`, on the stream:
  // what the library makes of NaN there is not in its documentation.
  int32_t (*try_relu)(void* state, const struct kiln_gpu_call* call, void* a, void* b, void* scale, void* out,
                      const struct kiln_gemm_memory* memory, void* stream, char* error, size_t error_bytes);
  // The eight words of the algorithm that a prepared call uses; not 0: it has none.
  int32_t (*algorithm)(void* state, const struct kiln_gpu_call* call, uint64_t* words);
  // As the library numbers itself: 120508 is 12.5.8.
  int64_t (*version)(void);
};

enum { kGemmTried = 16 };  // rows, columns and depth of that product

// The numbers of a call (routines.def).
enum {
  kGemmIn,
  kGemmOut,
  kGemmBatch,
  kGemmM,
  kGemmN,
  kGemmK,
  kGemmTurnedA,
  kGemmTurnedB,
  kGemmStrideA,
  kGemmStrideB,
  kGemmAlpha,
  kGemmBeta,
  kGemmEpilogue,
  kGemmInB,
  kGemmScaled,
  kGemmTf32,
  kGemmNumbers
};
enum { kGemmBias = 1, kGemmRelu = 2, kGemmGelu = 4 };  // bits of the epilogue

// Of cublas_library.c: the library, or null and in `error` the places that were tried.
__attribute__((visibility("hidden"))) void* kiln_model_gpu_open_cublaslt(char* error, size_t error_bytes);

#endif  // KILN_RUNTIME_MIN_GPU_GEMM_H_
