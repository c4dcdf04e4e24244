#include "aot/emulator/routines.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <vector>

#include "compiler/hlo/literal.h"

namespace kiln {
namespace {

enum GemmNumber {
  kIn,
  kOut,
  kBatch,
  kM,
  kN,
  kK,
  kTurnedA,
  kTurnedB,
  kStrideA,
  kStrideB,
  kAlpha,
  kBeta,
  kEpilogue,
  kInB,
  kScaled
};
enum Epilogue { kBias = 1, kRelu = 2, kGelu = 4 };

double Double(int64_t bits) {
  double v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}

template <typename T>
T As(const Element& e, PrimitiveType t) {
  if constexpr (std::is_same_v<T, std::complex<double>>)
    return {e.re, e.im};
  else
    return IsFloat(t) ? static_cast<T>(e.re) : static_cast<T>(e.i);
}

// `count` elements at `from` as a literal, whose types know how to be read.
Literal View(PrimitiveType t, const void* from, int64_t first, int64_t count) {
  Literal l(Shape::Array(t, {count}));
  const int64_t width = l.byte_size() / std::max<int64_t>(count, 1);
  std::memcpy(l.mutable_data(), static_cast<const char*>(from) + first * width, static_cast<size_t>(l.byte_size()));
  return l;
}

template <typename T>
std::vector<T> Read(PrimitiveType t, const void* from, int64_t first, int64_t count) {
  const Literal l = View(t, from, first, count);
  std::vector<T> out(static_cast<size_t>(count));
  if constexpr (std::is_same_v<T, float>)
    if (t == PrimitiveType::F32) {
      std::memcpy(out.data(), l.data(), static_cast<size_t>(l.byte_size()));
      return out;
    }
  for (int64_t k = 0; k < count; ++k) out[static_cast<size_t>(k)] = As<T>(l.Get(k), t);
  return out;
}

template <typename T>
std::vector<T> Turned(const std::vector<T>& x, int64_t rows, int64_t columns) {
  std::vector<T> out(x.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      out[static_cast<size_t>(c * rows + r)] = x[static_cast<size_t>(r * columns + c)];
  return out;
}

// c[m, n] += a[m, k] * b[k, n]
template <typename T>
void Multiply(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t q = 0; q < k; ++q) {
      const T x = a[i * k + q];
      const T* row = b + q * n;
      T* out = c + i * n;
      for (int64_t j = 0; j < n; ++j) out[j] += x * row[j];
    }
}

template <typename T>
T Activate(T v, int64_t epilogue) {
  if constexpr (std::is_floating_point_v<T>) {
    if (epilogue & kRelu) v = v > 0 || std::isnan(v) ? v : 0;
    if (epilogue & kGelu) {
      const double x = static_cast<double>(v);
      v = static_cast<T>(0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))));
    }
  }
  return v;
}

template <typename T>
void Gemm(const int64_t* v, void* const* buffers) {
  const auto in = *TypeFromProto(static_cast<int>(v[kIn])), in_b = *TypeFromProto(static_cast<int>(v[kInB])),
             out_type = *TypeFromProto(static_cast<int>(v[kOut]));
  const int64_t m = v[kM], n = v[kN], k = v[kK];
  double alpha = Double(v[kAlpha]);
  const double beta = Double(v[kBeta]);
  size_t next = 2;
  if (v[kScaled])
    for (int side = 0; side < 2; ++side) alpha *= View(PrimitiveType::F32, buffers[next++], 0, 1).Get(0).re;
  const void* c = beta != 0 ? buffers[next++] : nullptr;
  const void* bias = v[kEpilogue] & kBias ? buffers[next++] : nullptr;
  char* out = static_cast<char*>(buffers[next]);
  const std::vector<T> added = bias ? Read<T>(out_type, bias, 0, n) : std::vector<T>();
  for (int64_t g = 0; g < v[kBatch]; ++g) {
    std::vector<T> a = Read<T>(in, buffers[0], g * v[kStrideA], m * k),
                   b = Read<T>(in_b, buffers[1], g * v[kStrideB], k * n);
    if (v[kTurnedA]) a = Turned(a, k, m);
    if (v[kTurnedB]) b = Turned(b, n, k);
    std::vector<T> sum(static_cast<size_t>(m * n));
    Multiply(a.data(), b.data(), sum.data(), m, n, k);
    const std::vector<T> old = c ? Read<T>(out_type, c, g * m * n, m * n) : std::vector<T>();
    Literal result(Shape::Array(out_type, {m * n}));
    for (int64_t e = 0; e < m * n; ++e) {
      T x = sum[static_cast<size_t>(e)];
      if (alpha != 1) x = x * static_cast<T>(alpha);
      if (c) x = x + old[static_cast<size_t>(e)] * static_cast<T>(beta);
      if (bias) x = x + added[static_cast<size_t>(e % n)];
      x = Activate(x, v[kEpilogue]);
      Element value;
      if constexpr (std::is_same_v<T, std::complex<double>>) {
        value.re = x.real();
        value.im = x.imag();
      } else if constexpr (std::is_integral_v<T>) {
        value.i = x;
      } else {
        value.re = static_cast<double>(x);
      }
      result.Set(e, value);
    }
    std::memcpy(out + g * result.byte_size(), result.data(), static_cast<size_t>(result.byte_size()));
  }
}

int32_t EmulateGemm(const int64_t* v, void* const* buffers) {
  const auto type = TypeFromProto(static_cast<int>(v[kIn]));
  if (!type || !TypeFromProto(static_cast<int>(v[kInB]))) return 1;
  if (IsComplex(*type))
    Gemm<std::complex<double>>(v, buffers);
  else if (!IsFloat(*type))
    Gemm<int64_t>(v, buffers);
  else if (*type == PrimitiveType::F64)
    Gemm<double>(v, buffers);
  else
    Gemm<float>(v, buffers);
  return 0;
}

}  // namespace

int32_t EmulateRoutine(const kiln_gpu_call& call, void* const* buffers) {
  return call.routine == KILN_GPU_GEMM ? EmulateGemm(call.numbers, buffers) : 1;
}

}  // namespace kiln
