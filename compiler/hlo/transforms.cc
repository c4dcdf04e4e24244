#include "compiler/hlo/transforms.h"

#include <algorithm>

namespace kiln {

std::vector<int64_t> RadicesOf(int64_t n) {
  std::vector<int64_t> out;
  for (const int64_t r : {4, 2, 3, 5, 7, 11, 13})
    for (; n % r == 0; n /= r) out.push_back(r);
  return n == 1 ? out : std::vector<int64_t>();
}

int64_t LinesInBlock(int64_t n, PrimitiveType component) {
  constexpr int64_t kMostShared = 48 << 10;  // bytes that every GPU's block has
  if (n > 1 && RadicesOf(n).empty()) return 0;
  return kMostShared / (4 * n * ByteWidth(component));
}

bool IsBlockTransform(const Instruction* i) {
  if (!i->Is(Opcode::Fft) || i->shape().ElementCount() == 0) return false;
  const Ints& length = *i->attrs().fft_length;
  const PrimitiveType t = ComponentType(i->shape().type());
  return std::all_of(length.begin(), length.end(), [&](int64_t n) { return n > 0 && LinesInBlock(n, t) > 0; });
}

}  // namespace kiln
