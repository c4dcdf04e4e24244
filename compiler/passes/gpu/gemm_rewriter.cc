// Products become calls of cuBLASLt, with the scaling, sum and activation around them as far as the library does these.
//
//   alpha * dot(a, b) + beta * c, + bias, relu or gelu, converted: one call.
// The sum with c is taken only if nobody else needs c, since the library may overwrite it; a bias is a vector along the
// last dimension. Products of fewer than 100 elements in all stay loops, as do types that the library lacks.
#include <cmath>

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

constexpr int64_t kSmallest = 100;  // elements of both operands and the result

bool TypesServed(PrimitiveType a, PrimitiveType b, PrimitiveType out) {
  using P = PrimitiveType;
  if (a != b) return false;
  switch (a) {
    case P::F16:
    case P::BF16:
      return out == a || out == P::F32;
    case P::F32:
    case P::F64:
    case P::C64:
    case P::C128:
      return out == a;
    case P::S8:
      return out == P::S32;
    default:
      return false;
  }
}

// Batch dimensions lead, and each side has one contracting and at most one other dimension.
bool FormServed(const Instruction* dot) {
  const Attributes& a = dot->attrs();
  if (a.sparsity || a.algorithm) return false;
  const Ints lb = a.lhs_batch_dims.value_or(Ints()), rb = a.rhs_batch_dims.value_or(Ints());
  if (!a.lhs_contracting_dims || a.lhs_contracting_dims->size() != 1 || a.rhs_contracting_dims->size() != 1)
    return false;
  for (size_t k = 0; k < lb.size(); ++k)
    if (lb[k] != static_cast<int64_t>(k) || rb[k] != static_cast<int64_t>(k)) return false;
  const auto batch = static_cast<int64_t>(lb.size());
  return dot->operand(0)->shape().rank() == batch + 2 && dot->operand(1)->shape().rank() == batch + 2;
}

bool Served(const Instruction* i) {
  if (!i->Is(Opcode::Dot) || !FormServed(i) || i->shape().HasDynamic()) return false;
  const Shape &a = i->operand(0)->shape(), &b = i->operand(1)->shape(), &o = i->shape();
  if (!TypesServed(a.type(), b.type(), o.type())) return false;
  const int64_t elements = a.ElementCount() + b.ElementCount() + o.ElementCount();
  if (elements < kSmallest || o.ElementCount() == 0 || a.ElementCount() == 0) return false;
  // Rows of 8-bit integers must be whole words.
  const auto whole = [](const Shape& s) { return s.dims().back() % 4 == 0 && s.dim(s.rank() - 2) % 4 == 0; };
  // And the library wants the contracted dimension minor on both sides.
  const bool minor =
      (*i->attrs().lhs_contracting_dims)[0] == a.rank() - 1 && (*i->attrs().rhs_contracting_dims)[0] == b.rank() - 1;
  return a.type() != PrimitiveType::S8 || (whole(a) && whole(b) && whole(o) && minor);
}

class Rewriter {
 public:
  explicit Rewriter(PassContext& ctx) : ctx_(ctx) {}

  bool Run(Computation* c) {
    bool changed = false;
    for (Instruction* i : c->PostOrder()) {
      if (!Served(i) || !ctx_.Take()) continue;
      Call(i);
      changed = true;
    }
    // What surrounds the calls joins them, from the inside out, and goes: only the calls stay.
    std::vector<Instruction*> calls;
    for (Instruction* i : c->PostOrder())
      if (IsCallTo(i, kGemmTarget)) calls.push_back(i);
    for (Instruction* call : calls) {
      while (Instruction* grown = Grow(call)) {
        call = grown;
        changed = true;
      }
    }
    return changed;
  }

 private:
  static Instruction* MakeCall(Computation* c, const Shape& shape, std::vector<Instruction*> operands,
                               const GemmConfig& config) {
    Instruction* call = c->Add(Opcode::CustomCall, shape, std::move(operands), "cublas-lt-matmul");
    call->attrs().custom_call_target = attr::Str(kGemmTarget);
    call->attrs().backend_config = ToText(config);
    return call;
  }

  static void Replace(Instruction* old, Instruction* with) {
    with->set_loc(old->loc());
    for (Instruction* p : std::vector<Instruction*>(old->control_predecessors())) p->AddControlDependencyTo(with);
    for (Instruction* s : std::vector<Instruction*>(old->control_successors())) with->AddControlDependencyTo(s);
    old->ReplaceAllUsesWith(with);
    old->parent()->Remove(old);
  }

  static void Call(Instruction* dot) {
    GemmConfig g;
    g.lhs_batch = dot->attrs().lhs_batch_dims.value_or(Ints());
    g.rhs_batch = dot->attrs().rhs_batch_dims.value_or(Ints());
    g.lhs_contracting = *dot->attrs().lhs_contracting_dims;
    g.rhs_contracting = *dot->attrs().rhs_contracting_dims;
    Replace(dot, MakeCall(dot->parent(), dot->shape(), dot->operands(), g));
  }

  // The call with its only user in it, or nullptr.
  Instruction* Grow(Instruction* call) {
    if (call->users().size() != 1 || call->IsRoot() || !IsFloat(call->shape().type())) return nullptr;
    Instruction* user = call->users()[0];
    auto config = GemmConfigOf(call);
    if (!config.ok() || !user->control_predecessors().empty()) return nullptr;
    GemmConfig g = *config;
    std::vector<Instruction*> operands = call->operands();
    const bool plain = g.epilogue == "DEFAULT";
    if (user->operand_count() == 2 && user->operand(0) == user->operand(1)) return nullptr;
    Instruction* other = user->operand_count() == 2 ? user->operand(user->operand(0) == call ? 1 : 0) : nullptr;
    if (user->Is(Opcode::Multiply) && plain && g.beta == 0) {
      const auto scale = FloatSplat(other);
      if (!scale || !std::isfinite(*scale) || !ctx_.Take()) return nullptr;
      g.alpha *= *scale;
    } else if (user->Is(Opcode::Add) && Bias(other) && plain) {
      if (!ctx_.Take()) return nullptr;
      g.epilogue = "BIAS";
      operands.push_back(Bias(other));
    } else if (user->Is(Opcode::Add) && plain && g.beta == 0 && other->users().size() == 1 && !other->IsRoot() &&
               !FloatSplat(other)) {
      if (!ctx_.Take()) return nullptr;
      g.beta = 1;
      operands.push_back(other);
    } else if (user->Is(Opcode::Maximum) && !g.HasRelu() && !g.HasGelu() && FloatSplat(other) == 0.0) {
      if (!ctx_.Take()) return nullptr;
      g.epilogue = g.HasBias() ? "BIAS_RELU" : "RELU";
    } else {
      return nullptr;
    }
    Instruction* grown = MakeCall(call->parent(), user->shape(), operands, g);
    Replace(user, grown);
    call->parent()->Remove(call);
    return grown;
  }

  // The vector that `i` repeats along its last dimension, or nullptr.
  static Instruction* Bias(Instruction* i) {
    if (!i || !i->Is(Opcode::Broadcast) || i->operand(0)->shape().rank() != 1) return nullptr;
    const Ints& dims = *i->attrs().dimensions;
    return dims.size() == 1 && dims[0] == i->shape().rank() - 1 && i->operand(0)->shape().dim(0) > 1 ? i->operand(0)
                                                                                                     : nullptr;
  }

  PassContext& ctx_;
};

}  // namespace

absl::StatusOr<bool> CublasGemmRewriter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) changed |= Rewriter(ctx).Run(c);
  return changed;
}

}  // namespace kiln
