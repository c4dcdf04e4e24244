// Collectives that are one call of NCCL, or one group of calls, for every device.
//
// What: what compiler/hlo/exchange.h calls an exchange, and besides, since each group is a communicator of its own,
//   all-reduces and gathers over groups of several sizes, and broadcasts.
// Reductions: sums, products, minima and maxima of the types that NCCL has; sums of complex numbers are those of their
//   parts, and `and` and `or` of predicates are minima and maxima of bytes. NCCL adds in an order of its own, and its
//   minima and maxima of floats pass over NaN, which HLO's do not.
#pragma once

#include <optional>
#include <vector>

#include "compiler/hlo/exchange.h"

namespace kiln {

struct NcclReduction {
  enum class Op { kSum, kProduct, kMinimum, kMaximum } op;
  PrimitiveType type;  // what NCCL takes the elements for
  int64_t parts = 1;   // of that type, in an element
  bool passes_nan_by = false;
};

// Null: NCCL combines nothing like that.
std::optional<NcclReduction> NcclReductionOf(const Computation& f);

struct NcclCall {
  enum class Kind { kAllReduce, kReduceScatter, kAllGather, kAllToAll, kPermute, kBroadcast } kind;
  std::vector<Ints> groups;  // of a permute, all devices
  Ints source;               // of a permute, by device: whose array it gets, or -1
  std::optional<NcclReduction> reduction;
};

// Null if `collective` has another form. Fails on groups that make no sense.
absl::StatusOr<std::optional<NcclCall>> NcclCallOf(const Instruction& collective, int64_t replicas, int64_t partitions);

}  // namespace kiln
