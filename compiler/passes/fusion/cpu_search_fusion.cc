// Binary searches become one kernel: loops of a known number of steps, each of which looks up one element for every
// value that is searched for, in an array that the loop leaves as it is.
//
// A step is a pass over all values and the state of each. Fused, all steps of a value are one loop's body, and its
// state stays in registers. Keeps: every result, bit for bit.
#include <algorithm>

#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {
namespace {

constexpr int64_t kMostSteps = 32, kMostInstructions = 1200;  // of all steps

bool IsState(const Instruction* i) { return i->Is(Opcode::GetTupleElement) && i->operand(0)->Is(Opcode::Parameter); }

bool LooksUp(const Instruction* loop, const Instruction* i) {
  if (!i->Is(Opcode::Gather) || !IsState(i->operand(0))) return false;
  const Ints& sizes = *i->attrs().slice_sizes;
  return std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n == 1; }) &&
         IsInvariant(loop, *i->operand(0)->attrs().tuple_index);
}

bool StaysInRegisters(const Instruction* i) {
  if (i->Is(Opcode::Tuple)) return i->IsRoot();
  if (i->Is(Opcode::GetTupleElement)) return IsState(i);
  if (i->Is(Opcode::Constant)) return i->shape().rank() == 0;
  if (i->Is(Opcode::Bitcast) || i->Is(Opcode::Reshape)) return i->shape().type() == i->operand(0)->shape().type();
  return i->Is(Opcode::Parameter) || i->Is(Opcode::Broadcast) || i->Is(Opcode::Iota) || i->IsElementwise();
}

// A scalar constant, or an array of one.
bool IsFill(const Instruction* i) {
  const Instruction* x = i->Is(Opcode::Broadcast) ? i->operand(0) : i;
  return x->Is(Opcode::Constant) && x->shape().rank() == 0;
}

// The steps of a loop, copied behind one another as far as its results need them.
class Steps {
 public:
  explicit Steps(Instruction* loop) : loop_(loop), root_((*loop->attrs().body)->root()) {}

  // Element `k` of the state behind so many steps.
  Instruction* Behind(int64_t steps, int64_t k) {
    if (steps > 0) return In(steps, root_->operand(k));
    Instruction* init = InitOf(loop_, k);
    if (IsFill(init)) {
      members_.insert(init);
      members_.insert(init->operands().begin(), init->operands().end());
    }
    return init;
  }
  const absl::flat_hash_set<const Instruction*>& members() const { return members_; }

 private:
  // The body's `i` in that step, of which 1 is the first.
  Instruction* In(int64_t step, const Instruction* i) {
    if (IsState(i)) return Behind(step - 1, *i->attrs().tuple_index);
    if (const auto known = copies_.find({step, i}); known != copies_.end()) return known->second;
    std::vector<Instruction*> operands;
    for (const Instruction* o : i->operands()) operands.push_back(In(step, o));
    Instruction* copy = loop_->parent()->AddClone(i, i->shape(), operands);
    members_.insert(copy);
    copies_[{step, i}] = copy;
    return copy;
  }

  Instruction* loop_;
  const Instruction* root_;
  absl::flat_hash_map<std::pair<int64_t, const Instruction*>, Instruction*> copies_;
  absl::flat_hash_set<const Instruction*> members_;
};

// The elements of the state that something reads behind the loop. None: it is no search whose results are arrays that
// one loop can make.
std::vector<int64_t> ResultsOf(const Instruction* loop) {
  std::vector<int64_t> results;
  for (const Instruction* u : loop->users()) {
    if (!u->Is(Opcode::GetTupleElement)) return {};
    const int64_t k = *u->attrs().tuple_index;
    const Shape& s = u->shape();
    if (!s.IsArray() || s.rank() == 0 || !s.HasDefaultLayout() || IsInvariant(loop, k)) return {};
    if (!results.empty() && s.dims() != loop->shape().tuple()[static_cast<size_t>(results[0])].dims()) return {};
    if (std::find(results.begin(), results.end(), k) == results.end()) results.push_back(k);
  }
  std::sort(results.begin(), results.end());
  return results;
}

bool IsSearch(const Instruction* loop) {
  if (!HasFlatBodies(loop) || !loop->control_predecessors().empty() || !loop->control_successors().empty() ||
      ResultsOf(loop).empty())
    return false;
  PureComputations pure;
  bool looks_up = false;
  for (const auto& i : (*loop->attrs().body)->instructions()) {
    const bool here = LooksUp(loop, i.get());
    if (!here && !StaysInRegisters(i.get())) return false;
    if (i->shape().IsArray() && (i->shape().HasDynamic() || !i->shape().HasDefaultLayout())) return false;
    looks_up = looks_up || here;
  }
  return looks_up && pure.Contains(*loop->attrs().body) && pure.Contains(*loop->attrs().condition);
}

void Fuse(Instruction* loop, int64_t count) {
  Computation* c = loop->parent();
  Instruction* init = loop->operand(0);
  Steps steps(loop);
  std::vector<Instruction*> outputs;
  for (int64_t k : ResultsOf(loop)) {
    outputs.push_back(steps.Behind(count, k));
    for (Instruction* reader : ElementReaders(loop, k)) {
      reader->ReplaceAllUsesWith(outputs.back());
      c->Remove(reader);
    }
  }
  const std::vector<Instruction*> begins = init->operands();
  c->Remove(loop);
  if (init->users().empty()) c->Remove(init);
  Instruction* fusion = FuseRegion(outputs, steps.members());
  fusion->mutable_attrs().fusion_kind = FusionKind::kLoop;
  for (Instruction* o : begins)
    if (o->Is(Opcode::Constant) && o->users().empty()) c->Remove(o);
}

}  // namespace

absl::StatusOr<bool> CpuSearchFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      if (!IsSearch(loop)) continue;
      const std::optional<Induction> v = FindInduction(loop);
      const int64_t instructions = (*loop->attrs().body)->instruction_count();
      if (!v || v->trips < 1 || v->trips > kMostSteps || v->trips * instructions > kMostInstructions || !ctx.Take())
        continue;
      Fuse(loop, v->trips);
      changed = true;
    }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
