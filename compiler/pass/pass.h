// What a pass is and what it may reach.
//
// A pass is a function Module -> changed. PassContext offers fuel, measured results and the pass's own notes, nothing
// else: no globals. Guarantees asked of every pass: shapes and results of the entry stay, `changed` is truthful, order
// is deterministic.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/facts.h"
#include "compiler/hlo/instruction.h"
#include "compiler/pass/algebra.h"

namespace kiln {

class TuningResults;

// Exchanges of one kind that travel together: bytes that each device gives to one, and arrays.
struct CombineLimits {
  int64_t bytes = INT64_MAX;  // 0 or less: none is combined
  int64_t count = 256;
};
struct CombinedExchanges {
  CombineLimits all_reduce, all_gather, reduce_scatter, permute;
};

class PassContext {
 public:
  // Rewrites that may still be made by all passes together; negative: no limit.
  int64_t fuel = -1;
  // What was measured on GPUs; null: nothing.
  const TuningResults* tuning = nullptr;
  // Whether every device that the program is for multiplies 8-bit floats.
  bool f8_products = true;
  Algebra algebra = Algebra::kXla;
  CombinedExchanges combined;
  // Elements that may still be computed of large constants.
  int64_t folding_steps = kFoldingSteps;
  static constexpr int64_t kFoldingSteps = int64_t{1} << 27;
  // What passes that only look have to say, a line each.
  std::vector<std::string> notes;
  // How often each rewrite that has a name was made.
  std::map<std::string, int64_t> rewrites;

  // False means: skip this rewrite (the fuel is spent).
  bool Take() {
    if (fuel < 0) return true;
    if (fuel == 0) return false;
    --fuel;
    return true;
  }
};

using PassFn = absl::StatusOr<bool> (*)(Module&, PassContext&);

struct PassInfo {
  const char* name;
  PassFn run;
  const char* summary;
  Facts needs, gives, breaks;
  const char* shelved = nullptr;  // why no compile runs it; null: one does
};

}  // namespace kiln
