// A conditional on a constant, or with one branch, becomes a call of the branch it picks; an index out of range picks
// the last. One whose two branches only hand on what they are given, or compute little, becomes selections. Results and
// operands that nobody reads leave.
//
// On a GPU a choice takes longer than kernels of some size: there few branches become selections too that a number
// picks between, as JAX writes each choice, or that compute more.
//
// Stays: what has side effects is where the program put it, and so is what control edges or shardings hold.
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/annotations.h"
#include "compiler/passes/other_passes.h"
#include "compiler/passes/simplify/branches.h"
#include "compiler/passes/simplify/conditional_tuples.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {
namespace {

// The branch that a constant picks, or that is the only one.
int64_t Picked(const Instruction* i) {
  if (BranchesOf(i).size() == 1) return 0;
  const int64_t v = i->operand(0)->literal().Get(0).i, n = static_cast<int64_t>(BranchesOf(i).size());
  if (i->operand(0)->shape().type() == PrimitiveType::Pred) return v ? 0 : 1;
  return v < 0 || v >= n ? n - 1 : v;
}

bool OnlyHandsOn(const Computation* c) {
  for (const auto& i : c->instructions()) {
    if (!i->control_predecessors().empty()) return false;
    if (!i->Is(Opcode::Parameter) && !i->Is(Opcode::Tuple) && !i->Is(Opcode::GetTupleElement) &&
        !i->Is(Opcode::AfterAll))
      return false;
  }
  return true;
}

// What computing both branches costs less than choosing one.
bool ComputesLittle(const Computation* c, bool on_gpu) {
  const int64_t few = on_gpu ? 1 << 16 : 1024;  // elements that all of its instructions compute and read
  int64_t elements = 0;
  for (const auto& i : c->instructions()) {
    if (!i->control_predecessors().empty() || i->Is(Opcode::Rng) || i->HasSideEffect()) return false;
    switch (i->opcode()) {
      case Opcode::Parameter:
      case Opcode::Tuple:
      case Opcode::GetTupleElement:
      case Opcode::AfterAll:
        continue;
      case Opcode::Broadcast:
      case Opcode::Concatenate:
      case Opcode::Constant:
      case Opcode::DynamicSlice:
      case Opcode::Pad:
      case Opcode::Reduce:
      case Opcode::Reshape:
      case Opcode::Slice:
        break;
      default:
        if (!i->IsElementwise() || i->Is(Opcode::Map)) return false;
    }
    if (!i->shape().IsArray()) return false;
    elements += i->shape().ElementCount();
    if (i->Is(Opcode::Reduce)) elements += i->operand(0)->shape().ElementCount();
  }
  return elements <= few;
}

bool Selectable(const Shape& s) {
  if (s.IsTuple()) return std::all_of(s.tuple().begin(), s.tuple().end(), Selectable);
  return s.IsToken() || (s.IsArray() && !s.HasDynamic());
}

// One array that is handed on takes no more than a pointer, and stays.
bool BecomesSelections(const Instruction* i, bool on_gpu) {
  constexpr size_t kFewBranches = 4;
  const std::vector<Computation*> branches = BranchesOf(i);
  const bool by_number = i->operand(0)->shape().type() != PrimitiveType::Pred;
  if ((by_number && !on_gpu) || branches.size() > kFewBranches || !Selectable(i->shape())) return false;
  for (const Computation* branch : branches) {
    const bool hands_on = OnlyHandsOn(branch);
    if ((hands_on && !i->shape().IsTuple()) || (!hands_on && !ComputesLittle(branch, on_gpu))) return false;
  }
  return true;
}

Instruction* Selected(Instruction* pred, Instruction* a, Instruction* b) {
  Computation* c = pred->parent();
  if (a->shape().IsToken()) return c->Add(Opcode::AfterAll, a->shape(), {a, b});
  if (a->shape().IsArray()) return SelectExpr(BroadcastTo(pred, a->shape().dims()), a, b).get();
  std::vector<Instruction*> parts;
  for (size_t k = 0; k < a->shape().tuple().size(); ++k) {
    const int64_t n = static_cast<int64_t>(k);
    parts.push_back(Selected(pred, PartOf(a, n).get(), PartOf(b, n).get()));
  }
  return c->Add(Opcode::Tuple, a->shape(), parts);
}

// What is a program's to hold in its place, or has numbers that copies of branches would repeat.
bool Stays(const Instruction* i) {
  return HasSchedulingGroup(i) || !i->control_predecessors().empty() || !i->control_successors().empty();
}

bool HasChannels(const Computation* c) {
  for (const auto& i : c->instructions()) {
    if (i->attrs().channel_id) return true;
    for (const Computation* callee : i->called())
      if (HasChannels(callee)) return true;
  }
  return false;
}

bool MayShrink(const Instruction* i) {
  if (i->attrs().sharding) return false;
  const std::vector<Computation*> branches = BranchesOf(i);
  return std::none_of(branches.begin(), branches.end(), HasChannels);
}

// What the branch that is picked gives, of what all give.
Instruction* Chosen(Instruction* which, const std::vector<Instruction*>& given) {
  if (which->shape().type() == PrimitiveType::Pred) return Selected(which, given[0], given[1]);
  if (which->Is(Opcode::Convert) && which->operand(0)->shape().type() == PrimitiveType::Pred && given.size() == 2)
    return Selected(which->operand(0), given[1], given[0]);
  Instruction* out = given.back();
  for (size_t k = given.size() - 1; k-- > 0;)
    out = Selected((Expr(which) == static_cast<double>(k)).get(), given[k], out);
  return out;
}

// The conditional as a call or as selections.
void TakeApart(Instruction* i, bool known) {
  Computation* c = i->parent();
  const std::vector<Computation*> branches = BranchesOf(i);
  Instruction* with;
  if (known) {
    const int64_t branch = Picked(i);
    with = c->Add(Opcode::Call, i->shape(), {i->operand(branch + 1)});
    with->mutable_attrs().to_apply = branches[static_cast<size_t>(branch)];
  } else {
    std::vector<Instruction*> given;
    for (size_t k = 0; k < branches.size(); ++k)
      given.push_back(InlineBody(c, branches[k], {i->operand(static_cast<int64_t>(k) + 1)}, i));
    with = Chosen(i->operand(0), given);
  }
  i->ReplaceAllUsesWith(with);
  c->Remove(i);
}

absl::StatusOr<bool> SimplifyAll(Module& m, bool on_gpu, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : m.PostOrder()) {
    for (Instruction* i : OfOpcode(c, Opcode::Conditional)) {
      if (Stays(i) || ctx.fuel == 0) continue;
      bool did = false;
      if (MayShrink(i)) {
        did = UnifyEqualResults(i);
        if (Instruction* less = WithoutUnreadResults(i)) {
          i = less;
          did = true;
        }
      }
      const bool known = i->operand(0)->Is(Opcode::Constant) || BranchesOf(i).size() == 1;
      if (!i->HasSideEffect() && (known || BecomesSelections(i, on_gpu))) {
        TakeApart(i, known);
        did = true;
      } else if (MayShrink(i)) {
        did = DropUnreadOperands(i) || did;
      }
      if (did) ctx.Take();
      changed |= did;
    }
  }
  if (changed) {
    m.RemoveUnreachableComputations();
    RETURN_IF_ERROR(Dce(m, ctx).status());
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> ConditionalSimplifier(Module& m, PassContext& ctx) { return SimplifyAll(m, false, ctx); }

absl::StatusOr<bool> GpuConditionalSimplifier(Module& m, PassContext& ctx) { return SimplifyAll(m, true, ctx); }

}  // namespace kiln
