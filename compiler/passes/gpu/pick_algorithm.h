// What the pickers share: the choice that measured results name for an instruction.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/hlo/tuning.h"
#include "compiler/pass/pass.h"

namespace kiln {

struct PickedAlgorithm {
  std::string choice;  // as configurations have it; empty: no target has a result
  int64_t scratch_bytes = 0;
};

inline PickedAlgorithm PickAlgorithm(const Instruction* i, const TuningResults& results) {
  PickedAlgorithm picked;
  std::vector<std::string> parts;
  const std::string key = TuningKey(i);
  for (const std::string& target : results.Targets()) {
    const auto best = results.Find(target, key);
    if (!best) continue;
    parts.push_back(absl::StrCat(target, "=", best->algorithm));
    picked.scratch_bytes = std::max(picked.scratch_bytes, best->scratch_bytes);
  }
  picked.choice = absl::StrJoin(parts, ";");
  return picked;
}

// The algorithm that `i` has now; empty: none was chosen.
inline std::string AlgorithmOf(const Instruction* i) {
  const auto& config = i->attrs().backend_config;
  const auto field = config ? ConfigField(config->text, "selected_algorithm") : std::nullopt;
  return field && *field != "-1" ? *field : "";
}

// Every instruction that is `wanted` gets the algorithm that the context's results name for it.
template <typename Wanted>
bool PickAlgorithms(Module& m, PassContext& ctx, const Wanted& wanted) {
  bool changed = false;
  if (!ctx.tuning) return changed;
  for (Instruction* i : Tunables(m)) {
    if (!wanted(i)) continue;
    const PickedAlgorithm picked = PickAlgorithm(i, *ctx.tuning);
    if (picked.choice.empty() || picked.choice == AlgorithmOf(i) || !ctx.Take()) continue;
    SetAlgorithm(i, picked.choice);
    changed = true;
  }
  return changed;
}

}  // namespace kiln
