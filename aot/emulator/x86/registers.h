// Vector and mask registers of a thread that a signal stopped, in the frame that the kernel restores from.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace kiln::x86 {

// A register, or a part of one. Little-endian.
struct Vector {
  alignas(64) uint8_t byte[64] = {};

  template <typename T>
  T Get(int k) const {
    T value;
    __builtin_memcpy(&value, byte + k * static_cast<int>(sizeof(T)), sizeof value);
    return value;
  }
  template <typename T>
  void Set(int k, T value) {
    __builtin_memcpy(byte + k * static_cast<int>(sizeof(T)), &value, sizeof value);
  }
};

class VectorRegisters {
 public:
  explicit VectorRegisters(const ucontext_t& context);

  // All that the machine has of register `number`; zeros beyond.
  Vector Read(int number) const;
  // The whole register.
  void Write(int number, const Vector& value);
  uint64_t Mask(int number) const;
  void WriteMask(int number, uint64_t value);

 private:
  bool InUse(int component) const;
  uint8_t* Part(int component) const;  // of the frame; nullptr where the machine has no such state
  uint8_t* MakeInUse(int component, int bytes);

  uint8_t* frame_;
};

}  // namespace kiln::x86
