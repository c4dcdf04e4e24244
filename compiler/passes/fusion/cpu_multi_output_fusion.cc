// Loops over the same elements become one loop with several results, where that saves reading or writing an array.
//
// A producer joins its consumer if the consumer reads it only at the element it writes: it is then written only if
// somebody else reads it, and never read back. Two loops that read an array in common join if someone takes both of
// their results: otherwise one result would wait in memory for no use. Two reductions of the same dimensions join
// whoever takes them, for what they give is small. A pair that another path connects stays apart, for the one loop
// would have to run before and after that path. Pairs are taken in the order of the bytes they save.
//
// Cost: pairs of users of one value (at most kMostUsers of each), with a bounded search for paths.
#include <algorithm>
#include <map>
#include <tuple>

#include "absl/algorithm/container.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/simplify/inline_body.h"
#include "compiler/plan/alias.h"

namespace kiln {
namespace {

constexpr size_t kMostUsers = 32;            // of one value, that are looked at in pairs
constexpr size_t kMostArrays = 14;           // read and written by one loop: their addresses fit into registers
constexpr int64_t kMostInstructions = 300;   // of one loop
constexpr int64_t kMostTranscendentals = 6;  // of one loop: each is some fifty instructions of the machine
constexpr int64_t kLeastElements = 64;       // below this a loop saves next to nothing
constexpr size_t kMostReductions = 4;        // of one loop: each has a strip of accumulators in the first cache

// What the loop of fusion `i` runs over.
const Shape& LoopShape(const Instruction* i) {
  const Instruction* root = RootOf(i);
  return root->Is(Opcode::Reduce) ? root->operand(0)->shape() : i->shape();
}

bool Loop(const Instruction* i) {
  if (!i->Is(Opcode::Fusion) || IsCustomFusion(i) || !i->shape().IsArray() || !i->control_predecessors().empty() ||
      !i->control_successors().empty() || !i->shape().HasDefaultLayout() || i->shape().HasDynamic() ||
      (i->users().empty() && !i->IsRoot()))
    return false;
  const Computation* f = *i->attrs().calls;
  if (!(f->root()->IsElementwise() || f->root()->Is(Opcode::Reduce)) || !LoopShape(i).HasDefaultLayout() ||
      LoopShape(i).HasDynamic() || LoopShape(i).ElementCount() < kLeastElements)
    return false;
  // A loop over a transposed array is blocked, which takes a loop of its own.
  for (const auto& x : f->instructions())
    if (x->Is(Opcode::Transpose)) return false;
  return true;
}

class Joiner {
 public:
  Joiner(Computation* c, PassContext& ctx) : c_(c), ctx_(ctx) {}

  bool Run() {
    order_ = c_->PostOrder();
    for (size_t k = 0; k < order_.size(); ++k) {
      place_[order_[k]] = k;
      group_.push_back(k);
      members_.push_back({k});
      furthest_.push_back(k);
      loop_.push_back(Loop(order_[k]));
    }
    bool changed = false;
    for (const auto& [saved, a, b] : Pairs()) {
      const size_t x = group_[a], y = group_[b];
      if (x == y || !Fits(x, y) || !MayJoin(x, y) || !KeepsChains(x, y) || !ctx_.Take()) continue;
      for (size_t m : members_[y]) group_[m] = x;
      members_[x].insert(members_[x].end(), members_[y].begin(), members_[y].end());
      members_[y].clear();
      std::sort(members_[x].begin(), members_[x].end());
      const size_t last = members_[x].back();
      for (size_t k = members_[x].front(); k <= last; ++k) furthest_[k] = std::max(furthest_[k], last);
      changed = true;
    }
    for (size_t g = 0; g < members_.size(); ++g)
      if (members_[g].size() > 1) Build(members_[g]);
    return changed;
  }

