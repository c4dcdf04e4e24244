// Collectives that are one exchange of contiguous blocks, as the runtime makes them (kiln_exchange).
//
// What: an all-reduce or collective-permute of whole arrays; a reduce-scatter, all-gather or all-to-all along dimension
//   0, where the block of each member is contiguous. Every device is in a group, and groups are of one size.
//   collective-canonicalizer gives other collectives this form.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// A collective that is one operation: no half of an asynchronous one.
bool IsSynchronousCollective(const Instruction* i);

struct Exchange {
  std::vector<Ints> groups;  // devices that meet; of a permute all of them
  Ints source;               // of a permute, by device: whose array it gets, or -1
  int64_t members() const { return static_cast<int64_t>(groups[0].size()); }
};

// Null if `collective` has another form. Fails on groups that make no sense.
absl::StatusOr<std::optional<Exchange>> ExchangeOf(const Instruction& collective, int64_t replicas, int64_t partitions);

// Whether a collective of this kind, groups and function has the form once its arrays have it. Fails as ExchangeOf.
absl::StatusOr<bool> CanBeExchange(const Instruction& collective, int64_t replicas, int64_t partitions);

// Its arrays: operands, and results in the same order.
std::vector<Shape> ResultsOf(const Instruction& collective);

}  // namespace kiln
