#include "compiler/plan/alias.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "compiler/hlo/uses.h"

namespace kiln {
namespace {

bool Forwards(Opcode op) {
  return op == Opcode::Bitcast || op == Opcode::OptimizationBarrier || op == Opcode::AddDependency ||
         op == Opcode::Domain;
}

Leaf Step(const Leaf& l) {
  Instruction* i = l.instruction;
  switch (i->opcode()) {
    case Opcode::Tuple:
      return {i->operand(l.index[0]), ShapeIndex(l.index.begin() + 1, l.index.end())};
    case Opcode::GetTupleElement: {
      ShapeIndex idx = {*i->attrs().tuple_index};
      idx.insert(idx.end(), l.index.begin(), l.index.end());
      return {i->operand(0), idx};
    }
    case Opcode::While:
      if (IsLoopInvariant(i, l.index)) return {i->operand(0), l.index};
      return l;
    default:
      if (Forwards(i->opcode())) return {i->operand(0), l.index};
      return l;
  }
}

// Between its axes a transform keeps the spectrum in the result, before loops behind it read their other operands.
bool HoldsTransform(const Instruction* i) {
  if (!i->Is(Opcode::Fusion)) return false;
  const auto& inside = (*i->attrs().calls)->instructions();
  return std::any_of(inside.begin(), inside.end(), [](const auto& o) { return o->Is(Opcode::Fft); });
}

// True if one of several results may be computed apart from the others: a loop of its own, because it is read across,
// or a product.
bool ComputedApart(const Instruction* i) {
  const Computation* f = *i->attrs().calls;
  return f->root()->Is(Opcode::Tuple) &&
         std::any_of(f->instructions().begin(), f->instructions().end(),
                     [](const auto& x) { return x->Is(Opcode::Transpose) || x->Is(Opcode::Dot); });
}

// The results of fusion `i` that read operand `k` at the element they write; none if anything reads it elsewhere.
std::vector<const Instruction*> ReadersAtOwnElement(const Instruction* i, int64_t k) {
  const Instruction* root = (*i->attrs().calls)->root();
  const int64_t elements = i->operand(k)->shape().IsArray() ? i->operand(k)->shape().ElementCount() : -1;
  std::vector<const Instruction*> work = {(*i->attrs().calls)->parameter(k)}, out;
  absl::flat_hash_set<const Instruction*> seen;
  while (!work.empty()) {
    const Instruction* v = work.back();
    work.pop_back();
    if (!seen.insert(v).second) continue;
    const Shape& s = v->shape();
    if (!s.IsArray() || s.ElementCount() != elements || !s.HasDefaultLayout()) return {};
    if (!v->Is(Opcode::Parameter) && !v->IsElementwise() && !v->Is(Opcode::Bitcast)) return {};
    for (const Instruction* u : v->users()) (u == root ? out : work).push_back(u == root ? v : u);
  }
  return out;
}

// True if fusion `i` of several results reads operand `k` at the element it writes, for result `output` alone or for
// neighbours of its form too: one loop computes them, each element of all before it stores any.
bool ReadsInOwnLoop(const Instruction* i, int64_t k, int64_t output) {
  if (!i->Is(Opcode::Fusion) || !(*i->attrs().calls)->root()->Is(Opcode::Tuple)) return false;
  const std::vector<Instruction*>& results = (*i->attrs().calls)->root()->operands();
  const std::vector<const Instruction*> readers = ReadersAtOwnElement(i, k);
  if (readers.empty()) return false;
  int64_t first = output, last = output;
  for (const Instruction* r : readers) {
    const int64_t place = std::find(results.begin(), results.end(), r) - results.begin();
    if (std::count(results.begin(), results.end(), r) != 1) return false;
    first = std::min(first, place);
    last = std::max(last, place);
  }
  if (first == last) return true;
  if (ComputedApart(i)) return false;
  return std::all_of(results.begin() + first, results.begin() + last + 1, [&](const Instruction* r) {
    return r->IsElementwise() && r->shape().dims() == readers[0]->shape().dims() && r->shape().HasDefaultLayout();
  });
}

}  // namespace

Leaf SourceOf(const Leaf& l) {
  Leaf cur = l;
  for (;;) {
    Leaf next = Step(cur);
    if (next == cur) return cur;
    cur = std::move(next);
  }
}

bool IsLoopInvariant(const Instruction* loop, const ShapeIndex& index) {
  const Computation* body = *loop->attrs().body;
  const Leaf s = SourceOf({body->root(), index});
  return s.instruction == body->parameter(0) && s.index == index;
}

std::vector<Instruction*> UsesOf(const Leaf& l, bool* reaches_root) {
  std::vector<Instruction*> out;
  absl::flat_hash_set<Leaf> seen;
  std::vector<Leaf> work = {l};
  bool root = false;
  auto use = [&](Instruction* i) {
    if (std::find(out.begin(), out.end(), i) == out.end()) out.push_back(i);
  };
  while (!work.empty()) {
    const Leaf cur = work.back();
    work.pop_back();
    if (!seen.insert(cur).second) continue;
    if (cur.instruction->IsRoot()) root = true;
    for (Instruction* u : cur.instruction->users()) {
      for (int64_t k = 0; k < u->operand_count(); ++k) {
        if (u->operand(k) != cur.instruction) continue;
        if (u->Is(Opcode::Tuple)) {
          ShapeIndex idx = {k};
          idx.insert(idx.end(), cur.index.begin(), cur.index.end());
          work.push_back({u, idx});
        } else if (u->Is(Opcode::GetTupleElement)) {
          if (!cur.index.empty() && cur.index[0] == *u->attrs().tuple_index)
            work.push_back({u, ShapeIndex(cur.index.begin() + 1, cur.index.end())});
        } else if (Forwards(u->opcode())) {
          work.push_back({u, cur.index});
        } else {
          use(u);
          if (u->Is(Opcode::While) && IsLoopInvariant(u, cur.index)) work.push_back({u, cur.index});
        }
      }
    }
  }
  if (reaches_root) *reaches_root = root;
  return out;
}

int64_t InPlaceOperand(const Instruction* i, int64_t output) {
  const Instruction* update = i->Is(Opcode::Fusion) ? (*i->attrs().calls)->root() : i;
  int64_t array = output;
  if (i->Is(Opcode::Fusion) && update->Is(Opcode::Tuple)) {  // results of several kernels, of which each may update
    update = update->operand(output);
    array = 0;
    if (!update->shape().IsArray()) return -1;
  }
  if (!update->Is(Opcode::DynamicUpdateSlice) && !update->Is(Opcode::Scatter)) return -1;
  if (!i->Is(Opcode::Fusion)) return array;
  const Instruction* target = update->operand(array);
  while (target->Is(Opcode::Bitcast)) target = target->operand(0);
  return target->Is(Opcode::Parameter) ? *target->attrs().parameter_number : -1;
}

bool KeepsOldRows(const Instruction* i) {
  return i->Is(Opcode::Fusion) && i->attrs().backend_config &&
         absl::StrContains(i->attrs().backend_config->text, "rows_in_place");
}

bool UpdatesInPlace(const Instruction* i) {
  const int64_t outputs = i->shape().IsTuple() ? static_cast<int64_t>(i->shape().tuple().size()) : 1;
  for (int64_t o = 0; o < outputs; ++o)
    if (InPlaceOperand(i, o) >= 0) return true;
  return false;
}

bool ReadsAtOwnElement(const Instruction* i, int64_t k) {
  if (!i->Is(Opcode::Fusion)) return false;
  const Computation* f = *i->attrs().calls;
  const Instruction* root = f->root();
  const Shape &in = i->operand(k)->shape(), &out = root->Is(Opcode::Tuple) ? root->operand(0)->shape() : root->shape();
  // Every use on the way to the results keeps the position in memory.
  auto plain = [&](const Shape& s) {
    return s.IsArray() && s.ElementCount() == out.ElementCount() && s.HasDefaultLayout();
  };
  auto keeps = [&](const Instruction* u) {
    return (u->IsElementwise() || u->Is(Opcode::Bitcast)) && plain(u->shape());
  };
  if (root->Is(Opcode::Tuple)) {
    for (const Instruction* o : root->operands())
      if (!keeps(o)) return false;
  } else if (!keeps(root)) {
    return false;
  }
  if (!plain(in)) return false;
  return EveryUseKeeps(
      f->parameter(k), [&](const Instruction* u) { return u == root && root->Is(Opcode::Tuple); },
      [&](const Instruction* u, const Instruction*) { return keeps(u); });
}

bool ReadsInOwnRow(const Instruction* i, int64_t k) {
  if (!i->Is(Opcode::Fusion) || !i->attrs().backend_config ||
      !absl::StrContains(i->attrs().backend_config->text, "block_level"))
    return false;
  const int64_t elements = i->operand(k)->shape().ElementCount();
  const auto whole = [&](const Shape& s) {
    return s.IsArray() && s.ElementCount() == elements && s.HasDefaultLayout();
  };
  return whole(i->operand(k)->shape()) &&
         EveryUseKeeps((*i->attrs().calls)->parameter(k),
                       [](const Instruction* u) { return u->Is(Opcode::Reduce) || u->Is(Opcode::Tuple); },
                       [&](const Instruction* u, const Instruction*) {
                         return (u->IsElementwise() || u->Is(Opcode::Bitcast)) && whole(u->shape());
                       });
}

bool MayShareWithOperand(const Instruction* i, int64_t k, int64_t output) {
  // Each device combines a part of its array, which nobody else reads, before it takes the others' parts.
  if (i->Is(Opcode::AllReduce)) return k == output;
  // A product's sums lie in the result before the other operands are read.
  if (i->Is(Opcode::Fusion) && i->attrs().fusion_kind == FusionKind::kOutput) return false;
  if (HoldsTransform(i)) return false;
  if (i->shape().IsTuple() && output >= static_cast<int64_t>(i->shape().tuple().size())) return false;
  const Shape& out = i->shape().IsTuple() ? i->shape().tuple()[output] : i->shape();
  if (!out.IsArray()) return false;
  const bool in_place = ReadsInOwnLoop(i, k, output) || (ReadsAtOwnElement(i, k) && !ComputedApart(i)) ||
                        (ReadsInOwnRow(i, k) && out.ElementCount() == i->operand(k)->shape().ElementCount());
  return in_place && ByteWidth(i->operand(k)->shape().type()) == ByteWidth(out.type());
}

}  // namespace kiln
