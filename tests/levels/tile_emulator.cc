#include "tests/levels/tile_emulator.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kiln {
namespace {

constexpr int kTiles = 8, kRows = 16, kRowBytes = 64, kWords = kRowBytes / 4;

// As LDTILECFG reads them.
struct Configuration {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(Configuration) == 64);

struct TileRegisters {
  Configuration shape;
  uint8_t tile[kTiles][kRows][kRowBytes];
};
thread_local TileRegisters registers;
std::atomic<long> executed{0};

enum Prefix { kNone, k66, kF3, kF2 };  // the field pp of VEX

// An instruction C4 ... of the map 0F38, as all of AMX are.
struct Decoded {
  Prefix prefix;
  int opcode;
  bool memory;
  int reg, rm, vvvv;        // tiles; rm only without memory
  uint8_t* base = nullptr;  // of memory, displacement included
  int64_t stride = 0;       // the index times its scale
  int64_t length;           // bytes
};

[[noreturn]] void Refuse(const uint8_t* at, const char* why) {
  char line[96];
  const int n = std::snprintf(line, sizeof line, "tile emulator: %s: %02x %02x %02x %02x %02x\n", why, at[0], at[1],
                              at[2], at[3], at[4]);
  if (write(STDERR_FILENO, line, static_cast<size_t>(n)) != n) std::abort();
  std::abort();
}

int64_t Displacement(const uint8_t** at, int bytes) {
  int32_t value = 0;
  if (bytes == 1)
    value = static_cast<int8_t>(**at);
  else
    std::memcpy(&value, *at, 4);
  *at += bytes;
  return value;
}

Decoded Decode(const uint8_t* at, const greg_t* general) {
  constexpr int kByNumber[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                               REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  constexpr int kMap0F38 = 2;
  if (at[0] != 0xc4 || (at[1] & 31) != kMap0F38) Refuse(at, "an instruction of something else");
  Decoded d{};
  const int high_index = at[1] & 0x40 ? 0 : 8, high_base = at[1] & 0x20 ? 0 : 8;
  const int mod = at[4] >> 6, rm = at[4] & 7;
  d.prefix = static_cast<Prefix>(at[2] & 3);
  d.vvvv = ~(at[2] >> 3) & 15;
  d.opcode = at[3];
  d.reg = at[4] >> 3 & 7;
  d.rm = rm;
  d.memory = mod != 3;
  const uint8_t* next = at + 5;
  if (d.memory) {
    constexpr int kSib = 4, kNoIndex = 4, kNoBase = 5;
    int base = rm;
    if (rm == kSib) {
      const int sib = *next++, index = (sib >> 3 & 7) | high_index;
      base = sib & 7;
      if (index != kNoIndex) d.stride = general[kByNumber[index]] * (int64_t{1} << (sib >> 6));
    }
    int64_t address = 0;
    if (mod == 0 && base == kNoBase) {
      address = Displacement(&next, 4);
      if (rm == kNoBase) address += reinterpret_cast<int64_t>(next);
    } else {
      address = general[kByNumber[base | high_base]];
      if (mod != 0) address += Displacement(&next, mod == 1 ? 1 : 4);
    }
    d.base = reinterpret_cast<uint8_t*>(address);
  }
  d.length = next - at;
  return d;
}

int RowsOf(int tile) { return registers.shape.rows[tile]; }
int BytesOf(int tile) { return registers.shape.row_bytes[tile]; }

void Configure(const Decoded& d, const uint8_t* at) {
  if (!d.memory) {
    if (d.prefix == kF2)  // TILEZERO
      std::memset(registers.tile[d.reg], 0, sizeof registers.tile[d.reg]);
    else if (d.prefix == kNone)  // TILERELEASE
      registers = {};
    else
      Refuse(at, "unknown");
  } else if (d.prefix == kNone) {  // LDTILECFG
    registers = {};
    std::memcpy(&registers.shape, d.base + d.stride, sizeof registers.shape);
    if (registers.shape.palette != 1) Refuse(at, "a palette that does not exist");
    for (int t = 0; t < kTiles; ++t)
      if (RowsOf(t) > kRows || BytesOf(t) > kRowBytes || (RowsOf(t) == 0) != (BytesOf(t) == 0))
        Refuse(at, "a tile of no possible shape");
  } else if (d.prefix == k66) {  // STTILECFG
    std::memcpy(d.base + d.stride, &registers.shape, sizeof registers.shape);
  } else {
    Refuse(at, "unknown");
  }
}

void Move(const Decoded& d, const uint8_t* at) {
  if (!d.memory || !RowsOf(d.reg)) Refuse(at, "a tile that is not configured");
  auto& tile = registers.tile[d.reg];
  const auto bytes = static_cast<size_t>(BytesOf(d.reg));
  if (d.prefix == kF2 || d.prefix == k66) {  // TILELOADD, TILELOADDT1
    std::memset(tile, 0, sizeof tile);
    for (int r = 0; r < RowsOf(d.reg); ++r) std::memcpy(tile[r], d.base + r * d.stride, bytes);
  } else if (d.prefix == kF3) {  // TILESTORED
    for (int r = 0; r < RowsOf(d.reg); ++r) std::memcpy(d.base + r * d.stride, tile[r], bytes);
  } else {
    Refuse(at, "unknown");
  }
}

int Byte(uint8_t x, bool is_signed) { return is_signed ? static_cast<int8_t>(x) : x; }

// TDPBSSD, TDPBSUD, TDPBUSD, TDPBUUD: a row of results.
void AddBytes(const Decoded& d, const uint8_t* a, uint32_t* c) {
  const bool a_signed = d.prefix == kF2 || d.prefix == kF3, b_signed = d.prefix == kF2 || d.prefix == k66;
  for (int k = 0; k < BytesOf(d.rm) / 4; ++k)
    for (int n = 0; n < BytesOf(d.reg) / 4; ++n)
      for (int i = 0; i < 4; ++i)
        c[n] +=
            static_cast<uint32_t>(Byte(a[4 * k + i], a_signed) * Byte(registers.tile[d.vvvv][k][4 * n + i], b_signed));
}

// Subnormal numbers count as zero.
float Bf16(const uint8_t* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  if ((bits & 0x7f80) == 0) bits &= 0x8000;
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// TDPBF16PS: even and odd elements of k have sums of their own.
void AddBf16(const Decoded& d, const uint8_t* a, float* c) {
  float even[kWords] = {}, odd[kWords] = {};
  for (int k = 0; k < BytesOf(d.rm) / 4; ++k)
    for (int n = 0; n < BytesOf(d.reg) / 4; ++n) {
      const uint8_t* b = &registers.tile[d.vvvv][k][4 * n];
      even[n] = std::fma(Bf16(a + 4 * k), Bf16(b), even[n]);
      odd[n] = std::fma(Bf16(a + 4 * k + 2), Bf16(b + 2), odd[n]);
    }
  for (int n = 0; n < BytesOf(d.reg) / 4; ++n) c[n] += even[n] + odd[n];
}

void Multiply(const Decoded& d, const uint8_t* at, bool bytes) {
  const int c = d.reg, a = d.rm, b = d.vvvv;
  if (d.memory || b >= kTiles || a == b || a == c || b == c) Refuse(at, "no three tiles");
  if (!RowsOf(a) || !RowsOf(b) || !RowsOf(c)) Refuse(at, "a tile that is not configured");
  if (RowsOf(a) != RowsOf(c) || BytesOf(b) != BytesOf(c) || 4 * RowsOf(b) != BytesOf(a))
    Refuse(at, "shapes that do not go together");
  for (int m = 0; m < RowsOf(c); ++m) {
    uint8_t* row = registers.tile[c][m];
    if (bytes) {
      uint32_t sums[kWords];
      std::memcpy(sums, row, sizeof sums);
      AddBytes(d, registers.tile[a][m], sums);
      std::memcpy(row, sums, sizeof sums);
    } else {
      float sums[kWords];
      std::memcpy(sums, row, sizeof sums);
      AddBf16(d, registers.tile[a][m], sums);
      std::memcpy(row, sums, sizeof sums);
    }
  }
}

void Execute(int, siginfo_t*, void* context) {
  greg_t* general = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* at = reinterpret_cast<const uint8_t*>(general[REG_RIP]);
  const Decoded d = Decode(at, general);
  constexpr int kConfigure = 0x49, kMove = 0x4b, kBf16 = 0x5c, kBytes = 0x5e;
  if (d.opcode == kConfigure)
    Configure(d, at);
  else if (d.opcode == kMove)
    Move(d, at);
  else if (d.opcode == kBytes || (d.opcode == kBf16 && d.prefix == kF3))
    Multiply(d, at, d.opcode == kBytes);
  else
    Refuse(at, "unknown");
  executed.fetch_add(1, std::memory_order_relaxed);
  general[REG_RIP] += d.length;
}

}  // namespace

void EmulateTiles() {
  struct sigaction action = {};
  action.sa_sigaction = Execute;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(SIGILL, &action, nullptr)) std::abort();
}

long EmulatedTileInstructions() { return executed.load(); }

}  // namespace kiln
