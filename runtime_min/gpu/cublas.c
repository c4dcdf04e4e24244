// Products by cuBLASLt, opened when a program that has some is created.
// Compiled to bitcode; kiln renames kiln_model_* for each model. Linked only into libraries with products.
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_min/gpu/abi.h"

#define CUBLAS(F)                                                                                                      \
  F(Create, cublasLtCreate, (void**))                                                                                  \
  F(Destroy, cublasLtDestroy, (void*))                                                                                 \
  F(DescCreate, cublasLtMatmulDescCreate, (void**, int, int))                                                          \
  F(DescSet, cublasLtMatmulDescSetAttribute, (void*, int, const void*, size_t))                                        \
  F(DescFree, cublasLtMatmulDescDestroy, (void*))                                                                      \
  F(LayoutCreate, cublasLtMatrixLayoutCreate, (void**, int, uint64_t, uint64_t, int64_t))                              \
  F(LayoutSet, cublasLtMatrixLayoutSetAttribute, (void*, int, const void*, size_t))                                    \
  F(LayoutFree, cublasLtMatrixLayoutDestroy, (void*))                                                                  \
  F(PreferenceCreate, cublasLtMatmulPreferenceCreate, (void**))                                                        \
  F(PreferenceSet, cublasLtMatmulPreferenceSetAttribute, (void*, int, const void*, size_t))                            \
  F(PreferenceFree, cublasLtMatmulPreferenceDestroy, (void*))                                                          \
  F(Heuristic, cublasLtMatmulAlgoGetHeuristic, (void*, void*, void*, void*, void*, void*, void*, int, void*, int*))    \
  F(Matmul, cublasLtMatmul,                                                                                            \
    (void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*, void*, void*, \
     const void*, void*, size_t, void*))

static struct {
#define F(name, symbol, parameters) int(*name) parameters;
  CUBLAS(F)
#undef F
  size_t (*Version)(void);
} lt;
static const char* lt_problem;
static pthread_once_t lt_once = PTHREAD_ONCE_INIT;

