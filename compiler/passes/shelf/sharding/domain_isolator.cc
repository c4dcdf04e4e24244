// A domain between any two instructions of different sharding, so that no pass moves work from one to the other.
#include "compiler/pass/pass.h"
#include "compiler/passes/shelf/sharding/domain_map.h"

namespace kiln {

absl::StatusOr<bool> DomainIsolator(Module& m, PassContext& ctx) {
  bool changed = false;
  const auto sharding = [](const Instruction* i) {
    return i->attrs().sharding ? i->attrs().sharding->text : std::string("{}");
  };
  for (const auto& c : m.computations()) {
    for (Instruction* user : c->PostOrder()) {
      if (user->Is(Opcode::Domain)) continue;
      for (int64_t k = 0; k < user->operand_count(); ++k) {
        Instruction* o = user->operand(k);
        if (o->Is(Opcode::Domain) || sharding(o) == sharding(user) || o->shape().IsToken() || !ctx.Take()) continue;
        Instruction* d = c->Add(Opcode::Domain, o->shape(), {o});
        d->mutable_attrs().domain = DomainText({sharding(user), sharding(o)});
        user->ReplaceOperand(k, d);
        changed = true;
      }
    }
  }
  return changed;
}

}  // namespace kiln
