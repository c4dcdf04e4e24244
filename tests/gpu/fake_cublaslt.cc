// A cuBLASLt for tests, by its documentation: column-major products on the host, with its layouts, transpositions,
// batches, scales and epilogues. It names three algorithms, of which the second is not supported, and fails where the
// test says so (fake_cublaslt.h). What it computes it puts on the stream.
#include "tests/gpu/fake_cublaslt.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <set>
#include <vector>

#include "compiler/hlo/types.h"
#include "tests/gpu/fake_cuda.h"

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
enum { kInvalidValue = 7, kInternalError = 14, kNotSupported = 15 };

FakeCublasLt lt;
std::set<int> loaded;  // algorithms whose code was needed before

// What the heuristic was asked for.
struct Preference {
  size_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

// An algorithm's words: the mark, its number, the version that has it, what it assumes of addresses, and a workspace.
enum Word { kWordMark, kWordNumber, kWordVersion, kWordAlignment, kWordWorkspace };

// Epilogues exist for narrow floats and f32.
bool Supported(const Desc& d, const MatrixLayout& a, const MatrixLayout& out) {
  if (lt.refuse && lt.refuse(a.type, out.type, d.epilogue)) return false;
  if (d.epilogue != 1 && TypeOf(out.type) != PrimitiveType::F32 && TypeOf(out.type) != PrimitiveType::F16 &&
      TypeOf(out.type) != PrimitiveType::BF16)
    return false;
  return !(d.epilogue & 4) || d.bias != nullptr;
}

template <typename F>
F* Driver(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

// A product with everything that it needs when its turn comes.
struct Product {
  Desc d;
  MatrixLayout la, lb, lc, lo;
  const void *a, *b, *c;
  void* out;
  Complex x, y;
};

void Compute(const Product& p);

}  // namespace

extern "C" {

FakeCublasLt* fake_cublaslt(void) { return &lt; }

size_t cublasLtGetVersion(void) { return lt.version; }
int cublasLtCreate(void** handle) {
  if (lt.create_code) return lt.create_code;
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
  *out = new Preference;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<Preference*>(preference);
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* value, size_t bytes) {
  auto* p = static_cast<Preference*>(preference);
  if (attribute == 1 && bytes == sizeof(size_t)) {
    std::memcpy(&p->workspace, value, bytes);
    return 0;
  }
  if (attribute < 5 || attribute > 8 || bytes != 4) return kInvalidValue;
  std::memcpy(&p->alignment[attribute - 5], value, bytes);
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void*, void* desc, void* a, void* b, void* c, void* d, void* preference, int most,
                                   void* out, int* count) {
  *count = 0;
  if (!desc || !a || !b || !c || !d || !preference || most < 3) return kInvalidValue;
  if (lt.candidates == 0 ||
      !Supported(*static_cast<Desc*>(desc), *static_cast<MatrixLayout*>(a), *static_cast<MatrixLayout*>(d)))
    return kNotSupported;
  const auto* p = static_cast<Preference*>(preference);
  ++lt.heuristics;
  std::copy(p->alignment, p->alignment + 4, lt.alignment);
  const uint64_t least = *std::min_element(p->alignment, p->alignment + 4);
  auto* h = static_cast<Heuristic*>(out);
  for (int k = 0; k < std::min(lt.candidates, 3); ++k) {
    const int number = lt.reversed ? 2 - k : k;
    h[k] = {};
    h[k].algorithm[kWordMark] = kMark;
    h[k].algorithm[kWordNumber] = static_cast<uint64_t>(number);
    h[k].algorithm[kWordVersion] = lt.version;
    h[k].algorithm[kWordAlignment] = least;
    h[k].workspace = h[k].algorithm[kWordWorkspace] = std::min<size_t>(p->workspace, 1024);
    h[k].state = number == 1 ? kNotSupported : 0;
  }
  *count = std::min(lt.candidates, 3);
  return 0;
}
int cublasLtMatmulAlgoCheck(void*, void* desc, void* a, void*, void*, void* d, const void* algorithm, void* result) {
  const auto* words = static_cast<const uint64_t*>(algorithm);
  auto* h = static_cast<Heuristic*>(result);
  ++lt.checks;
  const bool known =
      words[kWordMark] == kMark && words[kWordNumber] != 1 && words[kWordVersion] == lt.version && !lt.reject_words;
  if (!known || !Supported(*static_cast<Desc*>(desc), *static_cast<MatrixLayout*>(a), *static_cast<MatrixLayout*>(d)))
    return kNotSupported;
  h->workspace = words[kWordWorkspace];
  h->state = 0;
  return 0;
}
int cublasLtMatmul(void*, void* desc, const void* alpha, const void* a, void* a_layout, const void* b, void* b_layout,
                   const void* beta, const void* c, void* c_layout, void* out, void* out_layout, const void* algorithm,
                   void*, size_t workspace, void* stream) {
  Product p{*static_cast<Desc*>(desc),
            *static_cast<MatrixLayout*>(a_layout),
            *static_cast<MatrixLayout*>(b_layout),
            *static_cast<MatrixLayout*>(c_layout),
            *static_cast<MatrixLayout*>(out_layout),
            a,
            b,
            c,
            out,
            0,
            0};
  const Desc& d = p.d;
  const MatrixLayout &la = p.la, &lb = p.lb, &lo = p.lo;
  const auto* words = static_cast<const uint64_t*>(algorithm);
  if (words[kWordMark] != kMark || words[kWordNumber] == 1 || words[kWordVersion] != lt.version) return kNotSupported;
  if (workspace < words[kWordWorkspace]) return kInvalidValue;
  if (lt.multiply_code) return lt.multiply_code;
  const auto number = static_cast<int>(words[kWordNumber]);
  if (lt.lazy && !loaded.count(number) && Driver<bool(void*)>("fake_cuda_recording")(stream)) return kInternalError;
  loaded.insert(number);
  const uint64_t m = d.transa ? la.columns : la.rows, k = d.transa ? la.rows : la.columns;
  const uint64_t n = d.transb ? lb.rows : lb.columns, kb = d.transb ? lb.columns : lb.rows;
  // 8-bit floats: both sides with the contracted dimension closest in memory, in sixteens.
  if ((la.type >= 28 || lb.type >= 28) && (!d.transa || d.transb || m % 16 || n % 16 || k % 16)) return kNotSupported;
  if (k != kb || m != lo.rows || n != lo.columns || la.batch != lo.batch || lb.batch != lo.batch) return kInvalidValue;
  lt.last_algorithm = number;
  lt.last_compute = d.compute;
  ++lt.products;
  const PrimitiveType scale = TypeOf(d.scale);
  p.x = Get(scale, alpha, 0);
  p.y = Get(scale, beta, 0);
  uint64_t addresses = 0;
  for (const void* address : {a, b, c, static_cast<const void*>(out)}) addresses |= reinterpret_cast<uint64_t>(address);
  const bool aligned = addresses % words[kWordAlignment] == 0;
  const std::function<int()> work = [p, aligned] {
    if (!aligned) return 716;
    Compute(p);
    return 0;
  };
  return Driver<int(void*, const std::function<int()>*)>("fake_cuda_do")(stream, &work) ? kInternalError : 0;
}

}  // extern "C"

namespace {

void Compute(const Product& p) {
  const Desc& d = p.d;
  const MatrixLayout &la = p.la, &lb = p.lb, &lc = p.lc, &lo = p.lo;
  const uint64_t m = lo.rows, n = lo.columns, k = d.transa ? la.rows : la.columns;
  const PrimitiveType ta = TypeOf(la.type), tb = TypeOf(lb.type), tc = TypeOf(lc.type), to = TypeOf(lo.type);
  for (int64_t g = 0; g < lo.batch; ++g)
    for (uint64_t j = 0; j < n; ++j)
      for (uint64_t i = 0; i < m; ++i) {
        Complex sum = 0;
        for (uint64_t q = 0; q < k; ++q) {
          const auto at_a = static_cast<int64_t>(d.transa ? q : i) + static_cast<int64_t>(d.transa ? i : q) * la.ld;
          const auto at_b = static_cast<int64_t>(d.transb ? j : q) + static_cast<int64_t>(d.transb ? q : j) * lb.ld;
          sum += Get(ta, p.a, g * la.stride + at_a) * Get(tb, p.b, g * lb.stride + at_b);
        }
        sum *= p.x;
        for (const void* s : {d.scale_a, d.scale_b})
          if (s) sum *= Get(PrimitiveType::F32, s, 0);
        const auto column = static_cast<int64_t>(j), row = static_cast<int64_t>(i);
        if (p.y != 0.0) sum += p.y * Get(tc, p.c, g * lc.stride + row + column * lc.ld);
        if (d.epilogue & 4) sum += Get(to, d.bias, row);
        if (d.epilogue & 2) {
          const bool nan = std::isnan(sum.real());
          sum = nan ? (lt.relu_drops_nan ? 0 : sum) : std::max(sum.real(), 0.0);
        }
        if (d.epilogue & 32) {
          const double v = sum.real();
          sum = 0.5 * v * (1 + std::tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
        }
        Put(to, p.out, g * lo.stride + row + column * lo.ld, sum);
      }
}

}  // namespace
