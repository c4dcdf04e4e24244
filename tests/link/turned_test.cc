// Large transposed arrays where a line of the caches begins, and where none does: the kernel has code for both.
#include "tests/link/turned.h"

#include <cstdint>
#include <cstdio>
#include <vector>

#include "tests/link/expect.h"

namespace {

constexpr std::size_t kN = 2048, kHalf = 1024, kLine = 64;

template <typename T>
T* AtLine(std::vector<T>& room) {
  T* p = room.data();
  while (reinterpret_cast<std::uintptr_t>(p) % kLine) ++p;
  return p;
}

template <typename T>
void ExpectTurned(const std::vector<T>& in, const T* out, std::size_t columns, T more) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kN; ++i)
    for (std::size_t j = 0; j < columns; ++j) wrong += out[i * columns + j] != in[j * kN + i] + more;
  Expect(wrong == 0, "each element at its place");
}

void Run(const std::vector<float>& x, const std::vector<double>& y, float* r, double* s) {
  turned::Context context;
  using M = turned;
  Expect(M::run(context, M::Argument_x::Unchecked(x.data()), M::Argument_y::Unchecked(y.data()),
                M::Result_result0::Unchecked(r), M::Result_result1::Unchecked(s))
             .ok(),
         "runs");
  ExpectTurned<float>(x, r, kN, 1);
  ExpectTurned<double>(y, s, kHalf, 0);
}

}  // namespace

int main() {
  std::vector<float> x(kN * kN), r(kN * kN + kLine);
  std::vector<double> y(kN * kHalf), s(kN * kHalf + kLine);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 10007);
  for (std::size_t k = 0; k < y.size(); ++k) y[k] = static_cast<double>(k);
  Run(x, y, AtLine(r), AtLine(s));
  Run(x, y, AtLine(r) + 1, AtLine(s) + 1);
  if (!failures) std::printf("turned: ok\n");
  return failures != 0;
}
