// Products by cuBLASLt, opened when a program that has some is created.
// kiln renames kiln_model_* for each model. Linked only into programs with products.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_min/gpu/gemm.h"

#define CUBLAS(F)                                                                                                      \
  F(Version, size_t, cublasLtGetVersion, (void))                                                                       \
  F(Create, int, cublasLtCreate, (void**))                                                                             \
  F(Destroy, int, cublasLtDestroy, (void*))                                                                            \
  F(DescCreate, int, cublasLtMatmulDescCreate, (void**, int, int))                                                     \
  F(DescSet, int, cublasLtMatmulDescSetAttribute, (void*, int, const void*, size_t))                                   \
  F(DescFree, int, cublasLtMatmulDescDestroy, (void*))                                                                 \
  F(LayoutCreate, int, cublasLtMatrixLayoutCreate, (void**, int, uint64_t, uint64_t, int64_t))                         \
  F(LayoutSet, int, cublasLtMatrixLayoutSetAttribute, (void*, int, const void*, size_t))                               \
  F(LayoutFree, int, cublasLtMatrixLayoutDestroy, (void*))                                                             \
  F(PreferenceCreate, int, cublasLtMatmulPreferenceCreate, (void**))                                                   \
  F(PreferenceSet, int, cublasLtMatmulPreferenceSetAttribute, (void*, int, const void*, size_t))                       \
  F(PreferenceFree, int, cublasLtMatmulPreferenceDestroy, (void*))                                                     \
  F(Heuristic, int, cublasLtMatmulAlgoGetHeuristic,                                                                    \
    (void*, void*, void*, void*, void*, void*, void*, int, void*, int*))                                               \
  F(Check, int, cublasLtMatmulAlgoCheck, (void*, void*, void*, void*, void*, void*, const void*, void*))               \
  F(Matmul, int, cublasLtMatmul,                                                                                       \
    (void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*, void*, void*, \
     const void*, void*, size_t, void*))

static struct {
#define F(name, type, symbol, parameters) type(*name) parameters;
  CUBLAS(F)
#undef F
} lt;
static char lt_problem[512];
static pthread_once_t lt_once = PTHREAD_ONCE_INIT;

