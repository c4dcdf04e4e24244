// The operands of an EVEX instruction, by elements: masks, broadcasts, and what becomes of elements that are not
// computed.
#pragma once

#include <cstdint>
#include <functional>

#include "aot/emulator/x86/decode.h"
#include "aot/emulator/x86/registers.h"

namespace kiln::x86 {

class EvexOperands {
 public:
  EvexOperands(const Decoded& d, VectorRegisters* registers);

  // Element `k`, of `bytes`, of register reg as it was, of register vvvv, and of the operand rm. In memory that has
  // `operand_bytes`, or is one element for all.
  uint64_t Old(int k, int bytes) const { return Element(old_, k, bytes); }
  uint64_t Second(int k, int bytes) const { return Element(second_, k, bytes); }
  uint64_t Source(int k, int bytes, int operand_bytes) const;

  bool Enabled(int k) const { return enabled_ >> k & 1; }

  // Writes `count` elements to register reg, and zeros above.
  void Put(int count, int bytes, const std::function<uint64_t(int k)>& element) const;
  // Writes one, number 0, and what `above`, reg or vvvv, has above it in its first 16 bytes.
  void PutScalar(int bytes, const Vector& above, const std::function<uint64_t(int k)>& element) const;
  const Vector& old() const { return old_; }
  const Vector& second() const { return second_; }

 private:
  static uint64_t Element(const Vector& v, int k, int bytes);
  void PutInto(Vector out, int count, int bytes, const std::function<uint64_t(int k)>& element) const;

  const Decoded& d_;
  VectorRegisters* registers_;
  const Vector old_, second_, source_;  // source_: of a register
  const uint64_t enabled_;
};

}  // namespace kiln::x86
