// Fusions are named by what they do: loop_add_fusion, input_reduce_fusion.
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

std::string NameOf(const Instruction* fusion) {
  const Instruction* root = (*fusion->attrs().calls)->root();
  while ((root->Is(Opcode::Bitcast) || root->Is(Opcode::Tuple)) && root->operand_count() > 0) root = root->operand(0);
  const FusionKind kind = fusion->attrs().fusion_kind.value_or(FusionKind::kLoop);
  // kLoop: loop
  return absl::StrCat(absl::AsciiStrToLower(TextOf(kind).substr(1)), "_",
                      absl::StrReplaceAll(TextOf(root->opcode()), {{"-", "_"}}), "_fusion");
}

}  // namespace

absl::StatusOr<bool> RenameFusions(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : m.PostOrder())
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Fusion)) continue;
      const std::string name = NameOf(i);
      if (absl::StartsWith(i->name(), name) || !ctx.Take()) continue;
      i->Rename(name);
      changed = true;
    }
  return changed;
}

}  // namespace kiln