 private:
  // Candidate pairs, the one that saves most bytes first.
  std::vector<std::tuple<int64_t, size_t, size_t>> Pairs() {
    std::map<std::pair<size_t, size_t>, int64_t> saved;
    for (const Instruction* v : order_) {
      if (!v->shape().IsArray() || v->shape().rank() == 0) continue;
      std::vector<size_t> users;
      for (const Instruction* u : v->users())
        if (auto it = place_.find(u); it != place_.end() && loop_[it->second]) users.push_back(it->second);
      std::sort(users.begin(), users.end());
      users.erase(std::unique(users.begin(), users.end()), users.end());
      if (users.size() > kMostUsers) users.resize(kMostUsers);
      const int64_t bytes = v->shape().ByteSize();
      const size_t at = place_.at(v);
      for (size_t i = 0; i < users.size(); ++i) {
        if (loop_[at] && Alike(at, users[i])) saved[{at, users[i]}] += bytes;
        for (size_t j = i + 1; j < users.size(); ++j)
          if (Alike(users[i], users[j]) && TakenTogether(users[i], users[j])) saved[{users[i], users[j]}] += bytes;
      }
    }
    std::vector<std::tuple<int64_t, size_t, size_t>> out;
    for (const auto& [pair, bytes] : saved) out.push_back({bytes, pair.first, pair.second});
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& p, const auto& q) { return std::get<0>(p) > std::get<0>(q); });
    return out;
  }

  bool Alike(size_t a, size_t b) const {
    const Instruction *x = RootOf(order_[a]), *y = RootOf(order_[b]);
    const bool reductions = x->Is(Opcode::Reduce);
    if (reductions != y->Is(Opcode::Reduce) || LoopShape(order_[a]).dims() != LoopShape(order_[b]).dims()) return false;
    return reductions ? *x->attrs().dimensions == *y->attrs().dimensions : InVectors(a) == InVectors(b);
  }

  // Without divisions of long integers: those run one by one, and would hold up a loop in vectors. A quotient and a
  // remainder of the same numbers, though, are one division.
  bool InVectors(size_t a) const {
    for (const auto& i : (*order_[a]->attrs().calls)->instructions())
      if (i->HasTrait(Costly) && IsIntegral(i->shape().type()) && InfoOf(i->shape().type()).bits > 32) return false;
    return true;
  }

  bool TakenTogether(size_t a, size_t b) const {
    if (RootOf(order_[a])->Is(Opcode::Reduce)) return true;
    for (const Instruction* u : order_[a]->users())
      if (order_[b]->users().end() != std::find(order_[b]->users().begin(), order_[b]->users().end(), u)) return true;
    return false;
  }

  bool Fits(size_t x, size_t y) const {
    if (RootOf(order_[members_[x][0]])->Is(Opcode::Reduce) && members_[x].size() + members_[y].size() > kMostReductions)
      return false;
    // What one member gives another alone is in a register.
    auto inside = [&](const Instruction* i) {
      const auto it = place_.find(i);
      return it != place_.end() && (group_[it->second] == x || group_[it->second] == y);
    };
    absl::flat_hash_set<const Instruction*> arrays;
    int64_t instructions = 0, transcendentals = 0;
    for (size_t g : {x, y})
      for (size_t m : members_[g]) {
        if (order_[m]->IsRoot() || !absl::c_all_of(order_[m]->users(), inside)) arrays.insert(order_[m]);
        for (const Instruction* o : order_[m]->operands())
          if (!inside(o)) arrays.insert(o);
        for (const auto& i : (*order_[m]->attrs().calls)->instructions()) {
          ++instructions;
          transcendentals += i->HasTrait(Transcendental);
        }
      }
    return arrays.size() <= kMostArrays && instructions <= kMostInstructions && transcendentals <= kMostTranscendentals;
  }

  // The most transcendental functions that wait for one another in a loop of `members`. Where one loop would have a
  // longer chain than two, the processor overlaps fewer iterations, which costs more than a pass over memory.
  int64_t Chain(std::vector<size_t> members) const {
    std::sort(members.begin(), members.end());
    absl::flat_hash_map<const Instruction*, int64_t> chain;
    int64_t longest = 0;
    for (size_t m : members) {
      const Instruction* fusion = order_[m];
      const Computation* f = *fusion->attrs().calls;
      for (const Instruction* i : f->PostOrder()) {
        int64_t n = 0;
        if (i->Is(Opcode::Parameter)) {
          const auto it = chain.find(fusion->operand(*i->attrs().parameter_number));
          n = it == chain.end() ? 0 : it->second;
        }
        for (const Instruction* o : i->operands()) n = std::max(n, chain.at(o));
        chain[i] = n + i->HasTrait(Transcendental);
        longest = std::max(longest, chain[i]);
      }
      chain[fusion] = chain.at(f->root());
    }
    return longest;
  }

  bool KeepsChains(size_t x, size_t y) const {
    std::vector<size_t> both = members_[x];
    both.insert(both.end(), members_[y].begin(), members_[y].end());
    return Chain(both) <= std::max(Chain(members_[x]), Chain(members_[y]));
  }

