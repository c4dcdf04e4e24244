#include "compiler/passes/gpu/row_region.h"

#include <algorithm>
#include <map>

namespace kiln {
namespace {

constexpr size_t kMostMembers = 100, kMostOutputs = 4;

bool Plain(const Instruction* reduce) {
  const Instruction* r = (*reduce->attrs().to_apply)->root();
  return r->HasTrait(Commutative) && r->operand(0)->Is(Opcode::Parameter) && r->operand(1)->Is(Opcode::Parameter) &&
         r->operand(0) != r->operand(1);
}

// Costs next to nothing to compute again, whatever the place: it reads little or nothing from memory.
bool Free(const Instruction* i, int depth = 0) {
  constexpr int kDeepest = 6;
  constexpr int64_t kRepeats = 8;  // of each element of an array that may be read again
  if (i->Is(Opcode::Constant)) return i->shape().rank() == 0;
  if (i->Is(Opcode::Iota)) return true;
  if (i->Is(Opcode::Bitcast))
    return i->operand(0)->shape().HasDefaultLayout() && (depth == 0 || Free(i->operand(0), depth + 1));
  if (i->Is(Opcode::Broadcast))
    return i->operand(0)->Is(Opcode::Constant) || i->operand(0)->Is(Opcode::Parameter) ||
           i->operand(0)->shape().ElementCount() * kRepeats <= i->shape().ElementCount();
  if (!i->IsElementwise() || i->HasTrait(Transcendental) || i->Is(Opcode::Divide) || i->Is(Opcode::Remainder))
    return false;
  return depth < kDeepest && i->operand_count() > 0 &&
         std::all_of(i->operands().begin(), i->operands().end(), [&](auto* o) { return Free(o, depth + 1); });
}

// The kernel that alone reads `i` outside `inside` computes it as well: a reduction or loop that reads one array
// instead of another.
bool ReaderComputes(const Instruction* i, const RowForm& form, const absl::flat_hash_set<const Instruction*>& inside) {
  const Instruction* reader = nullptr;
  for (const Instruction* u : i->users()) {
    if (inside.contains(u)) continue;
    if (reader || (!u->Is(Opcode::Reduce) && !u->IsElementwise()) || form.RowReduce(u)) return false;
    reader = u;
  }
  if (!reader || i->IsRoot() || !form.Whole(i->shape())) return false;
  constexpr size_t kMostSteps = 6;
  std::vector<const Instruction*> work = {i};
  absl::flat_hash_set<const Instruction*> steps, arrays;
  while (!work.empty()) {
    const Instruction* v = work.back();
    work.pop_back();
    if (v->Is(Opcode::Bitcast)) {
      work.push_back(v->operand(0));
      continue;
    }
    if (Free(v) || form.RowBroadcast(v) || !steps.insert(v).second) continue;
    if (!v->IsElementwise() || v->operand_count() == 0) {
      arrays.insert(v);
      continue;
    }
    if (v->HasTrait(Transcendental) || v->Is(Opcode::Divide) || v->Is(Opcode::Remainder)) return false;
    work.insert(work.end(), v->operands().begin(), v->operands().end());
  }
  // The array that is read instead shall not live longer for it: it is an argument, or a loop's state.
  const auto lives = [](const Instruction* a) {
    while (a->Is(Opcode::Bitcast) || a->Is(Opcode::GetTupleElement)) a = a->operand(0);
    return a->Is(Opcode::Parameter);
  };
  return arrays.size() <= 1 && std::all_of(arrays.begin(), arrays.end(), lives) && steps.size() <= kMostSteps;
}

class Grower {
 public:
  Grower(Instruction* root, const RowForm& form, const absl::flat_hash_map<const Instruction*, size_t>& place)
      : root_(root), form_(form), place_(place) {}

  RowRegion Run() {
    if (ReaderComputes(root_, form_, {})) return {};
    Take(root_, true);
    region_.outputs.push_back(root_);
    while (!work_.empty() && region_.members.size() < kMostMembers) {
      Instruction* i = std::prev(work_.end())->second;
      work_.erase(std::prev(work_.end()));
      Consider(i);
    }
    if (!ComesBack()) region_ = RowRegion();
    return std::move(region_);
  }

 private:
  void Take(Instruction* i, bool moves) {
    region_.members.insert(i);
    if (moves) moved_.insert(i);
    for (Instruction* o : i->operands())
      if (const auto at = place_.find(o); at != place_.end() && !region_.members.contains(o)) work_[at->second] = o;
  }

  bool Takes(const Instruction* i) const {
    if (!i->shape().IsArray() || !i->control_predecessors().empty() || !i->control_successors().empty()) return false;
    if (i->shape().HasDynamic() || !i->shape().HasDefaultLayout()) return false;
    if (i->IsElementwise() || Free(i) || form_.RowReduce(i)) return true;
    return i->Is(Opcode::Broadcast) || i->Is(Opcode::Slice);
  }

