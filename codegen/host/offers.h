// Exchanges between devices that begin before a run gets to them and end after: where in a sequence.
//
// Guarantees: between beginning and end nothing writes what the device gives, unless the transport copies it at the
//   beginning (small exchanges), and nothing touches the results; only work on this device stands in between.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "compiler/hlo/exchange.h"
#include "compiler/thunk/thunk.h"

namespace kiln {

struct Offer {
  std::optional<Exchange> exchange;  // by kiln_comm; none: the target makes it
  size_t from = 0, to = 0;           // begins in front of thunk `from`, ends in front of `to`
  bool beside = false;               // takes place beside the run, in memory that nobody touches meanwhile
  int64_t place = 0;                 // of those that the target has: no other has it meanwhile
};

struct OfferRules {
  int64_t replicas = 1, partitions = 1;
  bool large = true;                               // whether kiln_comm may have large arrays beside the run
  int64_t places = 0;                              // how many exchanges the target makes at once; 0: kiln_comm does
  uint64_t taken = 0;                              // bits of places: of exchanges under way around the sequence
  std::function<bool(const Thunk&)> target_makes;  // whether it can this one so
  std::vector<bool> closed;                        // thunks that no exchange reaches over; empty: none
};

// By the exchange's own place.
std::map<size_t, Offer> OffersOf(const ThunkSequence& thunks, const OfferRules& rules);
// Whether the transport copies what all members give.
bool IsSmallExchange(const Thunk& t, const Exchange& x);

}  // namespace kiln
