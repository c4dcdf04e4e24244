// Instructions in the encodings of the emulated extensions: VEX of three bytes, and EVEX.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace kiln::x86 {

enum class Encoding { kVex, kEvex };
enum class Prefix { kNone, k66, kF3, kF2 };  // the field pp
enum Map { k0F38 = 2, k0F3A = 3, kMap5 = 5, kMap6 = 6 };

struct Decoded {
  const uint8_t* at;  // its first byte
  int64_t length;     // bytes
  Encoding encoding;
  int map;
  Prefix prefix;
  int opcode;
  bool w;
  int vector_bytes;                            // 16, 32 or 64
  int reg, rm, vvvv;                           // numbers of registers; rm only without memory
  int mask = 0;                                // of EVEX: a mask register, 0 for none
  bool zeroes = false;                         // masked elements become zero rather than stay
  bool broadcast = false;                      // with memory: one element for all; without: rounding is stated
  bool memory = false;                         // the operand rm lies in memory
  int64_t base = 0, stride = 0, scalable = 0;  // its address without the index; the index times its scale; a
                                               // displacement in units of the operand's size
  int immediate = 0;

  // The operand's address; `size`: what EVEX scales a displacement of one byte by.
  uint8_t* Address(int64_t size) const { return reinterpret_cast<uint8_t*>(base + stride + scalable * size); }
};

// The instruction that the context stands at; ends the process where it is in no encoding of these.
Decoded Decode(const ucontext_t& context);

// Register `number`, 0 (RAX) to 15, of the thread.
greg_t* GeneralRegister(ucontext_t* context, int number);

// Ends the process, saying why and the bytes at `at`. May be called by a signal handler.
[[noreturn]] void Refuse(const uint8_t* at, const char* why);

}  // namespace kiln::x86
