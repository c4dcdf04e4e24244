#include "aot/emulator/x86/decode.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kiln::x86 {
namespace {

constexpr int kByNumber[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                             REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
constexpr uint8_t kVex3 = 0xc4, kEvex = 0x62;

// What a prefix adds to the numbers of registers; all bits of theirs are stored inverted.
struct HighBits {
  int reg, index, base;
};

int32_t Displacement(const uint8_t* at, int bytes) {
  int32_t value = static_cast<int8_t>(*at);
  if (bytes == 4) std::memcpy(&value, at, 4);
  return value;
}

// ModRM and what follows it, from `next`; returns the byte behind.
const uint8_t* DecodeOperands(const uint8_t* next, const HighBits& high, int immediate_bytes, const greg_t* general,
                              Decoded* d) {
  constexpr int kSib = 4, kNoIndex = 4, kNoBase = 5, kRegister = 3;
  const int mod = *next >> 6, rm = *next & 7;
  d->reg = (*next++ >> 3 & 7) | high.reg;
  d->memory = mod != kRegister;
  if (!d->memory) {
    d->rm = rm | high.base | (d->encoding == Encoding::kEvex ? high.index << 1 : 0);
    return next;
  }
  int base = rm;
  if (rm == kSib) {
    const int sib = *next++, index = (sib >> 3 & 7) | high.index;
    base = sib & 7;
    if (index != kNoIndex) d->stride = general[kByNumber[index]] * (int64_t{1} << (sib >> 6));
  }
  if (mod == 0 && base == kNoBase) {
    d->base = Displacement(next, 4);
    next += 4;
    if (rm == kNoBase) d->base += reinterpret_cast<int64_t>(next + immediate_bytes);
    return next;
  }
  d->base = general[kByNumber[base | high.base]];
  if (mod == 2) {
    d->base += Displacement(next, 4);
    return next + 4;
  }
  if (mod == 0) return next;
  (d->encoding == Encoding::kEvex ? d->scalable : d->base) += Displacement(next, 1);
  return next + 1;
}

}  // namespace

Decoded Decode(const ucontext_t& context) {
  const greg_t* general = context.uc_mcontext.gregs;
  const auto* at = reinterpret_cast<const uint8_t*>(general[REG_RIP]);
  Decoded d{};
  d.at = at;
  HighBits high = {at[1] & 0x80 ? 0 : 8, at[1] & 0x40 ? 0 : 8, at[1] & 0x20 ? 0 : 8};
  d.w = at[2] & 0x80;
  d.vvvv = ~(at[2] >> 3) & 15;
  d.prefix = static_cast<Prefix>(at[2] & 3);
  const uint8_t* next;
  if (at[0] == kVex3) {
    d.encoding = Encoding::kVex;
    d.map = at[1] & 31;
    d.vector_bytes = at[2] & 4 ? 32 : 16;
    next = at + 3;
  } else if (at[0] == kEvex) {
    d.encoding = Encoding::kEvex;
    d.map = at[1] & 7;
    high.reg |= at[1] & 0x10 ? 0 : 16;
    d.vvvv |= at[3] & 8 ? 0 : 16;
    d.vector_bytes = 16 << (at[3] >> 5 & 3);
    d.mask = at[3] & 7;
    d.zeroes = at[3] & 0x80;
    d.broadcast = at[3] & 0x10;
    next = at + 4;
  } else {
    Refuse(at, "of something else");
  }
  d.opcode = *next++;
  const int immediate_bytes = d.map == k0F3A ? 1 : 0;
  next = DecodeOperands(next, high, immediate_bytes, general, &d);
  if (immediate_bytes) d.immediate = *next;
  d.length = next + immediate_bytes - at;
  return d;
}

greg_t* GeneralRegister(ucontext_t* context, int number) { return &context->uc_mcontext.gregs[kByNumber[number]]; }

void Refuse(const uint8_t* at, const char* why) {
  char line[128];
  const int n =
      std::snprintf(line, sizeof line, "error: an instruction %s cannot be emulated: %02x %02x %02x %02x %02x %02x\n",
                    why, at[0], at[1], at[2], at[3], at[4], at[5]);
  if (write(STDERR_FILENO, line, static_cast<size_t>(n)) != n) std::abort();
  std::abort();
}

}  // namespace kiln::x86
