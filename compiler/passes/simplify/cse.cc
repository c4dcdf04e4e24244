// Equal instructions over equal operands become one. Never what has side effects, may differ from run to run, or is
// ordered by control edges.
#include "compiler/hlo/printer.h"
#include "compiler/pipeline/registry.h"

namespace kiln {

namespace {

// Text that two equal instructions share: everything but the name.
std::string Key(const Instruction* i) {
  PrintOptions o;
  o.metadata = false;
  std::string t = ToText(*i, o);
  return t.substr(t.find(" = "));
}

bool CseCandidate(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Parameter:
    case Opcode::Domain:
    case Opcode::OptimizationBarrier:
    case Opcode::CustomCall:
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Copy:
      return false;
    default:
      return !i->HasSideEffect() && i->control_predecessors().empty() && i->control_successors().empty();
  }
}

}  // namespace

absl::StatusOr<bool> Cse(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    absl::flat_hash_map<std::string, Instruction*> seen;
    absl::flat_hash_map<uint64_t, std::vector<Instruction*>> constants;
    for (Instruction* i : c->PostOrder()) {
      if (!CseCandidate(i)) continue;
      Instruction* first = nullptr;
      if (i->Is(Opcode::Constant)) {
        // Constants compare by value; their text could be megabytes.
        const uint64_t h =
            i->shape().IsArray() ? i->literal().byte_size() * 31 + static_cast<uint64_t>(i->shape().type()) : 0;
        auto& bucket = constants[h];
        for (Instruction* o : bucket)
          if (o->shape() == i->shape() && o->literal() == i->literal()) first = o;
        if (!first) bucket.push_back(i);
      } else {
        auto [it, fresh] = seen.insert({Key(i), i});
        if (!fresh) first = it->second;
      }
      if (!first || !ctx.Take()) continue;
      i->ReplaceAllUsesWith(first);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
