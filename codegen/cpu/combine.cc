#include "codegen/cpu/combine.h"

#include "absl/strings/str_cat.h"
#include "compiler/hlo/canonical_text.h"
#include "compiler/hlo/graph_builder.h"

namespace kiln::cpu {
namespace {

constexpr int64_t kBlockElements = 512;

// The scalar function `f` on arrays of `elements`, as a fusion of two parameters of `c`.
Instruction* Combine(const Computation* f, int64_t elements, Computation* c) {
  Computation* body = c->module()->AddComputation("combine");
  absl::flat_hash_map<const Instruction*, Instruction*> of;
  for (const Instruction* x : f->PostOrder()) {
    const Shape shape = Shape::Array(x->shape().type(), {elements});
    if (x->Is(Opcode::Parameter)) {
      of[x] = body->AddParameter(*x->attrs().parameter_number, shape, "p");
    } else if (x->Is(Opcode::Constant)) {
      of[x] = BroadcastTo(body->AddConstant(x->literal()), shape.dims()).get();
    } else {
      std::vector<Instruction*> operands;
      for (const Instruction* o : x->operands()) operands.push_back(of.at(o));
      of[x] = body->AddClone(x, shape, operands);
    }
  }
  // A function may ignore an argument; a kernel is given both arrays.
  for (const Instruction* p : f->parameters())
    if (!of.contains(p))
      body->AddParameter(*p->attrs().parameter_number, Shape::Array(p->shape().type(), {elements}), "p");
  body->set_root(of.at(f->root()));
  std::vector<Instruction*> operands;
  for (const Instruction* p : body->parameters())
    operands.push_back(c->AddParameter(static_cast<int64_t>(c->parameters().size()), p->shape(), "p"));
  Instruction* fusion = c->Add(Opcode::Fusion, of.at(f->root())->shape(), operands, "combine");
  fusion->mutable_attrs().calls = body;
  fusion->mutable_attrs().fusion_kind = FusionKind::kLoop;
  return fusion;
}

void Add(const std::string& name, const ThunkSequence& thunks, Computation* c,
         absl::flat_hash_map<std::string, size_t>* known, KernelPlan* plan) {
  for (const Thunk& t : thunks) {
    for (const ThunkSequence& n : t.nested) Add(name, n, c, known, plan);
    if (t.kind != ThunkKind::Exchange || !t.instruction->attrs().to_apply) continue;
    const Computation* f = *t.instruction->attrs().to_apply;
    Instruction* block = Combine(f, kBlockElements, c);
    const auto [it, fresh] = known->insert({CanonicalText(block), plan->kernels.size()});
    plan->of[t.instruction] = it->second;
    if (!fresh) continue;
    constexpr int64_t kWeight = 10;  // of a loop, among other kernels
    for (const Instruction* i : {block, Combine(f, 1, c)})
      plan->kernels.push_back({absl::StrCat(name, "_k", plan->kernels.size(), "_combine"), i, {0}, kWeight, "combine"});
  }
}

}  // namespace

std::unique_ptr<Module> PlanCombinations(const std::string& name, const ThunkSequence& thunks, KernelPlan* plan) {
  auto module = std::make_unique<Module>("combinations");
  absl::flat_hash_map<std::string, size_t> known;
  Add(name, thunks, module->AddComputation("combinations"), &known, plan);
  return module;
}

}  // namespace kiln::cpu
