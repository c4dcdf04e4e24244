#include "codegen/gpu/stand_in.h"

#include "absl/strings/str_cat.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/hlo/tuning.h"

namespace kiln::gpu {
namespace {

// `call` over arrays [batch, rows, columns], as kernels take products; memory is the same. Operands are parameters of
// `c`.
absl::StatusOr<Instruction*> OfThreeDimensions(const Instruction* call, Computation* c) {
  ASSIGN_OR_RETURN(GemmConfig g, GemmConfigOf(call));
  for (const Instruction* o : call->operands())
    if (!o->shape().HasDefaultLayout())
      return ErrorAt(call, "products take row-major arrays", absl::StatusCode::kUnimplemented);
  const Shape& out = call->shape();
  const int64_t batch_rank = out.rank() - 2;
  int64_t batch = 1;
  for (int64_t d = 0; d < batch_rank; ++d) batch *= out.dim(d);
  const auto matrices = [&](const Shape& s, bool one) {
    const int64_t rows = s.dim(s.rank() - 2), columns = s.dim(s.rank() - 1);
    return Shape::Array(s.type(), one ? Ints{rows, columns} : Ints{batch, rows, columns});
  };
  std::vector<Instruction*> operands;
  for (int64_t k = 0; k < call->operand_count(); ++k) {
    const Shape& s = call->operand(k)->shape();
    // The scales and the bias are as they are.
    const bool matrix = s.rank() >= 2;
    const bool one = (k == 0 && g.lhs_broadcast) || (k == 1 && g.rhs_broadcast);
    operands.push_back(c->AddParameter(k, matrix ? matrices(s, one) : Shape::Array(s.type(), s.dims()), "p"));
  }
  // Contracting dimensions count as in the dot, where a broadcast operand has the batch's.
  g.lhs_contracting = Ints{g.lhs_contracting[0] - batch_rank + 1};
  g.rhs_contracting = Ints{g.rhs_contracting[0] - batch_rank + 1};
  g.lhs_batch = g.rhs_batch = {0};
  Instruction* same = c->Add(Opcode::CustomCall, matrices(out, false), operands, "product");
  same->set_loc(call->loc());
  same->mutable_attrs().custom_call_target = call->attrs().custom_call_target;
  g.algorithm = "-1";
  same->mutable_attrs().backend_config = ToText(g);
  return same;
}

// A fusion around the product, on operands of its own in `c`.
absl::StatusOr<Instruction*> StandInFor(const Instruction* call, Computation* c) {
  Computation* f = c->module()->AddComputation("product");
  ASSIGN_OR_RETURN(Instruction * same, OfThreeDimensions(call, f));
  ASSIGN_OR_RETURN(Instruction * meaning, MeaningOf(same, f, same->operands()));
  f->set_root(meaning);
  std::vector<Instruction*> operands;
  for (const Instruction* p : f->parameters())
    operands.push_back(c->AddParameter(static_cast<int64_t>(c->parameters().size()), p->shape(), "p"));
  f->Remove(same);
  Instruction* fusion = c->Add(Opcode::Fusion, meaning->shape(), operands, "product");
  fusion->set_loc(call->loc());
  fusion->mutable_attrs().calls = f;
  fusion->mutable_attrs().fusion_kind = FusionKind::kCustom;
  fusion->mutable_attrs().backend_config = "{\"fusion_backend_config\":{\"kind\":\"__triton_gemm\"}}";
  return fusion;
}

absl::Status Add(const std::string& name, const ThunkSequence& thunks, Computation* c,
                 absl::flat_hash_map<std::string, size_t>* known, KernelPlan* plan) {
  for (const Thunk& t : thunks) {
    for (const ThunkSequence& n : t.nested) RETURN_IF_ERROR(Add(name, n, c, known, plan));
    if (t.kind != ThunkKind::LibraryCall || !IsGemmCall(t.instruction)) continue;
    const std::set<int64_t> shared = SharedOperands(t);
    std::string key = TuningText(t.instruction);
    for (int64_t s : shared) absl::StrAppend(&key, "~", s);
    const auto [it, fresh] = known->insert({key, plan->kernels.size()});
    plan->of[t.instruction] = it->second;
    if (!fresh) continue;
    ASSIGN_OR_RETURN(const Instruction* stand_in, StandInFor(t.instruction, c));
    constexpr int64_t kWeight = 60;  // of a product, among other kernels
    plan->kernels.push_back({absl::StrCat(name, "_k", plan->kernels.size(), "_product"), stand_in, shared, kWeight});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> PlanStandIns(const std::string& name, const ThunkSequence& thunks,
                                                     KernelPlan* plan) {
  auto module = std::make_unique<Module>("products");
  absl::flat_hash_map<std::string, size_t> known;
  RETURN_IF_ERROR(Add(name, thunks, module->AddComputation("products"), &known, plan));
  return module;
}

}  // namespace kiln::gpu
