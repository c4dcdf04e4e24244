// A broadcast that a loop's state holds and no iteration changes: the loop holds what is repeated, and repeats it where
// it reads it.
//
// Why: elementwise loops compute a broadcast for nothing, where the array of it was read from memory in each iteration
//   and took the place of others in the caches.
// Left alone: small arrays; broadcasts that save little; readers that need an array in memory.
// Keeps: every result, bit for bit.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {
namespace {

constexpr int64_t kLeastBytes = 32 << 10;  // of the broadcast
constexpr int64_t kLeastSaving = 16;       // times less

bool IsForwarding(const Computation* f, const Instruction* reader) {
  return reader == f->root() && reader->Is(Opcode::Tuple);
}

// Whether all that reads element `k` inside of the loop is a loop over elements itself, and something does.
bool ReadByElements(const Instruction* loop, int64_t k) {
  bool used = false;
  for (const Computation* f : {*loop->attrs().body, *loop->attrs().condition})
    for (const Instruction* e : ElementReaders(f->parameter(0), k)) {
      if (e->IsRoot()) return false;
      for (const Instruction* u : e->users()) {
        if (IsForwarding(f, u)) continue;
        if (!u->IsElementwise() || u->Is(Opcode::Copy)) return false;
        used = true;
      }
    }
  return used;
}

bool Wanted(const Instruction* loop, int64_t k) {
  const Instruction* init = InitOf(loop, k);
  if (!IsInvariant(loop, k) || !init || !init->Is(Opcode::Broadcast) || init->attrs().sharding) return false;
  const Shape &all = init->shape(), &one = init->operand(0)->shape();
  return !all.HasDynamic() && all.ElementCount() * ByteWidth(all.type()) >= kLeastBytes &&
         one.ElementCount() * kLeastSaving <= all.ElementCount() && ReadByElements(loop, k);
}

// Element `k` of the loop is `broadcast`, and what that repeats is element `from`.
void Repeat(Instruction* loop, int64_t k, int64_t from, const Instruction* broadcast) {
  for (Computation* f : {*loop->attrs().body, *loop->attrs().condition})
    for (Instruction* e : ElementReaders(f->parameter(0), k)) {
      std::vector<Instruction*> readers = e->users();
      std::erase_if(readers, [&](const Instruction* u) { return IsForwarding(f, u); });
      if (readers.empty()) continue;
      Instruction* one = f->Add(Opcode::GetTupleElement, broadcast->operand(0)->shape(), {f->parameter(0)});
      one->mutable_attrs().tuple_index = from;
      Instruction* all = f->AddClone(broadcast, broadcast->shape(), {one});
      for (Instruction* u : readers) e->ReplaceUseWith(u, all);
    }
}

}  // namespace

absl::StatusOr<bool> WhileLoopBroadcastSinking(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : m.PostOrder())
    for (Instruction* loop : c->PostOrder()) {
      if (!HasFlatState(loop) || !HasNoControlEdges(*loop->attrs().body, *loop->attrs().condition)) continue;
      std::vector<int64_t> sunk;
      const auto elements = static_cast<int64_t>(loop->shape().tuple().size());
      for (int64_t k = 0; k < elements; ++k)
        if (Wanted(loop, k) && ctx.Take()) sunk.push_back(k);
      if (sunk.empty()) continue;
      std::vector<Instruction*> broadcasts, repeated;
      for (const int64_t k : sunk) {
        broadcasts.push_back(InitOf(loop, k));
        repeated.push_back(broadcasts.back()->operand(0));
      }
      Instruction* with = ExtendLoop(loop, repeated);
      for (size_t n = 0; n < sunk.size(); ++n) Repeat(with, sunk[n], elements + static_cast<int64_t>(n), broadcasts[n]);
      std::vector<bool> kept(static_cast<size_t>(elements) + sunk.size(), true);
      const std::vector<bool> live = LiveElements(with);
      for (const int64_t k : sunk) kept[static_cast<size_t>(k)] = live[static_cast<size_t>(k)];
      if (std::find(kept.begin(), kept.end(), false) != kept.end()) ShrinkLoop(with, kept);
      changed = true;
    }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
