// Arrays that begin with whatever their memory holds, because a loop stores all of them before anything reads one.
#pragma once

#include "absl/strings/match.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

inline constexpr char kOverwritten[] = "overwritten";

// Whether fusion `i` is the beginning of such an array (cpu-while-init-elision): its kernel need not write.
inline bool StartsOverwritten(const Instruction* i) {
  return i->Is(Opcode::Fusion) && i->attrs().fusion_kind == FusionKind::kCustom && i->attrs().backend_config &&
         absl::StrContains(i->attrs().backend_config->text, kOverwritten);
}

}  // namespace kiln