  // No path between the groups but edges that read at their own element.
  bool MayJoin(size_t x, size_t y) const {
    for (auto [from, to] : {std::pair(x, y), std::pair(y, x)})
      for (size_t m : members_[to]) {
        const Instruction* i = order_[m];
        for (int64_t k = 0; k < i->operand_count(); ++k)
          if (group_[place_.at(i->operand(k))] == from && !ReadsAtOwnElement(i, k)) return false;
      }
    return !PathAround(x, y) && !PathAround(y, x);
  }

  // A path from group `x` to group `y` through something that is in neither. Joined loops count as one.
  bool PathAround(size_t x, size_t y) const {
    // Nothing behind it leads to `y`: a path goes back only through a joined loop that begins before it.
    size_t last = members_[y].back();
    while (furthest_[last] > last) last = furthest_[last];
    std::vector<size_t> work;
    absl::flat_hash_set<size_t> seen = {x};
    auto follow = [&](size_t g) {
      for (size_t m : members_[g]) {
        auto next = [&](const Instruction* u) {
          const auto it = place_.find(u);
          if (it == place_.end()) return;
          const size_t to = group_[it->second];
          if (g == x && to == y) return;
          if (members_[to].front() <= last && seen.insert(to).second) work.push_back(to);
        };
        for (const Instruction* u : order_[m]->users()) next(u);
        for (const Instruction* u : order_[m]->control_successors()) next(u);
      }
    };
    follow(x);
    while (!work.empty()) {
      const size_t g = work.back();
      work.pop_back();
      if (g == y) return true;
      follow(g);
    }
    return false;
  }

  void Build(const std::vector<size_t>& members) {
    absl::flat_hash_set<const Instruction*> inside;
    for (size_t m : members) inside.insert(order_[m]);
    Computation* f = c_->module()->AddComputation("fused_computation");
    absl::flat_hash_map<const Instruction*, Instruction*> value;  // of operands and members, inside the fusion
    std::vector<Instruction*> operands, roots, results;
    std::vector<Shape> shapes;
    for (size_t m : members) {
      Instruction* i = order_[m];
      std::vector<Instruction*> arguments;
      for (Instruction* o : i->operands()) {
        Instruction*& v = value[o];
        if (!v) {
          v = f->AddParameter(static_cast<int64_t>(operands.size()), o->shape(), "param");
          operands.push_back(o);
        }
        arguments.push_back(v);
      }
      value[i] = InlineBody(f, *i->attrs().calls, arguments, i);
      bool outside = i->IsRoot();
      for (const Instruction* u : i->users()) outside = outside || !inside.contains(u);
      if (!outside) continue;
      roots.push_back(value[i]);
      results.push_back(i);
      shapes.push_back(i->shape());
    }
    const bool one = results.size() == 1;
    const Shape shape = one ? shapes[0] : Shape::Tuple(shapes);
    f->set_root(one ? roots[0] : f->Add(Opcode::Tuple, shape, roots));
    Instruction* fusion = c_->Add(Opcode::Fusion, shape, operands, "fusion");
    fusion->set_loc(results[0]->loc());
    fusion->mutable_attrs().calls = f;
    fusion->mutable_attrs().fusion_kind = roots[0]->Is(Opcode::Reduce) ? FusionKind::kInput : FusionKind::kLoop;
    for (size_t k = 0; k < results.size(); ++k) {
      Instruction* with = fusion;
      if (!one) {
        with = c_->Add(Opcode::GetTupleElement, shapes[k], {fusion});
        with->mutable_attrs().tuple_index = static_cast<int64_t>(k);
      }
      results[k]->ReplaceAllUsesWith(with);
    }
    for (auto m = members.rbegin(); m != members.rend(); ++m) c_->Remove(order_[*m]);
  }

  Computation* c_;
  PassContext& ctx_;
  std::vector<Instruction*> order_;
  absl::flat_hash_map<const Instruction*, size_t> place_;
  std::vector<size_t> group_;                 // of each instruction: the number of its first member
  std::vector<std::vector<size_t>> members_;  // of each group, ascending
  std::vector<size_t> furthest_;              // the last member of groups that begin at or before each place, if behind
  std::vector<bool> loop_;
};

}  // namespace

absl::StatusOr<bool> CpuMultiOutputFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) changed = Joiner(c, ctx).Run() || changed;
  return changed;
}

}  // namespace kiln
