// Exchanges between devices that begin before a run gets to them and end after: where in a sequence.
//
// Guarantees: between beginning and end nothing writes what the device gives, unless the transport copies it at the
//   beginning (small exchanges), and nothing touches the results; only work on this device stands in between.
#pragma once

#include <map>

#include "compiler/hlo/exchange.h"
#include "compiler/thunk/thunk.h"

namespace kiln {

struct Offer {
  Exchange exchange;
  size_t from = 0, to = 0;  // begins in front of thunk `from`, ends in front of `to`
  bool beside = false;      // large: takes place beside the run, in memory that nobody touches meanwhile
};

// By the exchange's own place. `large`: whether large ones may.
std::map<size_t, Offer> OffersOf(const ThunkSequence& thunks, int64_t replicas, int64_t partitions, bool large);
// Whether the transport copies what all members give.
bool IsSmallExchange(const Thunk& t, const Exchange& x);

}  // namespace kiln
