// AMX-TILE, AMX-INT8 and AMX-BF16.
#include <cmath>
#include <cstring>
#include <limits>

#include "aot/emulator/x86/extensions.h"

namespace kiln::x86 {
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

int RowsOf(int tile) { return registers.shape.rows[tile]; }
int BytesOf(int tile) { return registers.shape.row_bytes[tile]; }

uint8_t* Row(const Decoded& d, int r) { return reinterpret_cast<uint8_t*>(d.base + r * d.stride); }

void Configure(const Decoded& d) {
  if (!d.memory) {
    if (d.prefix == Prefix::kF2)  // TILEZERO
      std::memset(registers.tile[d.reg], 0, sizeof registers.tile[d.reg]);
    else if (d.prefix == Prefix::kNone)  // TILERELEASE
      registers = {};
    else
      Refuse(d.at, "unknown");
  } else if (d.prefix == Prefix::kNone) {  // LDTILECFG
    registers = {};
    std::memcpy(&registers.shape, d.Address(1), sizeof registers.shape);
    if (registers.shape.palette != 1) Refuse(d.at, "with a palette that does not exist");
    for (int t = 0; t < kTiles; ++t)
      if (RowsOf(t) > kRows || BytesOf(t) > kRowBytes || (RowsOf(t) == 0) != (BytesOf(t) == 0))
        Refuse(d.at, "with a tile of no possible shape");
  } else if (d.prefix == Prefix::k66) {  // STTILECFG
    std::memcpy(d.Address(1), &registers.shape, sizeof registers.shape);
  } else {
    Refuse(d.at, "unknown");
  }
}

void Move(const Decoded& d) {
  if (!d.memory || !RowsOf(d.reg)) Refuse(d.at, "with a tile that is not configured");
  auto& tile = registers.tile[d.reg];
  const auto bytes = static_cast<size_t>(BytesOf(d.reg));
  if (d.prefix == Prefix::kF2 || d.prefix == Prefix::k66) {  // TILELOADD, TILELOADDT1
    std::memset(tile, 0, sizeof tile);
    for (int r = 0; r < RowsOf(d.reg); ++r) std::memcpy(tile[r], Row(d, r), bytes);
  } else if (d.prefix == Prefix::kF3) {  // TILESTORED
    for (int r = 0; r < RowsOf(d.reg); ++r) std::memcpy(Row(d, r), tile[r], bytes);
  } else {
    Refuse(d.at, "unknown");
  }
}

int Byte(uint8_t x, bool is_signed) { return is_signed ? static_cast<int8_t>(x) : x; }

// TDPBSSD, TDPBSUD, TDPBUSD, TDPBUUD: a row of results.
void AddBytes(const Decoded& d, const uint8_t* a, uint32_t* c) {
  const bool a_signed = d.prefix == Prefix::kF2 || d.prefix == Prefix::kF3,
             b_signed = d.prefix == Prefix::kF2 || d.prefix == Prefix::k66;
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

float Flushed(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

// TDPBF16PS: even and odd elements of k have sums of their own. A machine with what amx adds tiles to multiplies and
// adds in one instruction.
__attribute__((target("fma"))) void AddBf16(const Decoded& d, const uint8_t* a, float* c) {
  float even[kWords] = {}, odd[kWords] = {};
  for (int k = 0; k < BytesOf(d.rm) / 4; ++k)
    for (int n = 0; n < BytesOf(d.reg) / 4; ++n) {
      const uint8_t* b = &registers.tile[d.vvvv][k][4 * n];
      even[n] = Flushed(std::fma(Bf16(a + 4 * k), Bf16(b), even[n]));
      odd[n] = Flushed(std::fma(Bf16(a + 4 * k + 2), Bf16(b + 2), odd[n]));
    }
  for (int n = 0; n < BytesOf(d.reg) / 4; ++n) c[n] = Flushed(c[n] + Flushed(even[n] + odd[n]));
}

void Multiply(const Decoded& d, bool bytes) {
  const int c = d.reg, a = d.rm, b = d.vvvv;
  if (d.memory || b >= kTiles || a == b || a == c || b == c) Refuse(d.at, "without three tiles");
  if (!RowsOf(a) || !RowsOf(b) || !RowsOf(c)) Refuse(d.at, "with a tile that is not configured");
  if (RowsOf(a) != RowsOf(c) || BytesOf(b) != BytesOf(c) || 4 * RowsOf(b) != BytesOf(a))
    Refuse(d.at, "with shapes that do not go together");
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

}  // namespace

bool ExecuteTiles(const Decoded& d) {
  constexpr int kConfigure = 0x49, kMove = 0x4b, kBf16 = 0x5c, kBytes = 0x5e;
  if (d.encoding != Encoding::kVex || d.map != k0F38) return false;
  if (d.opcode == kConfigure)
    Configure(d);
  else if (d.opcode == kMove)
    Move(d);
  else if (d.opcode == kBytes || (d.opcode == kBf16 && d.prefix == Prefix::kF3))
    Multiply(d, d.opcode == kBytes);
  else
    return false;
  return true;
}

}  // namespace kiln::x86