static void open_lt(void) {
  void* lib = kiln_model_gpu_open_cublaslt(lt_problem, sizeof lt_problem);
  if (!lib) return;
#define F(name, type, symbol, parameters)  \
  *(void**)&lt.name = dlsym(lib, #symbol); \
  if (!lt.name) snprintf(lt_problem, sizeof lt_problem, "this cuBLASLt lacks " #symbol);
  CUBLAS(F)
#undef F
}

// As the library lays it out.
struct heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

// What a call needs besides its addresses.
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

// The library's answers that say it does not do this, before it started anything; kNoCandidate is ours.
enum { kNoCandidate = -1, kInvalidValue = 7, kArchitecture = 8, kNotSupported = 15 };
static int32_t meaning_of(int code) {
  if (!code) return kGemmDone;
  return code == kNoCandidate || code == kInvalidValue || code == kArchitecture || code == kNotSupported ? kGemmRefused
                                                                                                         : kGemmFailed;
}

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

enum { kScaleA = 17, kScaleB = 18, kBiasPointer = 8 };

// A row-major product is a column-major one of the operands in the other order.
static int describe(struct plan* p, const int64_t* v, const void* somewhere) {
  enum { kTransA = 3, kTransB = 4, kEpilogueAttribute = 7 };
  enum { kCompute16Needs32 = 68, kCompute64 = 70, kCompute32I = 72, kComputeTf32 = 77 };
  const int in = cuda_type(v[kGemmIn]), in_b = cuda_type(v[kGemmInB]), out = cuda_type(v[kGemmOut]);
  const int compute = v[kGemmIn] == 12 || v[kGemmIn] == 18 ? kCompute64
                      : v[kGemmIn] == 2                    ? kCompute32I
                      : v[kGemmTf32]                       ? kComputeTf32
                                                           : kCompute16Needs32;
  const int scale = v[kGemmIn] == 10 || v[kGemmIn] == 16 || v[kGemmScaled] ? 0 : v[kGemmIn] == 2 ? 10 : in;
  int code = lt.DescCreate(&p->desc, compute, scale);
  const int32_t first = v[kGemmTurnedB] ? 1 : 0, second = v[kGemmTurnedA] ? 1 : 0;
  if (!code) code = lt.DescSet(p->desc, kTransA, &first, sizeof first);
  if (!code) code = lt.DescSet(p->desc, kTransB, &second, sizeof second);
  static const uint32_t kEpilogues[] = {1, 4, 2, 6, 32, 36};
  const uint32_t epilogue = kEpilogues[v[kGemmEpilogue]];
  if (!code) code = lt.DescSet(p->desc, kEpilogueAttribute, &epilogue, sizeof epilogue);
  // What candidates there are depends on these being given; each run sets the true ones.
  if (!code && v[kGemmEpilogue] & kGemmBias) code = lt.DescSet(p->desc, kBiasPointer, &somewhere, sizeof somewhere);
  if (!code && v[kGemmScaled]) code = lt.DescSet(p->desc, kScaleA, &somewhere, sizeof somewhere);
  if (!code && v[kGemmScaled]) code = lt.DescSet(p->desc, kScaleB, &somewhere, sizeof somewhere);
  const uint64_t m = (uint64_t)v[kGemmM], n = (uint64_t)v[kGemmN], k = (uint64_t)v[kGemmK];
  const int64_t batch = v[kGemmBatch];
  if (!code) code = make_layout(&p->a, in_b, v[kGemmTurnedB] ? k : n, v[kGemmTurnedB] ? n : k, batch, v[kGemmStrideB]);
  if (!code) code = make_layout(&p->b, in, v[kGemmTurnedA] ? m : k, v[kGemmTurnedA] ? k : m, batch, v[kGemmStrideA]);
  if (!code) code = make_layout(&p->c, out, n, m, batch, (int64_t)(m * n));
  return code;
}

// The place of the result among a call's buffers, and of the array that is added to it.
static int64_t place_of_result(const struct kiln_gpu_call* call) { return call->buffers - 1; }
static int64_t place_of_added(const struct kiln_gpu_call* call) {
  double beta;
  memcpy(&beta, &call->numbers[kGemmBeta], sizeof beta);
  return beta != 0 ? (call->numbers[kGemmScaled] ? 4 : 2) : place_of_result(call);
}

// The library's candidates, best first, for addresses as they will be.
static int ask(struct plan* p, struct state* s, size_t workspace, struct heuristic* found, int most, int* count) {
  enum { kMostWorkspace = 1, kAlignment = 5 };  // of the addresses of a, b, c and the result: four in a row
  const struct kiln_gpu_call* call = p->call;
  const int64_t places[] = {1, 0, place_of_added(call), place_of_result(call)};
  void* preference = NULL;
  int code = lt.PreferenceCreate(&preference);
  if (!code) code = lt.PreferenceSet(preference, kMostWorkspace, &workspace, sizeof workspace);
  for (int k = 0; k < 4 && !code; ++k) {
    const uint32_t alignment = (uint32_t)call->alignment[places[k]];
    code = lt.PreferenceSet(preference, kAlignment + k, &alignment, sizeof alignment);
  }
  *count = 0;
  if (!code) code = lt.Heuristic(s->handle, p->desc, p->a, p->b, p->c, p->c, preference, most, found, count);
  if (preference) lt.PreferenceFree(preference);
  return code;
}

// Tuning saw addresses of this alignment.
static int as_tuned(const struct kiln_gpu_call* call) {
  enum { kTunedAlignment = 16 };
  for (int64_t k = 0; k < call->buffers; ++k)
    if (call->alignment[k] % kTunedAlignment) return 0;
  return 1;
}

static int make_plan(struct plan* p, struct state* s, const struct kiln_gpu_algorithm* algorithm,
                     const struct kiln_gemm_memory* memory) {
  int code = describe(p, p->call->numbers, memory->workspace);
  if (code) return code;
  // The words of an algorithm are those of one version of the library.
  if (algorithm->words && algorithm->version == (int64_t)lt.Version() && as_tuned(p->call)) {
    struct heuristic checked;
    memset(&checked, 0, sizeof checked);
    if (!lt.Check(s->handle, p->desc, p->a, p->b, p->c, p->c, algorithm->words, &checked) && !checked.state &&
        checked.workspace <= memory->bytes) {
      p->found = checked;
      memcpy(p->found.algorithm, algorithm->words, sizeof p->found.algorithm);
      return 0;
    }
  }
  enum { kCandidates = 16 };
  struct heuristic found[kCandidates];
  int count = 0;
  code = ask(p, s, memory->bytes, found, kCandidates, &count);
  if (code) return code;
  int64_t before = !algorithm->words && algorithm->number >= 0 ? algorithm->number : 0;
  for (int k = 0; k < count; ++k)
    if (found[k].state == 0 && before-- == 0) {
      p->found = found[k];
      return 0;
    }
  return kNoCandidate;
}

static void free_plan(struct plan* p) {
  if (p->a) lt.LayoutFree(p->a);
  if (p->b) lt.LayoutFree(p->b);
  if (p->c) lt.LayoutFree(p->c);
  if (p->desc) lt.DescFree(p->desc);
  free(p);
}

static int32_t open(void** out, char* error, size_t error_bytes) {
  pthread_once(&lt_once, open_lt);
  if (lt_problem[0]) {
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

static int64_t version(void) { return (int64_t)lt.Version(); }

static void close(void* state) {
  struct state* s = state;
  for (struct plan* p = s->plans; p;) {
    struct plan* next = p->next;
    free_plan(p);
    p = next;
  }
  lt.Destroy(s->handle);
  free(s);
}

// A plan of the call, or null.
static struct plan* new_plan(struct state* s, const struct kiln_gpu_call* call,
                             const struct kiln_gpu_algorithm* algorithm, const struct kiln_gemm_memory* memory,
                             int32_t* status, char* error, size_t error_bytes) {
  const int64_t* v = call->numbers;
  struct plan* p = calloc(1, sizeof *p);
  *status = kGemmFailed;
  if (!p) return NULL;
  p->call = call;
  const int code = make_plan(p, s, algorithm, memory);
  *status = meaning_of(code);
  if (!code) return p;
  free_plan(p);
  char which[32] = "no way";
  if (!algorithm->words && algorithm->number >= 0)
    snprintf(which, sizeof which, "no way %lld", (long long)algorithm->number);
  snprintf(error, error_bytes, "cuBLASLt has %s to multiply %lld x %lld by %lld x %lld (%d)", which,
           (long long)v[kGemmM], (long long)v[kGemmK], (long long)v[kGemmK], (long long)v[kGemmN], code);
  return NULL;
}

static int32_t prepare(void* state, const struct kiln_gpu_call* call, const struct kiln_gpu_algorithm* algorithm,
                       const struct kiln_gemm_memory* memory, char* error, size_t error_bytes) {
  struct state* s = state;
  for (struct plan* p = s->plans; p; p = p->next)
    if (p->call == call) return kGemmDone;
  int32_t status = kGemmDone;
  struct plan* p = new_plan(s, call, algorithm, memory, &status, error, error_bytes);
  if (!p) return status;
  p->next = s->plans;
  s->plans = p;
  return kGemmDone;
}

static int32_t start(struct state* s, struct plan* p, void* const* buffers, const struct kiln_gemm_memory* memory,
                     void* stream, char* error, size_t error_bytes) {
  const int64_t* v = p->call->numbers;
  double alpha[2] = {0, 0}, beta[2] = {0, 0};
  memcpy(&alpha[0], &v[kGemmAlpha], sizeof alpha[0]);
  memcpy(&beta[0], &v[kGemmBeta], sizeof beta[0]);
  float alpha32[2] = {(float)alpha[0], 0}, beta32[2] = {(float)beta[0], 0};
  int32_t alpha_int = (int32_t)alpha[0], beta_int = (int32_t)beta[0];
  const int wide = v[kGemmIn] == 12 || v[kGemmIn] == 18, integer = v[kGemmIn] == 2;
  const void* scale = wide ? (void*)alpha : integer ? (void*)&alpha_int : (void*)alpha32;
  const void* keep = wide ? (void*)beta : integer ? (void*)&beta_int : (void*)beta32;
  int code = 0;
  if (v[kGemmScaled]) {
    code = lt.DescSet(p->desc, kScaleA, &buffers[3], sizeof buffers[3]);
    if (!code) code = lt.DescSet(p->desc, kScaleB, &buffers[2], sizeof buffers[2]);
  }
  void* const c = buffers[place_of_added(p->call)];
  void* const out = buffers[place_of_result(p->call)];
  if (!code && v[kGemmEpilogue] & kGemmBias) {
    void* const bias = buffers[place_of_result(p->call) - 1];
    code = lt.DescSet(p->desc, kBiasPointer, &bias, sizeof bias);
  }
  if (!code)
    code = lt.Matmul(s->handle, p->desc, scale, buffers[1], p->a, buffers[0], p->b, keep, c, p->c, out, p->c,
                     p->found.algorithm, memory->workspace, memory->bytes, stream);
  if (code)
    snprintf(error, error_bytes, "cuBLASLt fails to multiply %lld x %lld by %lld x %lld (%d)", (long long)v[kGemmM],
             (long long)v[kGemmK], (long long)v[kGemmK], (long long)v[kGemmN], code);
  return meaning_of(code);
}

static int32_t multiply(void* state, const struct kiln_gpu_call* call, const struct kiln_gpu_algorithm* algorithm,
                        void* const* buffers, const struct kiln_gemm_memory* memory, void* stream, char* error,
                        size_t error_bytes) {
  struct state* s = state;
  const int32_t status = prepare(state, call, algorithm, memory, error, error_bytes);
  if (status) return status;
  struct plan* p = s->plans;
  while (p->call != call) p = p->next;
  return start(s, p, buffers, memory, stream, error, error_bytes);
}

static int32_t try_relu(void* state, const struct kiln_gpu_call* call, void* a, void* b, void* scale, void* out,
                        const struct kiln_gemm_memory* memory, void* stream, char* error, size_t error_bytes) {
  static const int64_t kAlignments[] = {256, 256, 256, 256, 256};
  static const struct kiln_gpu_algorithm kAny = {-1, 0, NULL};
  const double one = 1;
  int64_t v[kGemmNumbers] = {0};
  for (int k = kGemmIn; k <= kGemmOut; ++k) v[k] = call->numbers[k];
  for (int k = kGemmM; k <= kGemmK; ++k) v[k] = kGemmTried;
  for (int k = kGemmTurnedA; k <= kGemmTurnedB; ++k) v[k] = call->numbers[k];
  for (int k = kGemmInB; k <= kGemmTf32; ++k) v[k] = call->numbers[k];
  v[kGemmBatch] = 1;
  v[kGemmStrideA] = v[kGemmStrideB] = kGemmTried * kGemmTried;
  v[kGemmEpilogue] = kGemmRelu;
  memcpy(&v[kGemmAlpha], &one, sizeof one);
  const struct kiln_gpu_call small = {call->routine, v[kGemmScaled] ? 5 : 3, kGemmNumbers, v, NULL, kAlignments, NULL};
  void* const plain[] = {a, b, out};
  void* const scaled[] = {a, b, scale, scale, out};
  int32_t status = kGemmDone;
  struct plan* p = new_plan(state, &small, &kAny, memory, &status, error, error_bytes);
  if (!p) return status;
  status = start(state, p, v[kGemmScaled] ? scaled : plain, memory, stream, error, error_bytes);
  free_plan(p);
  return status;
}

static int32_t algorithm_of(void* state, const struct kiln_gpu_call* call, uint64_t* words) {
  for (struct plan* p = ((struct state*)state)->plans; p; p = p->next)
    if (p->call == call) {
      memcpy(words, p->found.algorithm, sizeof p->found.algorithm);
      return 0;
    }
  return 1;
}

__attribute__((visibility("hidden"))) const struct kiln_gpu_gemm* kiln_model_gpu_gemm(void) {
  static const struct kiln_gpu_gemm kFunctions = {open, close, prepare, multiply, try_relu, algorithm_of, version};
  return &kFunctions;
}
