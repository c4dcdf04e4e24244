// A domain between any two instructions of different sharding, so that no pass moves work from one to the other.
#include "compiler/pass/pass.h"
#include "compiler/passes/sharding/domain_map.h"

namespace kiln {
namespace {

// A tuple whose parts all have one sharding has that one.
std::string Uniform(const std::string& text) {
  if (text.rfind("{{", 0) != 0) return text;
  std::string first;
  for (size_t at = 1; at + 1 < text.size();) {
    int depth = 0;
    size_t end = at;
    do {
      if (text[end] == '{') ++depth;
      if (text[end] == '}') --depth;
    } while (++end < text.size() && depth > 0);
    const std::string part = text.substr(at, end - at);
    if (!first.empty() && part != first) return text;
    first = part;
    at = text.find('{', end);
    if (at == std::string::npos) break;
  }
  return first;
}

}  // namespace

absl::StatusOr<bool> DomainIsolator(Module& m, PassContext& ctx) {
  bool changed = false;
  const auto sharding = [](const Instruction* i) {
    return i->attrs().sharding ? Uniform(i->attrs().sharding->text) : std::string("{}");
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
