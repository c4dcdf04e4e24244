// Equal instructions over equal operands become one. Never what has side effects, may differ from run to run, or is
// ordered by control edges.
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/pass/pass.h"

namespace kiln {

namespace {

// Text that two equal instructions share: everything but the name.
std::string Key(const Instruction* i) {
  PrintOptions o;
  o.metadata = false;
  std::string t = ToText(*i, o);
  return t.substr(t.find(" = "));
}

// Of a constant: its shape and a sample of its bytes, so that large ones cost little.
uint64_t ConstantHash(const Instruction* i) {
  if (!i->shape().IsArray()) return 0;
  constexpr int64_t kSample = 256, kPieces = 16;
  const Literal& l = i->literal();
  const auto piece = [&](int64_t from, int64_t size, uint64_t seed) {
    return StableHash(absl::string_view(reinterpret_cast<const char*>(l.data()) + from, static_cast<size_t>(size)),
                      seed);
  };
  uint64_t h = static_cast<uint64_t>(l.byte_size()) * 31 + static_cast<uint64_t>(i->shape().type());
  if (l.byte_size() <= kSample * kPieces) return l.byte_size() ? piece(0, l.byte_size(), h) : h;
  for (int64_t k = 0; k < kPieces; ++k) h = piece((l.byte_size() - kSample) / (kPieces - 1) * k, kSample, h);
  return h;
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
        auto& bucket = constants[ConstantHash(i)];
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
