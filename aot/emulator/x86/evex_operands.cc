#include "aot/emulator/x86/evex_operands.h"

#include <cstring>

namespace kiln::x86 {

EvexOperands::EvexOperands(const Decoded& d, VectorRegisters* registers)
    : d_(d),
      registers_(registers),
      old_(registers->Read(d.reg)),
      second_(registers->Read(d.vvvv)),
      source_(d.memory ? Vector() : registers->Read(d.rm)),
      enabled_(d.mask ? registers->Mask(d.mask) : ~uint64_t{0}) {
  if (d.broadcast && !d.memory) Refuse(d.at, "that states its rounding");
}

uint64_t EvexOperands::Element(const Vector& v, int k, int bytes) {
  uint64_t out = 0;
  std::memcpy(&out, v.byte + k * bytes, static_cast<size_t>(bytes));
  return out;
}

uint64_t EvexOperands::Source(int k, int bytes, int operand_bytes) const {
  if (!d_.memory) return Element(source_, k, bytes);
  uint64_t out = 0;
  const uint8_t* at = d_.broadcast ? d_.Address(bytes) : d_.Address(operand_bytes) + k * bytes;
  std::memcpy(&out, at, static_cast<size_t>(bytes));
  return out;
}

// Elements that are not enabled are not computed: what they would read may not be there.
void EvexOperands::PutInto(Vector out, int count, int bytes, const std::function<uint64_t(int k)>& element) const {
  for (int k = 0; k < count; ++k) {
    const uint64_t value = Enabled(k) ? element(k) : d_.zeroes ? 0 : Old(k, bytes);
    std::memcpy(out.byte + k * bytes, &value, static_cast<size_t>(bytes));
  }
  registers_->Write(d_.reg, out);
}

void EvexOperands::Put(int count, int bytes, const std::function<uint64_t(int k)>& element) const {
  PutInto({}, count, bytes, element);
}

void EvexOperands::PutScalar(int bytes, const Vector& above, const std::function<uint64_t(int k)>& element) const {
  Vector out;
  std::memcpy(out.byte, above.byte, 16);
  PutInto(out, 1, bytes, element);
}

}  // namespace kiln::x86
