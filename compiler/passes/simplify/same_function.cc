#include "compiler/passes/simplify/same_function.h"

#include "compiler/base/text.h"

namespace kiln {
namespace {

// What an instruction says besides the functions that it calls.
Attributes OwnAttributes(const Instruction* i) {
  Attributes a = i->attrs();
  a.metadata.reset();
  for (auto* c :
       {&a.to_apply, &a.calls, &a.condition, &a.body, &a.true_computation, &a.false_computation, &a.select, &a.scatter})
    c->reset();
  a.branch_computations.reset();
  a.called_computations.reset();
  return a;
}

bool SameEdges(const std::vector<Instruction*>& a, const std::vector<Instruction*>& b,
               const absl::flat_hash_map<const Instruction*, const Instruction*>& partner) {
  if (a.size() != b.size()) return false;
  for (size_t k = 0; k < a.size(); ++k)
    if (partner.at(a[k]) != b[k]) return false;
  return true;
}

}  // namespace

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

uint64_t FunctionHash(const Computation* f) {
  absl::flat_hash_map<const Instruction*, uint64_t> number;
  uint64_t h = 0;
  for (const Instruction* i : f->PostOrder()) {
    h = h * 31 + static_cast<uint64_t>(i->opcode());
    for (const Instruction* o : i->operands()) h = h * 31 + number.at(o);
    if (i->Is(Opcode::Constant)) h = h * 31 + ConstantHash(i);
    number.emplace(i, number.size());
  }
  return h;
}

bool CallSameFunctions(const Instruction* a, const Instruction* b) {
  const std::vector<Computation*> f = a->called(), g = b->called();
  if (f.size() != g.size()) return false;
  for (size_t k = 0; k < f.size(); ++k)
    if (!IsSameFunction(f[k], g[k])) return false;
  return true;
}

bool IsSameFunction(const Computation* a, const Computation* b) {
  if (a == b) return true;
  if (a->instruction_count() != b->instruction_count() || a->execution_thread() != b->execution_thread()) return false;
  const std::vector<Instruction*> x = a->PostOrder(), y = b->PostOrder();
  absl::flat_hash_map<const Instruction*, const Instruction*> partner;
  for (size_t k = 0; k < x.size(); ++k) {
    const Instruction *i = x[k], *j = y[k];
    if (i->opcode() != j->opcode() || i->shape() != j->shape() || !SameEdges(i->operands(), j->operands(), partner) ||
        !SameEdges(i->control_predecessors(), j->control_predecessors(), partner) ||
        OwnAttributes(i) != OwnAttributes(j) || !CallSameFunctions(i, j))
      return false;
    if (i->Is(Opcode::Constant) && i->literal() != j->literal()) return false;
    partner[i] = j;
  }
  return partner.at(a->root()) == b->root();
}

}  // namespace kiln
