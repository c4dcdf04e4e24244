// A cuBLASLt for tests, by its documentation: column-major products on the host, with its layouts, transpositions,
// batches, scales and epilogues. It names three algorithms, of which the second is not supported.
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <vector>

#include "compiler/hlo/types.h"

namespace {

using kiln::PrimitiveType;
using Complex = std::complex<double>;

struct Desc {
  int compute, scale;
  int32_t transa = 0, transb = 0;
  uint32_t epilogue = 1;
  const void* bias = nullptr;
  const void* scale_a = nullptr;
  const void* scale_b = nullptr;
};
struct MatrixLayout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

PrimitiveType TypeOf(int cuda) {
  switch (cuda) {
    case 0:
      return PrimitiveType::F32;
    case 1:
      return PrimitiveType::F64;
    case 2:
      return PrimitiveType::F16;
    case 3:
      return PrimitiveType::S8;
    case 4:
      return PrimitiveType::C64;
    case 5:
      return PrimitiveType::C128;
    case 10:
      return PrimitiveType::S32;
    case 28:
      return PrimitiveType::F8E4M3FN;
    case 29:
      return PrimitiveType::F8E5M2;
    default:
      return PrimitiveType::BF16;
  }
}

Complex Get(PrimitiveType t, const void* base, int64_t k) {
  const auto width = static_cast<size_t>(kiln::ByteWidth(t));
  const char* at = static_cast<const char*>(base) + static_cast<size_t>(k) * width;
  const auto part = [&](PrimitiveType p, const char* from) {
    uint64_t bits = 0;
    std::memcpy(&bits, from, static_cast<size_t>(kiln::ByteWidth(p)));
    return kiln::DecodeFloat(p, bits);
  };
  if (t == PrimitiveType::S8) return static_cast<double>(static_cast<int8_t>(*at));
  if (t == PrimitiveType::S32) {
    int32_t v;
    std::memcpy(&v, at, sizeof v);
    return v;
  }
  if (!kiln::IsComplex(t)) return part(t, at);
  const PrimitiveType half = kiln::ComponentType(t);
  return {part(half, at), part(half, at + width / 2)};
}

void Put(PrimitiveType t, void* base, int64_t k, Complex v) {
  const auto width = static_cast<size_t>(kiln::ByteWidth(t));
  char* at = static_cast<char*>(base) + static_cast<size_t>(k) * width;
  if (t == PrimitiveType::S32) {
    const auto i = static_cast<int32_t>(v.real());
    std::memcpy(at, &i, sizeof i);
    return;
  }
  const PrimitiveType part = kiln::IsComplex(t) ? kiln::ComponentType(t) : t;
  const auto part_width = static_cast<size_t>(kiln::ByteWidth(part));
  uint64_t bits = kiln::EncodeFloat(part, v.real());
  std::memcpy(at, &bits, part_width);
  if (!kiln::IsComplex(t)) return;
  bits = kiln::EncodeFloat(part, v.imag());
  std::memcpy(at + part_width, &bits, part_width);
}

constexpr uint64_t kMark = 0x6b696c6e;

}  // namespace

