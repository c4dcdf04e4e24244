// Equal instructions over equal operands become one. Never what has side effects, may differ from run to run, or is
// ordered by control edges.
//
// Equal are also calls of functions that differ in names only, operations whose operands changed places, and exchanges
// on different channels: every device runs the same program, and so leaves out the same one.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/base/text.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/annotations.h"
#include "compiler/passes/simplify/same_function.h"

namespace kiln {

namespace {

std::string Text(attr::Comp) { return ""; }
std::string Text(const attr::Comps& v) { return absl::StrCat(v.size()); }
template <typename T>
std::string Text(const T& v) {
  return AttrText(v);
}

// Text that two equal instructions share: everything but their names and the functions that they call. Operands that
// may change places are in one order.
std::string Key(const Instruction* i) {
  std::string out = absl::StrCat(TextOf(i->opcode()), " ", i->shape().ToString());
  std::vector<int64_t> operands;
  for (const Instruction* o : i->operands()) operands.push_back(o->id());
  if (i->HasTrait(Commutative)) std::sort(operands.begin(), operands.end());
  for (int64_t o : operands) absl::StrAppend(&out, ",", o);
  const Attributes& a = i->attrs();
  const auto named = [](absl::string_view attribute) { return attribute == "metadata" || attribute == "channel_id"; };
  if (a.channel_id) absl::StrAppend(&out, ",", i->HasTrait(Collective) ? "on a channel" : Text(*a.channel_id));
#define ATTR(field, kind, text) \
  if (a.field && !named(text)) absl::StrAppend(&out, ",", #field, "=", Text(*a.field));
#include "compiler/hlo/attributes.def"
  // Thousands of fusions that differ in a constant inside must not meet in one bucket.
  for (const Computation* f : i->called()) absl::StrAppend(&out, ",", FunctionHash(f));
  return out;
}

// A call without operands has nothing that says that it gives one value: its program has to.
bool IsPureCall(const Instruction* call) {
  return !call->operands().empty() || AnnotationOf(call, "_xla_cse_safe_zero_operand") == "true";
}

bool CseCandidate(const Instruction* i) {
  if (i->Is(Opcode::Parameter) || i->HasTrait(Async)) return false;
  // A barrier is there to keep equal work apart.
  if (i->Is(Opcode::OptimizationBarrier)) return false;
  if (i->Is(Opcode::CustomCall) && !IsPureCall(i)) return false;
  return i->control_predecessors().empty() && i->control_successors().empty();
}

// Asked of few, as the answer for a loop is somewhere in all that it calls; its equal would give the same.
bool MayBeLeftOut(const Instruction* i) {
  return i->HasTrait(Collective) ? !HasSchedulingGroup(i) : !i->HasSideEffect();
}

Instruction* EqualOne(const std::vector<Instruction*>& bucket, const Instruction* i) {
  for (Instruction* o : bucket) {
    // Constants compare by value; their text could be megabytes.
    const bool same =
        i->Is(Opcode::Constant) ? o->shape() == i->shape() && o->literal() == i->literal() : CallSameFunctions(o, i);
    if (same) return o;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<bool> Cse(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    absl::flat_hash_map<std::string, std::vector<Instruction*>> seen;
    absl::flat_hash_map<uint64_t, std::vector<Instruction*>> constants;
    for (Instruction* i : c->PostOrder()) {
      // What is dead must not come back in the place of what was made of it.
      if ((i->users().empty() && !i->IsRoot()) || !CseCandidate(i)) continue;
      std::vector<Instruction*>& bucket = i->Is(Opcode::Constant) ? constants[ConstantHash(i)] : seen[Key(i)];
      Instruction* first = EqualOne(bucket, i);
      if (!first) bucket.push_back(i);
      if (!first || !MayBeLeftOut(i) || !ctx.Take()) continue;
      i->ReplaceAllUsesWith(first);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