static void open_lt(void) {
  static const char* const kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"};
  void* lib = NULL;
  for (size_t k = 0; k < sizeof kNames / sizeof kNames[0] && !lib; ++k) lib = dlopen(kNames[k], RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    lt_problem = "cuBLASLt (libcublasLt.so.13, .12 or .11) cannot be opened";
    return;
  }
#define F(name, symbol, parameters)        \
  *(void**)&lt.name = dlsym(lib, #symbol); \
  if (!lt.name) lt_problem = "this cuBLASLt lacks " #symbol;
  CUBLAS(F)
#undef F
  *(void**)&lt.Version = dlsym(lib, "cublasLtGetVersion");
  if (!lt.Version) lt_problem = "this cuBLASLt lacks cublasLtGetVersion";
}

// As the library lays it out.
struct heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

// What a call needs besides its addresses, made at its first run.
struct plan {
  const struct kiln_gpu_call* call;
  void *desc, *a, *b, *c;
  struct heuristic found;
  struct plan* next;
};

struct state {
  void* handle;
  struct plan* plans;
};

enum { kNoSuchAlgorithm = -1 };
enum { kIn, kOut, kBatch, kM, kN, kK, kTurnedA, kTurnedB, kStrideA, kStrideB, kAlpha, kBeta, kEpilogue, kInB, kScaled };

// XLA's type numbers as CUDA's.
static int cuda_type(int64_t t) {
  switch (t) {
    case 2:
      return 3;  // s8
    case 4:
      return 10;  // s32
    case 10:
      return 2;  // f16
    case 11:
      return 0;  // f32
    case 12:
      return 1;  // f64
    case 15:
      return 4;  // c64
    case 16:
      return 14;  // bf16
    case 18:
      return 5;  // c128
    case 19:
      return 29;  // f8e5m2
    case 20:
      return 28;  // f8e4m3fn
    default:
      return -1;
  }
}

static int make_layout(void** layout, int type, uint64_t rows, uint64_t columns, int64_t batch, int64_t stride) {
  enum { kBatchCount = 5, kBatchStride = 6 };
  int code = lt.LayoutCreate(layout, type, rows, columns, (int64_t)rows);
  const int32_t count = (int32_t)batch;
  if (!code) code = lt.LayoutSet(*layout, kBatchCount, &count, sizeof count);
  if (!code) code = lt.LayoutSet(*layout, kBatchStride, &stride, sizeof stride);
  return code;
}

// A row-major product is a column-major one of the operands in the other order.
static int make_plan(struct plan* p, struct state* s, const int64_t* v, int64_t algorithm, size_t workspace) {
  enum { kTransA = 3, kTransB = 4, kEpilogueAttribute = 7, kMostWorkspace = 1 };
  enum { kCompute16Needs32 = 68, kCompute64 = 70, kCompute32I = 72 };
  const int in = cuda_type(v[kIn]), in_b = cuda_type(v[kInB]), out = cuda_type(v[kOut]);
  const int compute = v[kIn] == 12 || v[kIn] == 18 ? kCompute64 : v[kIn] == 2 ? kCompute32I : kCompute16Needs32;
  const int scale = v[kIn] == 10 || v[kIn] == 16 || v[kScaled] ? 0 : v[kIn] == 2 ? 10 : in;
  int code = lt.DescCreate(&p->desc, compute, scale);
  const int32_t first = v[kTurnedB] ? 1 : 0, second = v[kTurnedA] ? 1 : 0;
  if (!code) code = lt.DescSet(p->desc, kTransA, &first, sizeof first);
  if (!code) code = lt.DescSet(p->desc, kTransB, &second, sizeof second);
  static const uint32_t kEpilogues[] = {1, 4, 2, 6, 32, 36};
  const uint32_t epilogue = kEpilogues[v[kEpilogue]];
  if (!code) code = lt.DescSet(p->desc, kEpilogueAttribute, &epilogue, sizeof epilogue);
  const uint64_t m = (uint64_t)v[kM], n = (uint64_t)v[kN], k = (uint64_t)v[kK];
  if (!code) code = make_layout(&p->a, in_b, v[kTurnedB] ? k : n, v[kTurnedB] ? n : k, v[kBatch], v[kStrideB]);
  if (!code) code = make_layout(&p->b, in, v[kTurnedA] ? m : k, v[kTurnedA] ? k : m, v[kBatch], v[kStrideA]);
  if (!code) code = make_layout(&p->c, out, n, m, v[kBatch], (int64_t)(m * n));
  if (code) return code;
  void* preference = NULL;
  code = lt.PreferenceCreate(&preference);
  if (!code) code = lt.PreferenceSet(preference, kMostWorkspace, &workspace, sizeof workspace);
  // The library's candidates, best first; a tuned number picks one of them.
  enum { kCandidates = 16 };
  struct heuristic found[kCandidates];
  int count = 0;
  if (!code) code = lt.Heuristic(s->handle, p->desc, p->a, p->b, p->c, p->c, preference, kCandidates, found, &count);
  if (preference) lt.PreferenceFree(preference);
  if (code) return code;
  int64_t before = algorithm >= 0 ? algorithm : 0;
  for (int k = 0; k < count; ++k)
    if (found[k].state == 0 && before-- == 0) {
      p->found = found[k];
      return 0;
    }
  return kNoSuchAlgorithm;
}

static void free_plan(struct plan* p) {
  if (p->a) lt.LayoutFree(p->a);
  if (p->b) lt.LayoutFree(p->b);
  if (p->c) lt.LayoutFree(p->c);
  if (p->desc) lt.DescFree(p->desc);
  free(p);
}

int32_t kiln_model_gpu_gemm_open(void** out, char* error, size_t error_bytes) {
  pthread_once(&lt_once, open_lt);
  if (lt_problem) {
    snprintf(error, error_bytes, "%s", lt_problem);
    return 1;
  }
  struct state* s = calloc(1, sizeof *s);
  const int code = s ? lt.Create(&s->handle) : -1;
  if (code) {
    snprintf(error, error_bytes, "cuBLASLt does not start (%d)", code);
    free(s);
    return 1;
  }
  *out = s;
  return 0;
}

// As the library numbers itself: 120508 is 12.5.8.
int64_t kiln_model_gpu_gemm_version(void) { return (int64_t)lt.Version(); }

void kiln_model_gpu_gemm_close(void* state) {
  struct state* s = state;
  for (struct plan* p = s->plans; p;) {
    struct plan* next = p->next;
    free_plan(p);
    p = next;
  }
  lt.Destroy(s->handle);
  free(s);
}

int32_t kiln_model_gpu_gemm(void* state, const struct kiln_gpu_call* call, int64_t algorithm, void* const* buffers,
                            void* workspace, size_t workspace_bytes, void* stream, char* error, size_t error_bytes) {
  enum { kBiasPointer = 8 };
  struct state* s = state;
  const int64_t* v = call->numbers;
  struct plan* p = s->plans;
  while (p && p->call != call) p = p->next;
  int code = 0;
  if (!p) {
    p = calloc(1, sizeof *p);
    if (!p) return 1;
    p->call = call;
    code = make_plan(p, s, v, algorithm, workspace_bytes);
    if (code) {
      free_plan(p);
      snprintf(error, error_bytes, "cuBLASLt has no way %lld to multiply %lld x %lld by %lld x %lld (%d)",
               (long long)algorithm, (long long)v[kM], (long long)v[kK], (long long)v[kK], (long long)v[kN], code);
      return 1;
    }
    p->next = s->plans;
    s->plans = p;
  }
  double alpha[2] = {0, 0}, beta[2] = {0, 0};
  memcpy(&alpha[0], &v[kAlpha], sizeof alpha[0]);
  memcpy(&beta[0], &v[kBeta], sizeof beta[0]);
  float alpha32[2] = {(float)alpha[0], 0}, beta32[2] = {(float)beta[0], 0};
  int32_t alpha_int = (int32_t)alpha[0], beta_int = (int32_t)beta[0];
  const int wide = v[kIn] == 12 || v[kIn] == 18, integer = v[kIn] == 2;
  const void* scale = wide ? (void*)alpha : integer ? (void*)&alpha_int : (void*)alpha32;
  const void* keep = wide ? (void*)beta : integer ? (void*)&beta_int : (void*)beta32;
  int64_t next = 2;
  if (v[kScaled]) {
    enum { kScaleA = 17, kScaleB = 18 };
    void *scale_a = buffers[next++], *scale_b = buffers[next++];
    code = lt.DescSet(p->desc, kScaleA, &scale_b, sizeof scale_b);
    if (!code) code = lt.DescSet(p->desc, kScaleB, &scale_a, sizeof scale_a);
  }
  void* c = beta[0] != 0 ? buffers[next++] : NULL;
  if (v[kEpilogue] & 1) {
    void* bias = buffers[next++];
    if (!code) code = lt.DescSet(p->desc, kBiasPointer, &bias, sizeof bias);
  }
  void* out = buffers[next];
  if (!code)
    code = lt.Matmul(s->handle, p->desc, scale, buffers[1], p->a, buffers[0], p->b, keep, c ? c : out, p->c, out, p->c,
                     p->found.algorithm, workspace, workspace_bytes, stream);
  if (code) snprintf(error, error_bytes, "cuBLASLt fails in a product (%d)", code);
  return code != 0;
}
