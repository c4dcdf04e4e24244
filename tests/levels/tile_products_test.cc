// Level amx against level v3 of one archive: products and convolutions whose rows, columns and sums fill tiles and do
// not. Without the machine's tiles, the emulator's.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "aot/emulator/x86/emulator.h"
#include "gtest/gtest.h"
#include "kiln/kiln_host.h"
#include "runtime_min/abi.h"
#include "tile_products_c.h"

kiln_entry EntryOfV3 __asm__(TILE_PRODUCTS_BUILD "_entry_v3");
kiln_entry EntryOfAmx __asm__(TILE_PRODUCTS_BUILD "_entry_amx");

namespace kiln {
namespace {

class Arrays {
 public:
  explicit Arrays(const std::vector<const kiln_array*>& list) : list_(list) {
    for (const kiln_array* a : list) {
      memory_.emplace_back(static_cast<size_t>(a->bytes + kAlignment));
      const auto begin = reinterpret_cast<uintptr_t>(memory_.back().data());
      pointers_.push_back(memory_.back().data() + (-begin & (kAlignment - 1)));
    }
  }

  // Any byte; floats of either sign from a half to two.
  void Fill() {
    for (size_t k = 0; k < list_.size(); ++k)
      for (int64_t i = 0; i < list_[k]->bytes / list_[k]->element_bytes; ++i) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        const auto bits = static_cast<uint16_t>(state_ >> 48);
        auto* at = static_cast<uint8_t*>(pointers_[k]) + i * list_[k]->element_bytes;
        const auto put = [&](auto value) { std::memcpy(at, &value, sizeof value); };
        if (list_[k]->type == KILN_TYPE_BF16)
          put(static_cast<uint16_t>((bits & 0x80ff) | 0x3f00));
        else if (list_[k]->type == KILN_TYPE_F16)
          put(static_cast<uint16_t>((bits & 0x87ff) | 0x3800));
        else
          put(static_cast<uint8_t>(bits));
      }
  }

  // An element of an array of floats.
  double At(size_t k, int64_t i) const {
    if (list_[k]->type == KILN_TYPE_F32) return static_cast<const float*>(pointers_[k])[i];
    const uint16_t bits = static_cast<const uint16_t*>(pointers_[k])[i];
    if (list_[k]->type == KILN_TYPE_BF16) {
      const uint32_t word = static_cast<uint32_t>(bits) << 16;
      float value;
      std::memcpy(&value, &word, sizeof value);
      return value;
    }
    const double significand = (bits & 0x3ff) + (bits & 0x7c00 ? 0x400 : 0);
    return std::ldexp(bits & 0x8000 ? -significand : significand, std::max(1, bits >> 10 & 31) - 25);
  }

  void** pointers() { return pointers_.data(); }

 private:
  static constexpr int64_t kAlignment = 64;
  const std::vector<const kiln_array*> list_;
  std::vector<std::vector<char>> memory_;
  std::vector<void*> pointers_;
  uint64_t state_ = 7;
};

TEST(Tiles, GiveWhatVectorsGive) {
  if (!x86::CanEmulate("amx").ok()) GTEST_SKIP() << "this machine lacks AVX512-BF16";
  const bool emulated = !x86::MachineRuns("amx");
  if (emulated) x86::EmulateMissingInstructions();
  const kiln_model* model = tile_products_model();
  const kiln_variant* variant = kiln_variant_at(model, 0);
  std::vector<const kiln_array*> arguments, results;
  for (int64_t k = 0; k < model->arguments; ++k) arguments.push_back(kiln_argument(model, variant, k));
  for (int64_t k = 0; k < model->results; ++k) results.push_back(kiln_result(model, variant, k));
  Arrays in(arguments), with_vectors(results), with_tiles(results);
  in.Fill();
  std::vector<char> arena(TILE_PRODUCTS_ARENA_BYTES + 64);
  void* const aligned = arena.data() + (-reinterpret_cast<uintptr_t>(arena.data()) & 63);
  const kiln_machine machine = {};
  ASSERT_EQ(EntryOfV3(in.pointers(), with_vectors.pointers(), aligned, &machine, nullptr), KILN_OK);
  ASSERT_EQ(EntryOfAmx(in.pointers(), with_tiles.pointers(), aligned, &machine, nullptr), KILN_OK);
  if (emulated) EXPECT_GT(x86::EmulatedInstructions(), 1000);
  for (size_t k = 0; k < results.size(); ++k) {
    if (results[k]->type == KILN_TYPE_S32) {
      EXPECT_EQ(
          std::memcmp(with_vectors.pointers()[k], with_tiles.pointers()[k], static_cast<size_t>(results[k]->bytes)), 0)
          << results[k]->name;
      continue;
    }
    const double tolerance = results[k]->type == KILN_TYPE_F32 ? 1e-4 : 1e-2;
    for (int64_t i = 0; i < results[k]->bytes / results[k]->element_bytes; ++i) {
      const double x = with_vectors.At(k, i), y = with_tiles.At(k, i);
      ASSERT_LE(std::abs(x - y), tolerance * (1 + std::abs(x))) << results[k]->name << " at " << i;
    }
  }
}

}  // namespace
}  // namespace kiln
