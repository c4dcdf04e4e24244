// The products and convolutions of a CPU program whose computing measured results may choose (codegen/cpu/choices.def).
#pragma once

#include <vector>

#include "compiler/analysis/panels.h"
#include "compiler/hlo/tuning.h"

namespace kiln {

// In order; those inside fusions too. Plans decide about constant weights that lie as panels: choices are about rows.
// `panels`: those products instead.
inline std::vector<Instruction*> CpuTunables(const Module& m, bool panels = false) {
  std::vector<Instruction*> out;
  for (Computation* c : m.PostOrder())
    for (Instruction* i : c->PostOrder())
      if ((i->Is(Opcode::Dot) || i->Is(Opcode::Convolution)) && IsTunableProduct(i) &&
          PanelsOf(i).has_value() == panels)
        out.push_back(i);
  return out;
}

// Whether `target` of a results file is a GPU, not a CPU level.
inline bool IsGpuTarget(const std::string& target) { return target.rfind("sm_", 0) == 0; }

}  // namespace kiln
