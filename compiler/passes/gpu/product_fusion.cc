#include "compiler/passes/gpu/product_fusion.h"

#include <algorithm>

#include "compiler/hlo/tuning.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

bool JoinsUser(const Instruction* o) {
  return o->users().size() == 1 && !o->IsRoot() && o->shape().HasDefaultLayout() && o->control_predecessors().empty() &&
         o->control_successors().empty();
}

// Products that take less time than the start of another kernel: what their operands are made of may be computed again
// for each tile.
constexpr int64_t kSmallProduct = 1 << 18;

bool IsSmall(const Instruction* product) {
  if (!product->Is(Opcode::Dot)) return false;
  const Shape& a = product->operand(0)->shape();
  int64_t work = product->shape().ElementCount();
  for (int64_t d : *product->attrs().lhs_contracting_dims) work = work > kSmallProduct ? work : work * a.dim(d);
  return work <= kSmallProduct;
}

bool MovesElements(const Instruction* o) {
  switch (o->opcode()) {
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::Pad:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Transpose:
      return true;
    default:
      return false;
  }
}

bool JoinsOperand(const Instruction* o, bool small) {
  return (o->IsElementwise() || o->Is(Opcode::Bitcast) || (small && MovesElements(o)) ||
          (o->Is(Opcode::Broadcast) && o->operand(0)->shape().rank() == 0)) &&
         JoinsUser(o);
}

void TakeOperand(const Instruction* o, bool small, absl::flat_hash_set<const Instruction*>* members, bool* widens) {
  constexpr size_t kMostBefore = 48;
  if (!JoinsOperand(o, small) || members->size() > kMostBefore) return;
  members->insert(o);
  *widens = *widens || (o->Is(Opcode::Convert) && IsFloat(o->shape().type()) &&
                        IsIntegral(o->operand(0)->shape().type()) && InfoOf(o->operand(0)->shape().type()).bits <= 8);
  for (const Instruction* next : o->operands()) TakeOperand(next, small, members, widens);
}

// What follows `hero` element by element joins, with the broadcasts that it reads; returns the last that does.
Instruction* TakeUsers(Instruction* hero, absl::flat_hash_set<const Instruction*>* members) {
  constexpr int kMostAfter = 12;
  Instruction* root = hero;
  for (int k = 0; k < kMostAfter && root->users().size() == 1 && !root->IsRoot(); ++k) {
    Instruction* user = root->users()[0];
    const bool same =
        user->Is(Opcode::Bitcast) || (user->IsElementwise() && user->shape().dims() == root->shape().dims());
    if (!same || !user->shape().HasDefaultLayout() || !user->control_predecessors().empty() ||
        !user->control_successors().empty())
      break;
    for (const Instruction* o : user->operands())
      if (o->Is(Opcode::Broadcast) && JoinsUser(o)) members->insert(o);
    members->insert(user);
    root = user;
  }
  return root;
}

}  // namespace

bool IsCanonicalProduct(const Instruction* i) {
  return i->Is(Opcode::Dot) && i->shape().rank() == 3 && i->operand(0)->shape().rank() == 3 &&
         i->operand(1)->shape().rank() == 3 && i->attrs().lhs_contracting_dims &&
         i->attrs().lhs_contracting_dims->size() == 1 && !i->attrs().sparsity && !i->shape().HasDynamic();
}

bool IsConvolutionAsProduct(const Instruction* i) {
  return i->Is(Opcode::Convolution) && IsTunableProduct(i) && i->shape().HasDefaultLayout() &&
         i->operand(0)->shape().HasDefaultLayout() && i->operand(1)->shape().HasDefaultLayout() &&
         !i->shape().HasDynamic();
}

bool FuseAroundProduct(Instruction* product, PassContext& ctx, bool only_widened) {
  absl::flat_hash_set<const Instruction*> members = {product};
  bool widens = false;
  const bool small = IsSmall(product);
  if (product->Is(Opcode::Dot))
    for (const Instruction* o : product->operands()) TakeOperand(o, small, &members, &widens);
  if (!widens && !small) members = {product};
  Instruction* root = TakeUsers(product, &members);
  const bool computes = std::any_of(members.begin(), members.end(),
                                    [&](const Instruction* i) { return i != product && !i->Is(Opcode::Bitcast); });
  if (!computes || (only_widened && !widens && !small) || !ctx.Take()) return false;
  FuseRegion({root}, members)->mutable_attrs().backend_config =
      "{\"fusion_backend_config\":{\"kind\":\"__triton_gemm\"}}";
  return true;
}

}  // namespace kiln
