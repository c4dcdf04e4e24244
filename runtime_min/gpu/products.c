// Products: by cuBLASLt where it is there and computes them as HLO says, else by kiln's own kernels. Decided when the
// program is created, so that runs and recordings agree.
// kiln renames kiln_model_* for each model.
#include <stdlib.h>
#include <string.h>

#include "runtime_min/gpu/driver.h"

static struct kiln_gemm_memory memory_of(const struct kiln_model_gpu* g) {
  return (struct kiln_gemm_memory){(void*)g->workspace, kWorkspaceBytes};
}

// kiln's own kernel computes the product from now on; `g->error` says why the library does not.
static int32_t take_over(struct kiln_model_gpu* g, int64_t k) {
  if (!g->program->call[k]->kernel) {
    const size_t n = strlen(g->error);
    snprintf(g->error + n, sizeof g->error - n,
             "; kiln's own kernel, which would compute it, was left out (gpu { fallback_kernels: false })");
    return KILN_GPU;
  }
  if (!g->library_missing[0]) snprintf(g->library_missing, sizeof g->library_missing, "%.500s", g->error);
  g->gemm_refused[k] = 1;
  ++g->own_products;
  g->error[0] = 0;
  return 0;
}

static int is_nan(const unsigned char* bytes, int64_t type) {
  uint64_t bits = 0;
  const int width = type == 12 ? 8 : type == 11 ? 4 : 2;  // f64, f32, or f16 and bf16
  const int mantissa = type == 12 ? 52 : type == 11 ? 23 : type == 10 ? 10 : 7;
  memcpy(&bits, bytes, (size_t)width);
  const uint64_t magnitude = bits & ((UINT64_C(1) << (8 * width - 1)) - 1);
  const uint64_t infinity = ((UINT64_C(1) << (8 * width - 1)) - 1) >> mantissa << mantissa;
  return magnitude > infinity;
}

// Whether the library's relu of NaN is NaN, as HLO's maximum has it.
static int32_t relu_keeps_nan(struct kiln_model_gpu* g, const struct kiln_gpu_call* call, int* keeps) {
  enum { kPart = 4096 };  // holds an operand
  const struct kiln_gemm_memory memory = memory_of(g);
  char* at = (char*)g->workspace;
  const struct kiln_gemm_memory rest = {at + 4 * kPart, memory.bytes - 4 * kPart};
  unsigned char out[8] = {0};
  *keeps = 0;
  // All bits set is NaN in every format.
  TRY(g, "a fill fails", g->driver->Fill(g->workspace, 0xff, 4 * kPart, g->stream));
  const int32_t status = g->gemm->try_relu(g->gemm_state, call, at, at + kPart, at + 2 * kPart, at + 3 * kPart, &rest,
                                           g->stream, g->error, sizeof g->error);
  if (status == kGemmFailed) return KILN_GPU;
  if (status == kGemmRefused) return 0;
  TRY(g, "a copy to the host fails", g->driver->ToHost(out, g->workspace + 3 * kPart, sizeof out, g->stream));
  TRY(g, "the stream failed", g->driver->StreamWait(g->stream));
  *keeps = is_nan(out, call->numbers[kGemmOut]);
  if (!*keeps) snprintf(g->error, sizeof g->error, "this cuBLASLt's relu makes numbers of NaN");
  return 0;
}

int32_t kiln_model_gpu_open_products(struct kiln_model_gpu* g) {
  const struct kiln_gpu_program* p = g->program;
  enum { kTypes = 64, kUnknown = 0, kKeeps = 1, kLoses = 2 };
  char relu[kTypes] = {kUnknown};  // by the type of the operands
  if (!p->gemm) return 0;
  g->gemm = p->gemm();
  g->gemm_refused = calloc((size_t)p->calls + 1, 1);
  if (!g->gemm_refused) return KILN_GPU;
  int64_t helpless = p->calls == 0;
  for (int64_t k = 0; k < p->calls; ++k) helpless += !p->call[k]->kernel;
  if (g->gemm->open(&g->gemm_state, g->library_missing, sizeof g->library_missing)) {
    g->gemm_state = NULL;
    g->own_products = p->calls;
    if (!helpless) return 0;
    snprintf(g->error, sizeof g->error, "%s; the program has no kernels of its own for products", g->library_missing);
    return KILN_NO_DEVICE;
  }
  TRY(g, "no memory for the workspace of cuBLASLt", g->driver->Alloc(&g->workspace, kWorkspaceBytes));
  const struct kiln_gemm_memory memory = memory_of(g);
  for (int64_t k = 0; k < p->calls; ++k) {
    const struct kiln_gpu_call* c = p->call[k];
    int32_t status =
        g->gemm->prepare(g->gemm_state, c, &c->algorithm[g->residence->image], &memory, g->error, sizeof g->error);
    const int64_t type = c->numbers[kGemmIn];
    if (!status && c->numbers[kGemmEpilogue] & kGemmRelu && type >= 0 && type < kTypes) {
      int keeps = relu[type] == kKeeps;
      if (relu[type] == kUnknown) {
        if (relu_keeps_nan(g, c, &keeps)) return KILN_GPU;
        relu[type] = keeps ? kKeeps : kLoses;
      }
      if (!keeps) {
        if (!g->error[0]) snprintf(g->error, sizeof g->error, "this cuBLASLt's relu makes numbers of NaN");
        status = kGemmRefused;
      }
    }
    if (status == kGemmFailed || (status && take_over(g, k))) return KILN_GPU;
  }
  return 0;
}

int32_t kiln_model_gpu_product(struct kiln_model_gpu* g, const struct kiln_gpu_call* what, void* const* buffers) {
  const struct kiln_gpu_program* p = g->program;
  int64_t k = 0;
  while (k < p->calls && p->call[k] != what) ++k;
  if (g->gemm_state && (k == p->calls || !g->gemm_refused[k])) {
    const struct kiln_gemm_memory memory = memory_of(g);
    const int32_t status = g->gemm->multiply(g->gemm_state, what, &what->algorithm[g->residence->image], buffers,
                                             &memory, g->stream, g->error, sizeof g->error);
    if (status == kGemmDone) return 0;
    // A tuning program measures what the library refuses as a failure.
    if (status == kGemmFailed || k == p->calls || take_over(g, k)) return KILN_GPU;
  }
  return g->table.launch(g, what->kernel, buffers);
}
