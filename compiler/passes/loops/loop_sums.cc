#include "compiler/passes/loops/loop_sums.h"

#include <algorithm>
#include <utility>

#include "compiler/passes/loops/step_arrays.h"

namespace kiln {
namespace {

// Whether the sum of what `i` makes of values is what it makes of their sum.
bool IsLinear(const Instruction* loop, const Instruction* i) {
  if (i->Is(Opcode::Convert)) return IsFloat(i->shape().type()) && IsFloat(i->operand(0)->shape().type());
  if (i->Is(Opcode::Multiply)) {
    const Instruction* factor = i->operand(1);
    return factor->Is(Opcode::Broadcast) && factor->operand(0)->shape().IsScalar() && IsFixed(loop, factor->operand(0));
  }
  return i->Is(Opcode::Negate) || i->Is(Opcode::Reshape) || i->Is(Opcode::Transpose) || i->Is(Opcode::Broadcast);
}

bool UsedOnce(const Instruction* i) { return i->users().size() == 1 && !i->IsRoot(); }

// Integers that change their type are a leaf: their sums wrap elsewhere.
bool Follow(const Instruction* loop, LoopTerm* term) {
  Instruction*& i = term->leaf;
  while (true) {
    const PrimitiveType t = i->shape().type();
    if (!i->shape().IsArray() || i->shape().HasDynamic() || !(IsFloat(t) || IsIntegral(t))) return false;
    if (BitWidth(t) > BitWidth(term->type)) term->type = t;
    term->is_used_once = term->is_used_once && UsedOnce(i);
    if (!IsLinear(loop, i)) return true;
    term->chain.push_back(i);
    i = i->operand(0);
  }
}

// The terms of `added`, a sum itself perhaps.
bool AddTerms(const Instruction* loop, Instruction* added, bool is_subtracted, std::vector<LoopTerm>* terms) {
  constexpr size_t kMostTerms = 64;
  std::vector<std::pair<Instruction*, bool>> work = {{added, is_subtracted}};
  while (!work.empty()) {
    const auto [i, minus] = work.back();
    work.pop_back();
    if ((i->Is(Opcode::Add) || i->Is(Opcode::Subtract)) && UsedOnce(i)) {
      work.push_back({i->operand(1), minus != i->Is(Opcode::Subtract)});
      work.push_back({i->operand(0), minus});
      continue;
    }
    LoopTerm term;
    term.leaf = i;
    term.type = i->shape().type();
    term.is_subtracted = minus;
    if (terms->size() == kMostTerms || !Follow(loop, &term)) return false;
    terms->push_back(std::move(term));
  }
  return true;
}

std::optional<LoopSum> SumOf(const Instruction* loop, int64_t k) {
  const Computation* body = *loop->attrs().body;
  const Instruction* root = body->root();
  const std::vector<Instruction*> readers = ElementReaders(body->parameter(0), k);
  if (readers.size() != 1 || !ElementReaders((*loop->attrs().condition)->parameter(0), k).empty()) return std::nullopt;
  const PrimitiveType type = readers[0]->shape().type();
  if (!IsIntegral(type) && !(IsFloat(type) && BitWidth(type) >= 16)) return std::nullopt;
  LoopSum sum;
  sum.element = k;
  const Instruction* so_far = readers[0];
  while (UsedOnce(so_far) && so_far->users()[0] != root) {
    const Instruction* next = so_far->users()[0];
    const bool minus = next->Is(Opcode::Subtract);
    if ((!minus && !next->Is(Opcode::Add)) || (minus && next->operand(0) != so_far)) return std::nullopt;
    Instruction* added = next->operand(next->operand(0) == so_far ? 1 : 0);
    if (added == so_far || !AddTerms(loop, added, minus, &sum.terms)) return std::nullopt;
    so_far = next;
  }
  const bool becomes = UsedOnce(so_far) && root->operand(k) == so_far &&
                       std::count(root->operands().begin(), root->operands().end(), so_far) == 1;
  return becomes && !sum.terms.empty() ? std::optional(std::move(sum)) : std::nullopt;
}

}  // namespace

std::vector<LoopSum> LoopSums(const Instruction* loop) {
  std::vector<LoopSum> out;
  for (size_t k = 0; k < loop->shape().tuple().size(); ++k)
    if (auto sum = SumOf(loop, static_cast<int64_t>(k))) out.push_back(std::move(*sum));
  return out;
}

}  // namespace kiln
