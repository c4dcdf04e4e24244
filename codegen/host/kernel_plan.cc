#include "codegen/host/kernel_plan.h"

#include "absl/strings/str_join.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

std::string CanonicalText(const Computation* c);

std::string ValueText(attr::Comp c) { return CanonicalText(c); }
std::string ValueText(const attr::Comps& v) {
  return absl::StrJoin(v, ";", [](std::string* o, const Computation* c) { *o += CanonicalText(c); });
}
template <typename T>
std::string ValueText(const T& v) {
  return AttrText(v);
}

bool Carried(absl::string_view spelling) {
  return spelling == "metadata" || spelling == "sharding" || spelling == "frontend_attributes" ||
         spelling == "origin" || spelling == "statistics" || spelling == "original_value" ||
         spelling == "backend_config";
}

std::string Body(const Instruction* i) {
  std::string out = absl::StrCat(i->shape().ToString(), TextOf(i->opcode()));
  if (i->Is(Opcode::Constant)) out += i->literal().ToString();
  const Attributes& a = i->attrs();
#define ATTR(field, kind, text) \
  if (a.field && !Carried(text)) absl::StrAppend(&out, ",", #field, "=", ValueText(*a.field));
#include "compiler/hlo/attributes.def"
  return out;
}

std::string CanonicalText(const Computation* c) {
  absl::flat_hash_map<const Instruction*, size_t> number;
  std::string out = "{";
  for (const Instruction* i : c->PostOrder()) {
    number.insert({i, number.size()});
    absl::StrAppend(&out, Body(i), "(");
    for (const Instruction* o : i->operands()) absl::StrAppend(&out, number.at(o), ",");
    out += ")";
    if (i == c->root()) out += "!";
  }
  return out + "}";
}

// Operands whose storage is also a result's: the kernel must not assume that they differ.
std::set<int64_t> Shared(const Thunk& t) {
  std::set<int64_t> out;
  for (size_t k = 0; k < t.reads.size(); ++k)
    for (const Slice& w : t.writes)
      if (t.reads[k] == w && w.size > 0) out.insert(static_cast<int64_t>(k));
  return out;
}

// Two thunks of one key are one kernel.
std::string Key(const Instruction* i, const std::set<int64_t>& shared) {
  std::string key = Body(i);
  for (const Instruction* o : i->operands()) absl::StrAppend(&key, ";", o->shape().ToString());
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

void AddKernels(const std::string& name, const ThunkSequence& thunks, absl::flat_hash_map<std::string, size_t>* known,
                KernelPlan* plan) {
  for (const Thunk& t : thunks) {
    for (const ThunkSequence& n : t.nested) AddKernels(name, n, known, plan);
    if (t.kind != ThunkKind::Kernel) continue;
    std::set<int64_t> shared = Shared(t);
    const auto [it, fresh] = known->insert({Key(t.instruction, shared), plan->kernels.size()});
    plan->of[t.instruction] = it->second;
    if (fresh)
      plan->kernels.push_back(
          {CIdentifier(absl::StrCat(name, "_k", plan->kernels.size(), "_", TextOf(t.instruction->opcode()))),
           t.instruction, std::move(shared), CompileWeight(t.instruction)});
  }
}

}  // namespace

KernelPlan PlanKernels(const std::string& name, const ThunkSequence& thunks) {
  KernelPlan plan;
  absl::flat_hash_map<std::string, size_t> known;
  AddKernels(name, thunks, &known, &plan);
  return plan;
}

}  // namespace kiln
