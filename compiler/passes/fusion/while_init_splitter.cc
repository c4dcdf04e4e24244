// Every element of a loop's first state that costs little to make has a value of its own; on GPUs, so has every array
// that an update works in.
//
// A loop works on its state in place, an update on its array. Zeros that begin several elements or updates, or are read
// elsewhere too, constants, and arguments that are not to be overwritten would each be copied before it. Fills and
// copies as kernels of their own lie where they are wanted, and kernels share a launch. Only small arguments: a large
// copy is best a copy. On CPUs only fills for loops: there are no launches to share.
#include <algorithm>

#include "compiler/analysis/overwritten.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/loops/while_state.h"
#include "compiler/plan/alias.h"

namespace kiln {
namespace {

// A loop that writes what it computes from constants alone, or need not write.
bool IsFill(const Instruction* i) {
  const bool loop = i->Is(Opcode::Fusion) && (i->attrs().fusion_kind == FusionKind::kLoop || StartsOverwritten(i));
  if (!loop || !i->shape().IsArray() || i->operand_count() > 0 || !i->control_predecessors().empty() ||
      !i->control_successors().empty())
    return false;
  constexpr int64_t kMostInstructions = 4;
  const Computation* f = *i->attrs().calls;
  return f->instruction_count() <= kMostInstructions &&
         std::all_of(f->instructions().begin(), f->instructions().end(), [](const auto& x) {
           return x->Is(Opcode::Constant) || x->Is(Opcode::Broadcast) || x->Is(Opcode::Iota) || x->Is(Opcode::Bitcast);
         });
}

bool IsScalarConstant(const Instruction* i) {
  return i->Is(Opcode::Constant) && i->shape().IsArray() && i->shape().rank() == 0;
}

// A small argument, not donated.
bool IsCopied(const Instruction* v) {
  constexpr int64_t kSmallBytes = 256 << 10;
  const Module* m = v->parent()->module();
  if (!v->Is(Opcode::Parameter) || v->parent() != m->entry() || !v->shape().IsArray() ||
      !v->shape().HasDefaultLayout() || v->shape().HasDynamic() || v->shape().ElementCount() == 0 ||
      v->shape().ByteSize() > kSmallBytes)
    return false;
  return std::none_of(m->aliases.begin(), m->aliases.end(),
                      [&](const AliasEntry& a) { return a.parameter == *v->attrs().parameter_number; });
}

Instruction* FillLike(Instruction* v) {
  Computation* c = v->parent();
  if (v->Is(Opcode::Parameter)) return WrapInFusion(c->Add(Opcode::Copy, v->shape(), {v}));
  if (v->Is(Opcode::Fusion)) {
    Instruction* fill = c->AddClone(v, v->shape(), {});
    fill->mutable_attrs().calls = c->module()->CloneComputation(*v->attrs().calls);
    return fill;
  }
  Instruction* fill = c->Add(Opcode::Broadcast, v->shape(), {v});
  fill->mutable_attrs().dimensions = Ints();
  return FuseInto(v, WrapInFusion(fill));
}

bool Split(Module& m, bool only_fills, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      Instruction* init = loop->operand(0);
      if (!init->Is(Opcode::Tuple) || init->users().size() != 1) continue;
      for (int64_t k = 0; k < init->operand_count(); ++k) {
        Instruction* v = init->operand(k);
        const auto uses = std::count(init->operands().begin(), init->operands().end(), v);
        const bool shared = uses > 1 || v->users().size() > 1;
        const bool launched = !only_fills && (IsScalarConstant(v) || (IsCopied(v) && !IsInvariant(loop, k)));
        if (!(launched || (IsFill(v) && shared)) || !ctx.Take()) continue;
        init->ReplaceOperand(k, FillLike(v));
        changed = true;
      }
    }
  return changed;
}

// What an update overwrites, likewise.
bool SplitUpdates(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* update : OfOpcode(c, Opcode::Fusion)) {
      if (!UpdatesInPlace(update)) continue;
      const int64_t outputs = update->shape().IsTuple() ? static_cast<int64_t>(update->shape().tuple().size()) : 1;
      for (int64_t o = 0; o < outputs; ++o) {
        const int64_t k = InPlaceOperand(update, o);
        if (k < 0) continue;
        Instruction* v = update->operand(k);
        if (!(IsFill(v) && v->users().size() > 1) && !IsCopied(v)) continue;
        if (!ctx.Take()) continue;
        update->ReplaceOperand(k, FillLike(v));
        changed = true;
      }
    }
  return changed;
}

}  // namespace

absl::StatusOr<bool> WhileInitSplitter(Module& m, PassContext& ctx) {
  const bool loops = Split(m, false, ctx);
  return SplitUpdates(m, ctx) || loops;
}

absl::StatusOr<bool> CpuWhileInitSplitter(Module& m, PassContext& ctx) { return Split(m, true, ctx); }

}  // namespace kiln
