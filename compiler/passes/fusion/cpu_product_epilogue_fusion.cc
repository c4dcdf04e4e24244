// An elementwise fusion that alone reads a dot or a convolution joins its kernel: results are read while they are in
// cache, and are stored once.
//
// The kernel stores its sums where its result goes, so that it cannot overwrite an operand: a fusion that would update
// a parameter in place stays as it is. Behind all other fusions, which take a fusion for what its root is.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/plan/alias.h"

namespace kiln {
namespace {

bool IsFree(const Instruction* i) {
  return i->shape().IsArray() && i->shape().HasDefaultLayout() && i->control_predecessors().empty() &&
         i->control_successors().empty();
}

int64_t MinorExtent(const Shape& s) {
  for (int64_t d = s.rank() - 1; d >= 0; --d)
    if (s.dim(d) != 1) return s.dim(d);
  return 1;
}

// Whether a kernel for `p` of results that take `bytes` each exists. Sums of floats of two matrices may wait on the
// stack, others only where the result goes.
bool Stores(const Instruction* p, int64_t bytes) {
  const Shape& s = p->shape();
  if (ByteWidth(s.type()) == bytes) return true;
  if (!p->Is(Opcode::Dot) || s.rank() != 3 || s.dim(1) == 1 || s.dim(2) == 1) return false;
  const auto summed_in_f32 = [](PrimitiveType t) {
    return t == PrimitiveType::F32 || t == PrimitiveType::BF16 || t == PrimitiveType::F16;
  };
  return summed_in_f32(s.type()) && summed_in_f32(p->operand(0)->shape().type()) &&
         summed_in_f32(p->operand(1)->shape().type()) && p->operand(0)->shape().ElementCount() > 0;
}

// Whether `v` is a parameter that its kernel's reader may overwrite: a loop's state, or an argument that a result
// takes the place of.
bool IsUpdated(const Instruction* v) {
  while (v->Is(Opcode::Bitcast) || v->Is(Opcode::GetTupleElement)) v = v->operand(0);
  if (!v->Is(Opcode::Parameter)) return false;
  const Computation* c = v->parent();
  return c != c->module()->entry() || !c->module()->aliases.empty();
}

// `p` and the bitcasts that alone read it, one after the other.
std::vector<Instruction*> WithBitcasts(Instruction* p) {
  std::vector<Instruction*> chain = {p};
  while (!chain.back()->IsRoot() && chain.back()->users().size() == 1 && chain.back()->users()[0]->Is(Opcode::Bitcast))
    chain.push_back(chain.back()->users()[0]);
  return chain;
}

// Whether each element of fusion `c` is made of the same element of `p`, with its row and column, which it reads as
// `read`, and of nothing that another kind of kernel computes.
bool GoesOnWith(const Instruction* c, const Instruction* p, const Instruction* read) {
  if (!c->Is(Opcode::Fusion) || IsCustomFusion(c) || !IsFree(c) || !IsFree(p) || !IsFree(read)) return false;
  if (IsComplex(p->shape().type()) || p->shape().type() != read->shape().type()) return false;
  if (c->shape().ElementCount() != p->shape().ElementCount() || MinorExtent(c->shape()) != MinorExtent(p->shape()) ||
      MinorExtent(read->shape()) != MinorExtent(p->shape()))
    return false;
  const Computation* f = *c->attrs().calls;
  if (!f->root()->IsElementwise() || IsComplex(c->shape().type())) return false;
  for (const auto& i : f->instructions())
    if (!i->Is(Opcode::Parameter) && !i->Is(Opcode::Constant) && !i->Is(Opcode::Bitcast) &&
        (InfoOf(i->opcode()).lowering != Lowering::Elemental || i->Is(Opcode::Transpose)))
      return false;
  const auto same = [&](const Instruction* i) {
    return (i->IsElementwise() || i->Is(Opcode::Bitcast)) && i->shape().IsArray() && i->shape().HasDefaultLayout() &&
           i->shape().ElementCount() == p->shape().ElementCount() && MinorExtent(i->shape()) == MinorExtent(p->shape());
  };
  for (int64_t k = 0; k < c->operand_count(); ++k)
    if (c->operand(k) != read && MayShareWithOperand(c, k) && IsUpdated(c->operand(k))) return false;
  return EveryUseIs(c, read, same);
}

// Those of `c`, in an order that has none before its operands.
std::vector<Instruction*> Products(Computation* c) {
  std::vector<Instruction*> out = c->PostOrder();
  const auto other = [](const Instruction* i) { return !i->Is(Opcode::Dot) && !i->Is(Opcode::Convolution); };
  out.erase(std::remove_if(out.begin(), out.end(), other), out.end());
  return out;
}

}  // namespace

absl::StatusOr<bool> CpuProductEpilogueFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* p : Products(c)) {
      const std::vector<Instruction*> chain = WithBitcasts(p);
      Instruction* last = chain.back();
      if (last->IsRoot() || last->users().size() != 1) continue;
      Instruction* user = last->users()[0];
      if (!GoesOnWith(user, p, last) || !Stores(p, ByteWidth(user->shape().type())) || !ctx.Take()) continue;
      for (size_t k = chain.size(); k-- > 0;) {
        FuseInto(chain[k], user)->mutable_attrs().fusion_kind = FusionKind::kOutput;
        c->Remove(chain[k]);
      }
      changed = true;
    }
  return changed;
}

}  // namespace kiln
