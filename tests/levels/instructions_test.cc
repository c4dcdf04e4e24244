// The emulated instructions against others of the machine that must agree: AVX-VNNI against plain sums, AVX512-FP16
// against F16C and f32, whose results round to f16 as exact ones do, and multiply-adds against integers. On a machine
// that has the instructions, the test is of the expectation.
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

#include "aot/emulator/x86/emulator.h"
#include "gtest/gtest.h"

#define AVX_VNNI __attribute__((target("avx2,avxvnni")))
#define FP16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512fp16,f16c")))
#define F16C __attribute__((target("avx2,f16c")))

namespace kiln {
namespace {

constexpr int kHalves = 32;

// Any f16; near each other, so that sums cancel, in half of the rounds.
struct Halves {
  alignas(64) uint16_t bits[kHalves];
};

Halves Any(std::mt19937* random, bool near) {
  Halves out;
  for (uint16_t& h : out.bits) h = static_cast<uint16_t>(near ? ((*random)() & 0x87ff) | 0x3800 : (*random)());
  return out;
}

bool IsNan(uint16_t bits) { return (bits & 0x7fff) > 0x7c00; }

// Of NaNs, that both are.
void ExpectSame(const Halves& got, const Halves& want, const char* what) {
  for (int k = 0; k < kHalves; ++k) {
    if (IsNan(got.bits[k]) && IsNan(want.bits[k])) continue;
    ASSERT_EQ(got.bits[k], want.bits[k]) << what << " at " << k;
  }
}

F16C float Widened(uint16_t bits) { return _cvtsh_ss(bits); }
F16C uint16_t Narrowed(float x) {
  return static_cast<uint16_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

template <typename Compute>
Halves OfEach(const Halves& a, const Halves& b, const Compute& compute) {
  Halves out;
  for (int k = 0; k < kHalves; ++k) out.bits[k] = Narrowed(compute(Widened(a.bits[k]), Widened(b.bits[k])));
  return out;
}

class Instructions : public testing::Test {
 protected:
  static bool Runs(const char* level) {
    if (!x86::CanEmulate(level).ok()) return false;
    if (!x86::MachineRuns(level)) x86::EmulateMissingInstructions();
    return true;
  }
  std::mt19937 random_{7};
};

FP16 Halves Sum(const Halves& a, const Halves& b) {
  Halves out;
  _mm512_store_ph(out.bits, _mm512_add_ph(_mm512_load_ph(a.bits), _mm512_load_ph(b.bits)));
  return out;
}
FP16 Halves Product(const Halves& a, const Halves& b) {
  Halves out;
  _mm512_store_ph(out.bits, _mm512_mul_ph(_mm512_load_ph(a.bits), _mm512_load_ph(b.bits)));
  return out;
}
FP16 Halves Quotient(const Halves& a, const Halves& b) {
  Halves out;
  _mm512_store_ph(out.bits, _mm512_div_ph(_mm512_load_ph(a.bits), _mm512_load_ph(b.bits)));
  return out;
}
FP16 Halves Root(const Halves& a) {
  Halves out;
  _mm512_store_ph(out.bits, _mm512_sqrt_ph(_mm512_load_ph(a.bits)));
  return out;
}
// Every third stays as it is in `old`, every fifth of the others is zero: two instructions.
FP16 Halves MaskedDifference(const Halves& old, const Halves& a, const Halves& b, uint32_t keep, uint32_t zero) {
  Halves out;
  const __m512h merged =
      _mm512_mask_sub_ph(_mm512_load_ph(old.bits), keep, _mm512_load_ph(a.bits), _mm512_load_ph(b.bits));
  _mm512_store_ph(out.bits, _mm512_maskz_max_ph(zero, merged, merged));
  return out;
}
FP16 Halves MultiplyAdd(const Halves& a, const Halves& b, const Halves& c) {
  Halves out;
  _mm512_store_ph(out.bits, _mm512_fmadd_ph(_mm512_load_ph(a.bits), _mm512_load_ph(b.bits), _mm512_load_ph(c.bits)));
  return out;
}

TEST_F(Instructions, ArithmeticOfHalves) {
  if (!Runs("v4fp16")) GTEST_SKIP() << "this machine lacks AVX-512";
  for (int round = 0; round < 3000; ++round) {
    const Halves a = Any(&random_, round % 2), b = Any(&random_, round % 2), c = Any(&random_, round % 2);
    ExpectSame(Sum(a, b), OfEach(a, b, [](float x, float y) { return x + y; }), "sum");
    ExpectSame(Product(a, b), OfEach(a, b, [](float x, float y) { return x * y; }), "product");
    ExpectSame(Quotient(a, b), OfEach(a, b, [](float x, float y) { return x / y; }), "quotient");
    ExpectSame(Root(a), OfEach(a, a, [](float x, float) { return std::sqrt(x); }), "root");
    const uint32_t keep = 0xb6db6db6, zero = 0xdef7bdef;
    Halves want = OfEach(a, b, [](float x, float y) { return x - y; });
    for (int k = 0; k < kHalves; ++k) {
      if (!(keep >> k & 1)) want.bits[k] = c.bits[k];
      if (!(zero >> k & 1)) want.bits[k] = 0;
    }
    ExpectSame(MaskedDifference(c, a, b, keep, zero), want, "difference");
  }
}

// A finite f16 as a number of 2^-24.
int64_t Units(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int64_t significand = bits & 0x3ff, units = exponent ? (significand | 0x400) << (exponent - 1) : significand;
  return bits & 0x8000 ? -units : units;
}

// The nearest f16 of a number of 2^-48 that is not zero.
uint16_t NearestHalf(__int128 units) {
  const uint16_t sign = units < 0 ? 0x8000 : 0;
  unsigned __int128 magnitude = static_cast<unsigned __int128>(units < 0 ? -units : units);
  constexpr int kLeastShift = 24;
  int shift = kLeastShift;
  while (magnitude >> shift >= 0x800) ++shift;
  const unsigned __int128 rest = magnitude & ((static_cast<unsigned __int128>(1) << shift) - 1),
                          half = static_cast<unsigned __int128>(1) << (shift - 1);
  auto significand = static_cast<uint32_t>(magnitude >> shift);
  significand += rest > half || (rest == half && (significand & 1));
  const uint32_t bits = significand + static_cast<uint32_t>((shift - kLeastShift) << 10);
  return static_cast<uint16_t>(sign | std::min<uint32_t>(bits, 0x7c00));
}

TEST_F(Instructions, MultiplyAddsOfHalvesRoundOnce) {
  if (!Runs("v4fp16")) GTEST_SKIP() << "this machine lacks AVX-512";
  for (int round = 0; round < 3000; ++round) {
    const Halves a = Any(&random_, round % 2), b = Any(&random_, round % 2), c = Any(&random_, round % 3 == 0);
    const Halves got = MultiplyAdd(a, b, c);
    for (int k = 0; k < kHalves; ++k) {
      const auto finite = [k](const Halves& h) { return (h.bits[k] & 0x7c00) != 0x7c00; };
      if (!finite(a) || !finite(b) || !finite(c)) continue;
      const __int128 exact =
          static_cast<__int128>(Units(a.bits[k])) * Units(b.bits[k]) + (static_cast<__int128>(Units(c.bits[k])) << 24);
      if (exact == 0)
        ASSERT_EQ(got.bits[k] & 0x7fff, 0);
      else
        ASSERT_EQ(got.bits[k], NearestHalf(exact)) << a.bits[k] << " " << b.bits[k] << " " << c.bits[k];
    }
  }
}

FP16 void Widen(const uint16_t* from, float* to) { _mm512_storeu_ps(to, _mm512_cvtxph_ps(_mm256_loadu_ph(from))); }
FP16 void Narrow(const float* from, uint16_t* to) {
  _mm256_storeu_ph(to, _mm512_cvtx_roundps_ph(_mm512_loadu_ps(from), _MM_FROUND_CUR_DIRECTION));
}

TEST_F(Instructions, ConversionsOfHalves) {
  if (!Runs("v4fp16")) GTEST_SKIP() << "this machine lacks AVX-512";
  for (int first = 0; first < 0x10000; first += 16) {
    uint16_t halves[16];
    float floats[16];
    for (int k = 0; k < 16; ++k) halves[k] = static_cast<uint16_t>(first + k);
    Widen(halves, floats);
    for (int k = 0; k < 16; ++k) {
      const float want = Widened(halves[k]);
      ASSERT_EQ(std::memcmp(&floats[k], &want, sizeof want), 0) << halves[k];
    }
  }
  for (int round = 0; round < 10000; ++round) {
    uint16_t halves[16];
    float floats[16];
    for (float& x : floats) {
      // From below the least f16 to beyond the largest.
      const auto bits = static_cast<uint32_t>(random_());
      const uint32_t word = (bits & 0x80ffffff) | (0x32 + (bits >> 24 & 0x7f) % 0x16) << 24;
      std::memcpy(&x, &word, sizeof x);
    }
    Narrow(floats, halves);
    for (int k = 0; k < 16; ++k) ASSERT_EQ(halves[k], Narrowed(floats[k])) << floats[k];
  }
}

// Eight numbers of 32 bits.
struct Words {
  alignas(32) int32_t at[8];
};

AVX_VNNI __m256i Load(const Words& v) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(v.at)); }

// c and the sums of products of four bytes, then of two integers of 16 bits, saturating.
AVX_VNNI void Dots(const Words& c, const Words& a, const Words& b, Words* of_bytes, Words* of_words) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(of_bytes->at), _mm256_dpbusd_avx_epi32(Load(c), Load(a), Load(b)));
  _mm256_store_si256(reinterpret_cast<__m256i*>(of_words->at), _mm256_dpwssds_avx_epi32(Load(c), Load(a), Load(b)));
}

