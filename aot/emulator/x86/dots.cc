// AVX-VNNI.
#include <algorithm>
#include <cstring>
#include <limits>

#include "aot/emulator/x86/extensions.h"

namespace kiln::x86 {
namespace {

// The sum of products in one lane of 32 bits.
int64_t Products(const Vector& a, const Vector& b, int lane, bool bytes) {
  int64_t sum = 0;
  if (bytes)
    for (int k = 4 * lane; k < 4 * lane + 4; ++k) sum += a.Get<uint8_t>(k) * b.Get<int8_t>(k);
  else
    for (int k = 2 * lane; k < 2 * lane + 2; ++k) sum += a.Get<int16_t>(k) * b.Get<int16_t>(k);
  return sum;
}

}  // namespace

bool ExecuteDots(const Decoded& d, VectorRegisters* registers) {
  constexpr int kBytes = 0x50, kBytesSaturating = 0x51, kWords = 0x52, kWordsSaturating = 0x53;
  if (d.encoding != Encoding::kVex || d.map != k0F38 || d.prefix != Prefix::k66 || d.w || d.opcode < kBytes ||
      d.opcode > kWordsSaturating)
    return false;
  const bool bytes = d.opcode < kWords, saturating = d.opcode == kBytesSaturating || d.opcode == kWordsSaturating;
  const Vector a = registers->Read(d.vvvv), c = registers->Read(d.reg);
  Vector b, out;
  if (d.memory)
    std::memcpy(b.byte, d.Address(d.vector_bytes), static_cast<size_t>(d.vector_bytes));
  else
    b = registers->Read(d.rm);
  for (int lane = 0; lane < d.vector_bytes / 4; ++lane) {
    int64_t sum = c.Get<int32_t>(lane) + Products(a, b, lane, bytes);
    if (saturating)
      sum = std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
    out.Set(lane, static_cast<uint32_t>(sum));
  }
  registers->Write(d.reg, out);
  return true;
}

}  // namespace kiln::x86
