#include "codegen/host/kernel_plan.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/base/text.h"
#include "compiler/hlo/canonical_text.h"
#include "compiler/hlo/library_calls.h"

namespace kiln {
namespace {

// What a kernel takes from around its instruction: a sort writes places where it is given places, a factorisation
// leaves out what nobody reads.
std::string Surroundings(const Instruction* i) {
  std::string out;
  if (i->Is(Opcode::Sort))
    for (int64_t k = 0; k < i->operand_count(); ++k) {
      const Instruction* o =
          i->operand(k)->Is(Opcode::Fusion) ? (*i->operand(k)->attrs().calls)->root() : i->operand(k);
      if (o->Is(Opcode::Iota)) absl::StrAppend(&out, "|", k, " counts ", *o->attrs().iota_dimension);
    }
  if (i->shape().IsTuple() && !i->Is(Opcode::Fusion)) {
    std::set<int64_t> read;
    for (const Instruction* u : i->users())
      if (u->Is(Opcode::GetTupleElement))
        read.insert(*u->attrs().tuple_index);
      else
        read.insert(-1);
    if (i->IsRoot()) read.insert(-1);
    absl::StrAppend(&out, "|reads ", absl::StrJoin(read, ","));
  }
  return out;
}

// Marks on instructions of a fusion, such as those of roots that may be estimated.
std::string MarksInside(const Instruction* i) {
  std::string out;
  if (!i->Is(Opcode::Fusion)) return out;
  int64_t number = 0;
  for (const Instruction* inner : (*i->attrs().calls)->PostOrder()) {
    if (inner->attrs().backend_config) absl::StrAppend(&out, "|", number, " ", inner->attrs().backend_config->text);
    ++number;
  }
  return out;
}

// Two thunks of one key are one kernel.
std::string Key(const Instruction* i, const std::set<int64_t>& shared) {
  std::string key = absl::StrCat(CanonicalText(i), Surroundings(i), MarksInside(i));
  // Of configurations, what decides which kernel it is: a custom call's says what it computes.
  if (i->attrs().backend_config && i->Is(Opcode::CustomCall))
    absl::StrAppend(&key, "|", i->attrs().backend_config->text);
  else if (i->attrs().backend_config)
    for (const char* field : {"kind", "selected_algorithm"})
      if (const auto value = ConfigField(i->attrs().backend_config->text, field)) absl::StrAppend(&key, "|", *value);
  for (int64_t s : shared) absl::StrAppend(&key, "~", s);
  return key;
}

int64_t CompileWeight(const Instruction* i) {
  constexpr int64_t kCopy = 10, kLoopNest = 10, kEngine = 60;
  switch (i->opcode()) {
    case Opcode::Fusion:
      return kLoopNest + static_cast<int64_t>((*i->attrs().calls)->instructions().size());
    case Opcode::Copy:
      return kCopy;
    default:
      return kEngine;
  }
}

// What a fusion is for: the first of these that it holds, or else its root.
Opcode MainOpcode(const Instruction* i) {
  if (!i->Is(Opcode::Fusion)) return i->opcode();
  constexpr Opcode kHeavy[] = {Opcode::Convolution, Opcode::Dot,    Opcode::Sort,         Opcode::SelectAndScatter,
                               Opcode::Scatter,     Opcode::Gather, Opcode::ReduceWindow, Opcode::Reduce};
  const Computation& f = **i->attrs().calls;
  for (Opcode heavy : kHeavy)
    for (const auto& x : f.instructions())
      if (x->Is(heavy)) return heavy;
  return f.root()->opcode();
}

std::string Label(const Instruction* i, const DebugProgram* debug) {
  if (const DebugOp* op = debug ? debug->Find(i) : nullptr) return op->label;
  return CIdentifier(absl::StrCat(TextOf(i->opcode()), i->Is(Opcode::Fusion) ? "_" : "",
                                  i->Is(Opcode::Fusion) ? TextOf(MainOpcode(i)) : ""));
}

void AddKernels(const std::string& name, const ThunkSequence& thunks, const DebugProgram* debug,
                absl::flat_hash_map<std::string, size_t>* known, KernelPlan* plan) {
  for (const Thunk& t : thunks) {
    for (const ThunkSequence& n : t.nested) AddKernels(name, n, debug, known, plan);
    if (t.kind != ThunkKind::Kernel) continue;
    std::set<int64_t> shared = SharedOperands(t);
    const auto [it, fresh] = known->insert({Key(t.instruction, shared), plan->kernels.size()});
    plan->of[t.instruction] = it->second;
    if (!fresh) continue;
    const std::string label = Label(t.instruction, debug);
    plan->kernels.push_back({CIdentifier(absl::StrCat(name, "_k", plan->kernels.size(), "_", label)), t.instruction,
                             std::move(shared), CompileWeight(t.instruction), label});
  }
}

}  // namespace

std::set<int64_t> SharedOperands(const Thunk& t) {
  std::set<int64_t> out;
  for (size_t k = 0; k < t.reads.size(); ++k)
    for (const Slice& w : t.writes)
      if (t.reads[k] == w && w.size > 0) out.insert(static_cast<int64_t>(k));
  return out;
}

KernelPlan PlanKernels(const std::string& name, const ThunkSequence& thunks, const DebugProgram* debug) {
  KernelPlan plan;
  absl::flat_hash_map<std::string, size_t> known;
  AddKernels(name, thunks, debug, &known, &plan);
  return plan;
}

}  // namespace kiln
