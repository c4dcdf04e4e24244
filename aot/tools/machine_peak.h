// What this machine can do at best, measured in a few hundredths of a second: the roof of a roofline.
//
// What: multiply-adds of f32 in the widest vectors, in registers; and a copy of arrays beyond every cache.
// Guarantees: the best of several tries; all `threads` work at once.
// Cost: below 0.2 s and 128 MiB.
#pragma once

#include "aot/report/profile.h"

namespace kiln {

Peaks MeasurePeaks(int threads);

}  // namespace kiln
