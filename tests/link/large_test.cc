// Large results where a line of the caches begins, where none does, and in place of an operand: kernels store them past
// the caches only in the first case.
#include "tests/link/large.h"

#include <cstdint>
#include <cstdio>
#include <vector>

#include "tests/link/expect.h"

namespace {

constexpr std::size_t kLength = 3145792, kRows = 4096, kColumns = 1040, kLine = 64;

struct Room {
  explicit Room(std::size_t n) : floats(n + kLine) {}
  float* At(std::size_t behind_line) {
    float* p = floats.data();
    while (reinterpret_cast<std::uintptr_t>(p) % kLine) ++p;
    return p + behind_line;
  }
  std::vector<float> floats;
};

float X(std::size_t k) { return static_cast<float>(k % 10007); }
float Y(std::size_t row, std::size_t column) { return static_cast<float>((row * 7 + column * 31) % 4099); }

void Run(std::size_t behind_line) {
  Room x(kLength), y(kRows * kColumns), z(kLength), line(kLength), twice(kRows * kColumns), below(kRows * kColumns);
  for (std::size_t k = 0; k < kLength; ++k) x.At(0)[k] = z.At(behind_line)[k] = X(k);
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t c = 0; c < kColumns; ++c) y.At(0)[r * kColumns + c] = Y(r, c);
  large::Context context;
  using M = large;
  Expect(
      M::run(context, M::Argument_x::Unchecked(x.At(0)), M::Argument_y::Unchecked(y.At(0)),
             M::Argument_z::Unchecked(z.At(behind_line)), M::Result_result0::Unchecked(line.At(behind_line)),
             M::Result_result1::Unchecked(twice.At(behind_line)), M::Result_result2::Unchecked(below.At(behind_line)))
          .ok(),
      "runs");
  std::size_t wrong = 0;
  for (std::size_t k = 0; k < kLength; ++k)
    wrong += line.At(behind_line)[k] != X(k) + 1 || z.At(behind_line)[k] != X(k) + 1;
  for (std::size_t r = 0; r < kRows; ++r) {
    float top = 0;
    for (std::size_t c = 0; c < kColumns; ++c) top = Y(r, c) > top ? Y(r, c) : top;
    for (std::size_t c = 0; c < kColumns; ++c) {
      const std::size_t k = r * kColumns + c;
      wrong += twice.At(behind_line)[k] != 2 * Y(r, c) || below.At(behind_line)[k] != Y(r, c) - top;
    }
  }
  Expect(wrong == 0, "each element at its place");
  Expect(line.At(behind_line)[kLength] == 0 && below.At(behind_line)[kRows * kColumns] == 0, "nothing behind them");
}

}  // namespace

int main() {
  Run(0);
  Run(1);
  Run(16);
  if (!failures) std::printf("large: ok\n");
  return failures != 0;
}
