// What is decided about a kernel of two products and the rows between them (cpu-attention-fusion): how many rows of the
// first product's result are held at a time.
//
// A strip is a block of rows of one batch. All its columns are computed, made into what the second product reads, and
// multiplied while they lie in the second cache; there is no array of them. Arithmetic on shapes and a CPU level only.
#pragma once

#include "absl/status/statusor.h"
#include "codegen/cpu/dot_plan.h"

namespace kiln::cpu {

struct StripPlan {
  const Instruction *first_dot, *rows, *second_dot;  // `rows`: a fusion of rows of the first's result
  DotPlan first, second;                             // a unit of each is a strip
  Pieces strips;                                     // of a batch's rows
  int64_t units;
  bool one_buffer;  // what is made of a strip lies where the strip lay
};

const Instruction* WithoutBitcasts(const Instruction* i);

// Whether `fusion` is one that cpu-attention-fusion made.
bool TakesStrips(const Instruction* fusion);

// The plan of what such a fusion calls. Fails where that has another form.
absl::StatusOr<StripPlan> PlanStrips(const CpuLevel& level, const Computation& f);

}  // namespace kiln::cpu
