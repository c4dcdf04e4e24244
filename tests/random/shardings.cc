#include "tests/random/shardings.h"

#include <algorithm>
#include <random>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln {
namespace {

class Sharder {
 public:
  Sharder(uint64_t seed, int64_t partitions) : rng_(seed), partitions_(partitions) {}

  std::string Random(const Shape& s) {
    Ints tiles(static_cast<size_t>(s.rank()), 1), order(tiles.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
    std::shuffle(order.begin(), order.end(), rng_);
    int64_t left = partitions_;
    for (int64_t d : order) {
      const int64_t t = AnyDivisor(left);
      if (t > s.dim(d) && !Chance(10)) continue;  // more parts than elements
      tiles[static_cast<size_t>(d)] = t;
      left /= t;
    }
    if (left == partitions_) return "{replicated}";
    if (left > 1) tiles.push_back(left);
    return absl::StrCat("{devices=[", absl::StrJoin(tiles, ","), "]", Devices(),
                        left > 1 ? " last_tile_dim_replicate}" : "}");
  }

  bool Chance(int percent) { return Pick(100) < static_cast<uint64_t>(percent); }

 private:
  uint64_t Pick(uint64_t n) { return rng_() % n; }

  int64_t AnyDivisor(int64_t n) {
    Ints divisors;
    for (int64_t d = 1; d <= n; ++d)
      if (n % d == 0) divisors.push_back(d);
    return divisors[Pick(divisors.size())];
  }

  // In their order, or as a grid of up to three axes in any order.
  std::string Devices() {
    Ints axes, order;
    for (int64_t left = partitions_; left > 1 && axes.size() < 3; left /= axes.back())
      axes.push_back(axes.size() == 2 ? left : AnyDivisor(left));
    for (size_t k = 0; k < axes.size(); ++k) order.push_back(static_cast<int64_t>(k));
    std::shuffle(order.begin(), order.end(), rng_);
    if (Product(axes) != partitions_ || Chance(50)) return absl::StrCat("<=[", partitions_, "]");
    return absl::StrCat("<=[", absl::StrJoin(axes, ","), "]T(", absl::StrJoin(order, ","), ")");
  }

  std::mt19937_64 rng_;
  const int64_t partitions_;
};

}  // namespace

void AddShardings(Module* m, uint64_t seed, int64_t partitions) {
  m->partition_count = partitions;
  Sharder sharder(seed, partitions);
  std::vector<Computation*> running = {m->entry()};
  absl::flat_hash_set<const Computation*> seen = {m->entry()};
  for (size_t k = 0; k < running.size(); ++k)
    for (Instruction* i : running[k]->PostOrder()) {
      if (i->Is(Opcode::While) || i->Is(Opcode::Conditional) || i->Is(Opcode::Call))
        for (Computation* c : i->called())
          if (seen.insert(c).second) running.push_back(c);
      const int percent = i->Is(Opcode::Parameter) ? 60 : 12;
      if (i->shape().IsArray() && sharder.Chance(percent)) i->mutable_attrs().sharding = sharder.Random(i->shape());
    }
}

}  // namespace kiln