TEST_F(Instructions, DotsOfIntegers) {
  if (!Runs("v3dot")) GTEST_SKIP() << "this machine lacks AVX2";
  for (int round = 0; round < 1000; ++round) {
    Words a, b, c, bytes, words;
    for (Words* v : {&a, &b, &c})
      for (int32_t& x : v->at) x = static_cast<int32_t>(random_());
    Dots(c, a, b, &bytes, &words);
    for (int k = 0; k < 8; ++k) {
      int64_t of_bytes = c.at[k], of_words = c.at[k];
      for (int i = 0; i < 32; i += 8)
        of_bytes += static_cast<uint8_t>(a.at[k] >> i) * static_cast<int8_t>(b.at[k] >> i);
      for (int i = 0; i < 32; i += 16)
        of_words += static_cast<int16_t>(a.at[k] >> i) * int64_t{static_cast<int16_t>(b.at[k] >> i)};
      ASSERT_EQ(bytes.at[k], static_cast<int32_t>(of_bytes));
      ASSERT_EQ(words.at[k], std::clamp<int64_t>(of_words, INT32_MIN, INT32_MAX));
    }
  }
}

TEST_F(Instructions, OfLevelsThatLackMoreAreRefused) {
  for (const char* level : {"v2", "v3", "v3dot", "v4", "v4dot", "v4fp16", "v4bf16", "amx"}) {
    const absl::Status can = x86::CanEmulate(level);
    if (x86::MachineRuns(level))
      EXPECT_TRUE(can.ok()) << can;
    else if (!can.ok())
      EXPECT_NE(can.message().find("the machine lacks instructions of"), std::string::npos) << can;
  }
}

}  // namespace
}  // namespace kiln
