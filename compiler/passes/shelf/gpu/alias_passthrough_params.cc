// Parameters that reach the result untouched are its storage: no copy is made of them.
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> AliasPassthroughParams(Module& m, PassContext& ctx) {
  const Computation* e = m.entry();
  bool changed = false;
  const auto alias = [&](const Instruction* value, const ShapeIndex& output) {
    if (!value->Is(Opcode::Parameter) || !value->shape().IsArray()) return;
    const int64_t parameter = *value->attrs().parameter_number;
    for (const AliasEntry& a : m.aliases)
      if (a.parameter == parameter || a.output == output) return;
    if (!ctx.Take()) return;
    m.aliases.push_back({output, parameter, {}, false});
    changed = true;
  };
  if (e->root()->Is(Opcode::Tuple))
    for (int64_t k = 0; k < e->root()->operand_count(); ++k) alias(e->root()->operand(k), {k});
  else
    alias(e->root(), {});
  return changed;
}

}  // namespace kiln
