// Fuses producers into the loops that consume them.
//
// A loop nest computes one fusion: its root decides the iteration space (elementwise result, reduction, update, ...),
// the fused producers are evaluated at each visited index. A producer is fused into all of its consumers or into none,
// so that no value is both kept and recomputed without gain.
//   Cheap producers (no transcendental, no division) are duplicated; others need a single consumer that reads each
//   element about once.
// Cost: linear in edges times the size of fusions.
#pragma once

#include <cstdint>

#include "compiler/pass/pass.h"

namespace kiln {

struct FusionLimits {
  int64_t instructions = 400;  // of a fusion that still grows
  int64_t alone = 0;           // the same, if more, of one that grows by what it alone reads: nothing is computed twice
  int64_t operands = 1 << 20;  // of the fusion and the producer together
  int64_t window = 0;          // elements of a reduce-window that is computed within the loop that reads it
  int64_t pooled = 0;          // the same, where one elementwise loop reads its elements as they come, and no other
  int64_t columns = 1;         // results along the innermost dimension that a reduction computes side by side
  int64_t taps = 0;            // products that each output of such a convolution adds
  bool recompute = false;      // also what costs its readers less than a kernel and memory of its own (recompute.h)
  bool reshapes = false;       // loops join across reshapes: an element's place is computed anew
  bool concatenations = false;  // of few arrays, wherever an element is read once
  int64_t joins = 0;            // places of a row where pieces of arrays meet, in loops that read them in order
  bool one_array = false;       // cheap values of one array are computed by up to four readers, which read that instead
};

// True if anything was fused.
bool FuseVertically(Module& m, PassContext& ctx, const FusionLimits& limits);

}  // namespace kiln
