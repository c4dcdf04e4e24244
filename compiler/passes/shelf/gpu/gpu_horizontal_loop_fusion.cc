// Small independent loops that feed one instruction run as one kernel, whatever their shapes: each result is seen as
// one dimension, these are concatenated, and slices give the results back.
//
// Loops of at most 256 Ki elements and 30 instructions of one element type, and at most 64 operands in all: an
// optimiser's updates of many small weights are the case that it is for.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/gpu/bitcasts.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {
namespace {

constexpr int64_t kMostElements = 128 * 2048, kMostInstructions = 30, kMostOperands = 64;

bool SmallLoop(const Instruction* i) {
  if (!i->Is(Opcode::Fusion) || IsCustomFusion(i) || !i->shape().IsArray() || !i->shape().HasDefaultLayout())
    return false;
  if (!i->control_predecessors().empty() || !i->control_successors().empty()) return false;
  const Computation* f = *i->attrs().calls;
  return f->root()->IsElementwise() && i->shape().ElementCount() > 0 && i->shape().ElementCount() <= kMostElements &&
         f->instruction_count() <= kMostInstructions;
}

void Fuse(const std::vector<Instruction*>& loops) {
  Computation* c = loops[0]->parent();
  Computation* f = c->module()->AddComputation("fused_computation");
  std::vector<Instruction*> operands, flat;
  const PrimitiveType t = loops[0]->shape().type();
  int64_t all = 0;
  for (Instruction* i : loops) {
    std::vector<Instruction*> arguments;
    for (Instruction* o : i->operands()) {
      const auto at = std::find(operands.begin(), operands.end(), o);
      if (at != operands.end()) {
        arguments.push_back(f->parameter(at - operands.begin()));
        continue;
      }
      arguments.push_back(f->AddParameter(static_cast<int64_t>(operands.size()), o->shape(), "param"));
      operands.push_back(o);
    }
    Instruction* value = InlineBody(f, *i->attrs().calls, arguments, i);
    flat.push_back(BitcastTo(value, LaidOut(t, {i->shape().ElementCount()})));
    all += i->shape().ElementCount();
  }
  Instruction* joined = f->Add(Opcode::Concatenate, LaidOut(t, {all}), flat);
  joined->mutable_attrs().dimensions = Ints{0};
  f->set_root(joined);
  Instruction* fusion = c->Add(Opcode::Fusion, joined->shape(), operands, "fusion");
  fusion->set_loc(loops[0]->loc());
  fusion->mutable_attrs().calls = f;
  fusion->mutable_attrs().fusion_kind = "kLoop";
  int64_t from = 0;
  for (Instruction* i : loops) {
    const int64_t n = i->shape().ElementCount();
    Instruction* slice = c->Add(Opcode::Slice, LaidOut(t, {n}), {fusion});
    slice->mutable_attrs().slice = attr::Slices{{from, from + n, 1}};
    i->ReplaceAllUsesWith(BitcastTo(slice, i->shape()));
    c->Remove(i);
    from += n;
  }
}

bool FuseOne(Computation* c, PassContext& ctx) {
  if (!Reachability::Affordable(c)) return false;
  const Reachability reach(c);
  for (Instruction* user : c->PostOrder()) {
    std::vector<Instruction*> group;
    int64_t operands = 0;
    for (Instruction* o : user->operands()) {
      if (!SmallLoop(o) || std::find(group.begin(), group.end(), o) != group.end()) continue;
      bool joins = operands + o->operand_count() <= kMostOperands;
      for (const Instruction* g : group)
        joins = joins && g->shape().type() == o->shape().type() && !reach.Reaches(g, o) && !reach.Reaches(o, g);
      if (!joins) continue;
      operands += o->operand_count();
      group.push_back(o);
    }
    if (group.size() < 2 || !ctx.Take()) continue;
    Fuse(group);
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> GpuHorizontalLoopFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    while (FuseOne(c, ctx)) changed = true;
  return changed;
}

}  // namespace kiln