extern "C" {

int fake_cublaslt_last_algorithm = -1;

size_t cublasLtGetVersion(void) { return 130000; }
int cublasLtCreate(void** handle) {
  *handle = new int;
  return 0;
}
int cublasLtDestroy(void* handle) {
  delete static_cast<int*>(handle);
  return 0;
}
int cublasLtMatmulDescCreate(void** out, int compute, int scale) {
  *out = new Desc{compute, scale};
  return 0;
}
int cublasLtMatmulDescDestroy(void* desc) {
  delete static_cast<Desc*>(desc);
  return 0;
}
int cublasLtMatmulDescSetAttribute(void* desc, int attribute, const void* value, size_t bytes) {
  auto* d = static_cast<Desc*>(desc);
  void* to = attribute == 3    ? static_cast<void*>(&d->transa)
             : attribute == 4  ? static_cast<void*>(&d->transb)
             : attribute == 7  ? static_cast<void*>(&d->epilogue)
             : attribute == 8  ? static_cast<void*>(&d->bias)
             : attribute == 17 ? static_cast<void*>(&d->scale_a)
             : attribute == 18 ? static_cast<void*>(&d->scale_b)
                               : nullptr;
  if (!to || bytes != (attribute >= 8 ? 8U : 4U)) return 7;
  std::memcpy(to, value, bytes);
  return 0;
}
int cublasLtMatrixLayoutCreate(void** out, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  *out = new MatrixLayout{type, rows, columns, ld};
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<MatrixLayout*>(layout);
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, size_t bytes) {
  auto* l = static_cast<MatrixLayout*>(layout);
  if (attribute == 5 && bytes == 4) {
    std::memcpy(&l->batch, value, bytes);
    return 0;
  }
  if (attribute != 6 || bytes != 8) return 7;
  std::memcpy(&l->stride, value, bytes);
  return 0;
}
int cublasLtMatmulPreferenceCreate(void** out) {
  *out = new size_t{0};
  return 0;
}
int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<size_t*>(preference);
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* value, size_t bytes) {
  if (attribute != 1 || bytes != sizeof(size_t)) return 7;
  std::memcpy(preference, value, bytes);
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void*, void* desc, void* a, void* b, void* c, void* d, void* preference, int most,
                                   void* out, int* count) {
  if (!desc || !a || !b || !c || !d || !preference || most < 3) return 7;
  auto* h = static_cast<Heuristic*>(out);
  for (uint64_t k = 0; k < 3; ++k) h[k] = {{kMark, k}, 0, k == 1 ? 15 : 0, 1, {}};
  *count = 3;
  return 0;
}
int cublasLtMatmul(void*, void* desc, const void* alpha, const void* a, void* a_layout, const void* b, void* b_layout,
                   const void* beta, const void* c, void* c_layout, void* out, void* out_layout, const void* algorithm,
                   void*, size_t, void*) {
  const auto* d = static_cast<Desc*>(desc);
  const auto &la = *static_cast<MatrixLayout*>(a_layout), &lb = *static_cast<MatrixLayout*>(b_layout),
             &lc = *static_cast<MatrixLayout*>(c_layout), &lo = *static_cast<MatrixLayout*>(out_layout);
  const auto* chosen = static_cast<const uint64_t*>(algorithm);
  if (chosen[0] != kMark || chosen[1] == 1) return 15;
  fake_cublaslt_last_algorithm = static_cast<int>(chosen[1]);
  const uint64_t m = d->transa ? la.columns : la.rows, k = d->transa ? la.rows : la.columns;
  const uint64_t n = d->transb ? lb.rows : lb.columns, kb = d->transb ? lb.columns : lb.rows;
  // 8-bit floats: both sides with the contracted dimension closest in memory, in sixteens.
  if ((la.type >= 28 || lb.type >= 28) && (!d->transa || d->transb || m % 16 || n % 16 || k % 16)) return 15;
  if (k != kb || m != lo.rows || n != lo.columns || la.batch != lo.batch || lb.batch != lo.batch) return 7;
  const PrimitiveType scale = TypeOf(d->scale), ta = TypeOf(la.type), tb = TypeOf(lb.type), tc = TypeOf(lc.type),
                      to = TypeOf(lo.type);
  const Complex x = Get(scale, alpha, 0), y = Get(scale, beta, 0);
  for (int64_t g = 0; g < lo.batch; ++g)
    for (uint64_t j = 0; j < n; ++j)
      for (uint64_t i = 0; i < m; ++i) {
        Complex sum = 0;
        for (uint64_t q = 0; q < k; ++q) {
          const auto at_a = static_cast<int64_t>(d->transa ? q : i) + static_cast<int64_t>(d->transa ? i : q) * la.ld;
          const auto at_b = static_cast<int64_t>(d->transb ? j : q) + static_cast<int64_t>(d->transb ? q : j) * lb.ld;
          sum += Get(ta, a, g * la.stride + at_a) * Get(tb, b, g * lb.stride + at_b);
        }
        sum *= x;
        for (const void* s : {d->scale_a, d->scale_b})
          if (s) sum *= Get(PrimitiveType::F32, s, 0);
        const auto column = static_cast<int64_t>(j), row = static_cast<int64_t>(i);
        if (y != 0.0) sum += y * Get(tc, c, g * lc.stride + row + column * lc.ld);
        if (d->epilogue & 4) sum += Get(to, d->bias, row);
        if (d->epilogue & 2) sum = std::isnan(sum.real()) ? sum : std::max(sum.real(), 0.0);
        if (d->epilogue & 32) {
          const double v = sum.real();
          sum = 0.5 * v * (1 + std::tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
        }
        Put(to, out, g * lo.stride + row + column * lo.ld, sum);
      }
  return 0;
}

}  // extern "C"