  void Consider(Instruction* i) {
    if (!Takes(i)) return;
    bool inside = !i->IsRoot();
    for (const Instruction* u : i->users()) inside = inside && moved_.contains(u);
    if (inside) return Take(i, true);
    if (Free(i) || ReaderComputes(i, form_, moved_)) return Take(i, false);
    const bool gives = i->IsElementwise() ? form_.Whole(i->shape()) || form_.Row(i->shape()) : form_.RowReduce(i);
    if (!gives || region_.outputs.size() >= kMostOutputs) return;
    for (const Instruction* u : i->users())
      if (!moved_.contains(u) && IsNeeded(u)) return;
    region_.outputs.push_back(i);
    Take(i, true);
  }

  // Whether a member would need `from`, which stays outside, if only as the original of a copy.
  bool IsNeeded(const Instruction* from) const {
    std::vector<const Instruction*> work = {from};
    absl::flat_hash_set<const Instruction*> seen;
    const size_t last = place_.at(root_);
    while (!work.empty()) {
      const Instruction* i = work.back();
      work.pop_back();
      const auto at = place_.find(i);
      if ((at != place_.end() && at->second > last) || !seen.insert(i).second) continue;
      const bool copied = region_.members.contains(i);
      for (const auto* next : {&i->users(), &i->control_successors()})
        for (const Instruction* u : *next) {
          if (!copied && region_.members.contains(u)) return true;  // a copy reads what its original reads
          if (!moved_.contains(u)) work.push_back(u);
        }
    }
    return false;
  }

  // Every value that depends on a reduction is its row's, or a row's element's.
  bool Aligned(const Instruction* i) const {
    const Shape& s = i->shape();
    if (form_.RowReduce(i) || form_.RowBroadcast(i)) return true;
    if (!i->IsElementwise() && !i->Is(Opcode::Bitcast)) return false;
    const auto like = [&](const Shape& o) {
      return (form_.Whole(s) && form_.Whole(o)) || (form_.Row(s) && form_.Row(o));
    };
    return std::all_of(i->operands().begin(), i->operands().end(), [&](auto* o) { return like(o->shape()); });
  }

  bool ComesBack() const {
    std::vector<const Instruction*> order(region_.members.begin(), region_.members.end());
    std::sort(order.begin(), order.end(), [&](auto* a, auto* b) { return place_.at(a) < place_.at(b); });
    absl::flat_hash_set<const Instruction*> from_reduce;
    bool returns = false;
    for (const Instruction* i : order) {
      bool depends = form_.RowReduce(i);
      for (const Instruction* o : i->operands()) {
        depends = depends || from_reduce.contains(o);
        // Arrays that lie otherwise cannot be walked row by row.
        if (!region_.members.contains(o) && (!o->shape().IsArray() || !o->shape().HasDefaultLayout())) return false;
      }
      if (!depends) continue;
      if (!Aligned(i)) return false;
      from_reduce.insert(i);
      returns = returns || form_.RowBroadcast(i);
    }
    return returns;
  }

  Instruction* root_;
  const RowForm& form_;
  const absl::flat_hash_map<const Instruction*, size_t>& place_;
  RowRegion region_;
  absl::flat_hash_set<const Instruction*> moved_;  // members that are not copied but go
  std::map<size_t, Instruction*> work_;            // readers before what they read
};

}  // namespace

bool RowForm::Along(const Shape& s, const Ints& dims) const {
  int64_t behind = 1, along = 1;
  for (int64_t d = s.rank(); d-- > 0;) {
    const bool counts = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (behind < inner && counts && s.dim(d) != 1) return false;
    if (behind < inner)
      behind *= s.dim(d);
    else if (along < length && !counts && s.dim(d) != 1)
      return false;
    else if (along < length)
      along *= s.dim(d);
  }
  return behind == inner && along == length;
}

bool RowForm::RowReduce(const Instruction* i) const {
  return i->Is(Opcode::Reduce) && i->operand_count() == 2 && Row(i->shape()) && Whole(i->operand(0)->shape()) &&
         i->operand(1)->Is(Opcode::Constant) && Along(i->operand(0)->shape(), *i->attrs().dimensions) && Plain(i);
}

bool RowForm::RowBroadcast(const Instruction* i) const {
  if (!i->Is(Opcode::Broadcast) || !Whole(i->shape()) || !Row(i->operand(0)->shape())) return false;
  const Ints& dims = *i->attrs().dimensions;
  Ints repeated;
  for (int64_t d = 0; d < i->shape().rank(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) repeated.push_back(d);
  return std::is_sorted(dims.begin(), dims.end()) && Along(i->shape(), repeated);
}

RowRegion RowRegionOf(Instruction* root, const RowForm& form,
                      const absl::flat_hash_map<const Instruction*, size_t>& place) {
  return Grower(root, form, place).Run();
}

}  // namespace kiln
