// Independent dots that share an operand become one dot of the shared operand with the others side by side.
//
// One of each pair must move less than 64 MiB (its own operands and result), else the gain is nothing and the memory is
// real; only dots of one free dimension a side, no batch, equal types and precision.
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

constexpr int64_t kSmall = 64 << 20;

bool Candidate(const Instruction* i) {
  const Attributes& a = i->attrs();
  return i->Is(Opcode::Dot) && i->operand(0)->shape().rank() == 2 && i->operand(1)->shape().rank() == 2 &&
         (!a.lhs_batch_dims || a.lhs_batch_dims->empty()) && a.lhs_contracting_dims &&
         a.lhs_contracting_dims->size() == 1 && !a.sparsity && i->control_predecessors().empty() &&
         i->control_successors().empty() && i->operand(0) != i->operand(1);
}

int64_t Bytes(const Instruction* i) {
  return i->shape().ByteSize() + i->operand(0)->shape().ByteSize() + i->operand(1)->shape().ByteSize();
}

// Whether `a` and `b` share operand `side`, and may be one.
bool Mergeable(const Instruction* a, const Instruction* b, int64_t side) {
  return a->operand(side) == b->operand(side) && a->shape().type() == b->shape().type() &&
         a->operand(1 - side)->shape().type() == b->operand(1 - side)->shape().type() &&
         a->attrs().lhs_contracting_dims == b->attrs().lhs_contracting_dims &&
         a->attrs().rhs_contracting_dims == b->attrs().rhs_contracting_dims &&
         a->attrs().operand_precision == b->attrs().operand_precision && a->attrs().algorithm == b->attrs().algorithm &&
         std::min(Bytes(a), Bytes(b)) < kSmall;
}

void Merge(Instruction* a, Instruction* b, int64_t side) {
  Computation* c = a->parent();
  const int64_t contracting = side == 0 ? (*a->attrs().rhs_contracting_dims)[0] : (*a->attrs().lhs_contracting_dims)[0];
  Expr both = ConcatOf({a->operand(1 - side), b->operand(1 - side)}, 1 - contracting);
  const int64_t out = side == 0 ? 1 : 0;
  Shape wide = a->shape();
  wide.mutable_dims()[out] += b->shape().dim(out);
  Instruction* dot = c->AddClone(a, wide,
                                 side == 0 ? std::vector<Instruction*>{a->operand(0), both.get()}
                                           : std::vector<Instruction*>{both.get(), a->operand(1)});
  Ints start = {0, 0}, limit = wide.dims();
  limit[out] = a->shape().dim(out);
  a->ReplaceAllUsesWith(SliceOf(dot, start, limit).get());
  start[out] = limit[out];
  limit[out] = wide.dim(out);
  b->ReplaceAllUsesWith(SliceOf(dot, start, limit).get());
  c->Remove(a);
  c->Remove(b);
}

// One merge; reachability is stale after it.
bool MergeOnce(Computation* c, PassContext& ctx) {
  std::vector<Instruction*> dots;
  for (Instruction* i : c->PostOrder())
    if (Candidate(i)) dots.push_back(i);
  if (dots.size() < 2 || !Reachability::Affordable(c)) return false;
  const Reachability reach(c);
  for (size_t x = 0; x < dots.size(); ++x)
    for (size_t y = x + 1; y < dots.size(); ++y)
      for (int64_t side = 0; side < 2; ++side) {
        if (!Mergeable(dots[x], dots[y], side) || reach.Reaches(dots[x], dots[y]) || !ctx.Take()) continue;
        Merge(dots[x], dots[y], side);
        return true;
      }
  return false;
}

}  // namespace

absl::StatusOr<bool> DotMerger(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    while (MergeOnce(c.get(), ctx)) changed = true;
  return changed;
}

}  // namespace kiln
