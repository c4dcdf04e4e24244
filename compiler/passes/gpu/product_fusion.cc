#include "compiler/passes/gpu/product_fusion.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "compiler/hlo/tuning.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

using Members = absl::flat_hash_set<const Instruction*>;
using MayRead = std::function<bool(const Instruction*)>;

bool Joins(const Instruction* o) {
  return !o->IsRoot() && o->shape().HasDefaultLayout() && o->control_predecessors().empty() &&
         o->control_successors().empty();
}

bool JoinsUser(const Instruction* o) { return o->users().size() == 1 && Joins(o); }

// Products that take less time than the start of another kernel: what their operands are made of may be computed again
// for each tile.
constexpr int64_t kSmallProduct = 1 << 18;

bool IsSmall(const Instruction* product) {
  if (!product->Is(Opcode::Dot)) return false;
  const Shape& a = product->operand(0)->shape();
  int64_t work = product->shape().ElementCount();
  for (int64_t d : *product->attrs().lhs_contracting_dims) work = work > kSmallProduct ? work : work * a.dim(d);
  return work < kSmallProduct;
}

bool JoinsOperand(const Instruction* o, bool small, const Members& members) {
  const bool views = o->Is(Opcode::Bitcast) && o->operand(0)->shape().HasDefaultLayout();
  return (o->IsElementwise() || views || (small && o->HasTrait(Moving)) ||
          (o->Is(Opcode::Broadcast) && o->operand(0)->shape().rank() == 0)) &&
         Joins(o) && std::all_of(o->users().begin(), o->users().end(), [&](auto* u) { return members.contains(u); });
}

bool Widens(const Instruction* o) {
  const PrimitiveType from = o->operand_count() ? o->operand(0)->shape().type() : o->shape().type();
  return o->Is(Opcode::Convert) && IsFloat(o->shape().type()) && IsIntegral(from) && InfoOf(from).bits <= 8;
}

// What the operands of `product` are made of and nobody else reads; true if that widens an array.
bool TakeOperands(const Instruction* product, bool small, Members* members) {
  constexpr size_t kMostBefore = 48;
  bool widens = false;
  std::vector<const Instruction*> work = {product};
  for (size_t k = 0; k < work.size(); ++k)
    for (const Instruction* o : work[k]->operands()) {
      if (members->contains(o) || members->size() > kMostBefore || !JoinsOperand(o, small, *members)) continue;
      members->insert(o);
      work.push_back(o);
      widens = widens || Widens(o);
    }
  return widens;
}

// An array that no other kernel would compute where it reads it.
bool IsThereAnyway(const Instruction* o) {
  return !o->IsElementwise() && !o->HasTrait(Moving) && !o->Is(Opcode::Iota) && !o->Is(Opcode::Reduce);
}

// What follows `hero` element by element joins, with the broadcasts that it reads, and a transpose if it is small;
// returns the last that does.
Instruction* TakeUsers(Instruction* hero, bool small, const MayRead& may_read, Members* members) {
  constexpr int kMostAfter = 12;
  Instruction* root = hero;
  for (int k = 0; k < kMostAfter && root->users().size() == 1 && !root->IsRoot(); ++k) {
    Instruction* user = root->users()[0];
    const bool same = user->Is(Opcode::Bitcast) || (small && user->Is(Opcode::Transpose)) ||
                      (user->IsElementwise() && user->shape().dims() == root->shape().dims());
    if (!same || !user->shape().HasDefaultLayout() || !user->control_predecessors().empty() ||
        !user->control_successors().empty())
      break;
    const auto reads = [&](const Instruction* o) {
      return o == root || may_read(o->Is(Opcode::Broadcast) && JoinsUser(o) ? o->operand(0) : o);
    };
    if (may_read && !std::all_of(user->operands().begin(), user->operands().end(), reads)) break;
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

bool IsProductFusion(const Instruction* i) {
  return IsCustomFusion(i) && i->attrs().backend_config &&
         absl::StrContains(i->attrs().backend_config->text, "__triton_gemm");
}

Instruction* FuseAroundProduct(Instruction* product, PassContext& ctx, const ProductFusionOptions& options) {
  Members members = {product};
  bool widens = false;
  const bool small = IsSmall(product);
  if (product->Is(Opcode::Dot)) widens = TakeOperands(product, small, &members);
  if (!widens && !small) members = {product};
  const bool fast = options.only_own && !widens && IsCanonicalProduct(product) && IsFastAsOwn(product);
  Instruction* root = TakeUsers(product, small, fast && !small ? MayRead(IsThereAnyway) : options.may_read, &members);
  const bool computes = std::any_of(members.begin(), members.end(),
                                    [&](const Instruction* i) { return i != product && !i->Is(Opcode::Bitcast); });
  if (!(computes || fast) || (options.only_own && !widens && !small && !fast) || !ctx.Take()) return nullptr;
  Instruction* fusion = FuseRegion({root}, members);
  fusion->mutable_attrs().backend_config = kProductFusionConfig;
  return fusion;
}

}  // namespace kiln
