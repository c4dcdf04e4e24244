// layout-normalization: what a layout says of memory becomes the order of dimensions.
//
// f32[5,4]{0,1} lies as f32[4,5]{1,0} does. Each operation that can work on its arrays in the order in which they lie
// does so, and a bitcast gives its result the shape that users know: `bitcast(abs(bitcast(x)))` for an abs between
// arrays in {0,1}. Then every layout is row major but those of bitcasts, of the entry's arguments and results, and of
// operations that stay as they are; the values of these go through a pair of bitcasts, so that their users find a
// row-major value behind the first. Copies from one layout to another become transposes, which algebra knows.
//
// Keeps: every result, bit for bit. Fused computations stay: their loops read arrays in any layout.
// Source: XLA's layout_normalization.cc. Unlike there, layouts that an operation cannot have together are left alone
// instead of being errors.
#include <algorithm>

#include "compiler/hlo/physical_shape.h"
#include "compiler/pass/rewriter.h"
#include "compiler/passes/layout/normal_form.h"

namespace kiln {
namespace {

bool IsNormal(const Shape& s) { return !s.IsArray() || s.HasDefaultLayout(); }

bool NeedsForm(const Instruction* i) {
  if (!i->shape().IsArray() || i->shape().ElementCount() == 0) return false;
  return !IsNormal(i->shape()) || !std::all_of(i->operands().begin(), i->operands().end(),
                                               [](const Instruction* o) { return IsNormal(o->shape()); });
}

Instruction* As(Instruction* normal, const Shape& s) {
  if (normal->shape() == s) return normal;
  return normal->parent()->Add(Opcode::Bitcast, s, {normal});
}

// Users read `i` through its normal value. True if one did not before.
bool Fence(Instruction* i) {
  const Shape normal = PhysicalShape(i->shape());
  if (i->Is(Opcode::Bitcast) && i->operand(0)->shape() == normal) return false;
  std::vector<Instruction*> users = i->users();
  users.erase(std::remove_if(users.begin(), users.end(),
                             [&](const Instruction* u) { return u->Is(Opcode::Bitcast) && u->shape() == normal; }),
              users.end());
  if (users.empty()) return false;
  Instruction* back = As(NormalOf(i), i->shape());
  if (i->attrs().sharding) back->mutable_attrs().sharding = i->attrs().sharding;
  for (Instruction* u : users) i->ReplaceUseWith(u, back);
  return true;
}

absl::flat_hash_set<const Computation*> FusedComputations(const Module& m) {
  absl::flat_hash_set<const Computation*> out;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      if (i->Is(Opcode::Fusion)) out.insert(*i->attrs().calls);
  return out;
}

}  // namespace

absl::StatusOr<bool> LayoutNormalization(Module& m, PassContext& ctx) {
  Rewriter rewriter(ctx);
  bool fenced = false;
  const auto fused = FusedComputations(m);
  for (const auto& c : m.computations()) {
    if (fused.contains(c.get())) continue;
    for (Instruction* i : c->PostOrder()) {
      if (!NeedsForm(i)) continue;
      const Shape s = i->shape();
      ASSIGN_OR_RETURN(const bool replaced, rewriter.Replace(i, [&](Instruction* from) -> Instruction* {
        Instruction* normal = NormalForm(from);
        return normal ? As(normal, s) : nullptr;
      }));
      if (replaced)
        c->Remove(i);
      else if (!IsNormal(s) && ctx.Take())
        fenced = Fence(i) || fenced;
    }
  }
  return rewriter.changed() || fenced;
}

}  // namespace kiln
