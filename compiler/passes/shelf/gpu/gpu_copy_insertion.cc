// Copies where storage is shared, and of constants that a library routine reads: it takes plain buffers of the arena.
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/other_passes.h"

namespace kiln {

absl::StatusOr<bool> GpuCopyInsertion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      if (!IsLibraryCall(i)) continue;
      for (int64_t k = 0; k < i->operand_count(); ++k) {
        Instruction* o = i->operand(k);
        if (!o->Is(Opcode::Constant) || !ctx.Take()) continue;
        Instruction* copy = c->Add(Opcode::Copy, o->shape(), {o});
        copy->set_loc(i->loc());
        i->ReplaceOperand(k, copy);
        changed = true;
      }
    }
  ASSIGN_OR_RETURN(const bool shared, CopyInsertion(m, ctx));
  return changed || shared;
}

}  // namespace kiln
