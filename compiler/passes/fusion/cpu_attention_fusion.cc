// Attention is one kernel: a product, a fusion of the rows of its result (a softmax, with its scales and masks), and
// the product that alone reads those.
//
// The kernel takes rows in strips that stay in the second cache (codegen/cpu/strip_plan.h): the scores, which grow with
// the square of the sequence, are never an array. Rows keep their kernel, and products their sums. Each strip reads the
// other operands of its batch once more, so that rows may not be longer than pays for that. Rows that something else
// reads too, as gradients do, stay an array. Before cpu-product-epilogue-fusion, which takes the second product for
// what reads it.
#include <algorithm>

#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/gpu/kernel_depths.h"
#include "compiler/passes/gpu/row_region.h"
#include "compiler/plan/alias.h"

namespace kiln {
namespace {

// Bytes of a row: 16 rows of so many are 1 MiB.
constexpr int64_t kLongestRow = 64 << 10;

struct Chain {
  std::vector<Instruction*> members;  // the second product first
  Instruction *rows = nullptr, *first = nullptr;
};

bool IsFree(const Instruction* i) {
  return i->shape().IsArray() && i->shape().HasDefaultLayout() && !i->shape().HasDynamic() &&
         i->control_predecessors().empty() && i->control_successors().empty();
}

// A product of matrices of floats, as codegen/cpu computes in blocks of rows: all of them doubles, or none. Weights
// have panels of their own.
bool IsProduct(const Instruction* i) {
  if (!i->Is(Opcode::Dot) || !IsFree(i) || i->attrs().sparsity || !IsFloat(i->shape().type())) return false;
  const Shape &s = i->shape(), &l = i->operand(0)->shape(), &r = i->operand(1)->shape();
  const auto as_result = [&](PrimitiveType t) { return (t == PrimitiveType::F64) == (s.type() == PrimitiveType::F64); };
  return as_result(l.type()) && as_result(r.type()) && s.rank() == 3 && s.dim(1) > 1 && s.dim(2) > 1 &&
         s.ElementCount() > 0 && l.ElementCount() > 0 && IsFloat(l.type()) && IsFloat(r.type()) &&
         l.HasDefaultLayout() && r.HasDefaultLayout() && !WithoutBitcasts(i->operand(1))->Is(Opcode::Constant);
}

// Appends the bitcasts from `i` on and what they show, if nothing else reads any of them; null if something does.
Instruction* AppendUpTo(Instruction* i, Chain* chain) {
  for (;; i = i->operand(0)) {
    if (!IsFree(i) || i->IsRoot() || i->users().size() != 1) return nullptr;
    chain->members.push_back(i);
    if (!i->Is(Opcode::Bitcast)) return i;
  }
}

// Whether a fusion of rows makes each row of its result of the same row of operand `k` and of nothing else of that.
bool MakesRowsOf(const Instruction* rows, int64_t k, const RowForm& form) {
  if (!ReadsInOwnRow(rows, k) || !form.Whole(rows->shape())) return false;
  const auto& all = (*rows->attrs().calls)->instructions();
  return std::all_of(all.begin(), all.end(),
                     [&](const auto& i) { return !i->Is(Opcode::Reduce) || form.RowReduce(i.get()); });
}

// The chain that ends in `second`; no first product if there is none.
Chain ChainBehind(Instruction* second) {
  Chain chain{{second}};
  if (!IsProduct(second) || (*second->attrs().lhs_contracting_dims) != Ints{2}) return {};
  chain.rows = AppendUpTo(second->operand(0), &chain);
  if (!chain.rows || !IsCustomFusion(chain.rows)) return {};
  const Shape& p = second->operand(0)->shape();
  for (int64_t k = 0; k < chain.rows->operand_count(); ++k) {
    if (!WithoutBitcasts(chain.rows->operand(k))->Is(Opcode::Dot)) continue;
    Instruction* first = AppendUpTo(chain.rows->operand(k), &chain);
    if (!first || chain.first || !IsProduct(first) || first->shape().dims() != p.dims() ||
        !MakesRowsOf(chain.rows, k, {p.dim(0) * p.dim(1), p.dim(2)}))
      return {};
    chain.first = first;
  }
  if (chain.first && p.dim(2) * ByteWidth(chain.first->shape().type()) > kLongestRow) return {};
  return chain;
}

}  // namespace

absl::StatusOr<bool> CpuAttentionFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) {
    absl::flat_hash_set<const Instruction*> taken;
    for (Instruction* second : OfOpcode(c, Opcode::Dot)) {
      if (taken.contains(second)) continue;
      const Chain chain = ChainBehind(second);
      if (!chain.first || !ctx.Take()) continue;
      FuseRegion({second}, {chain.members.begin(), chain.members.end()})->mutable_attrs().backend_config =
          "{\"fusion_backend_config\":{\"kind\":\"strips\"}}";
      taken.insert(chain.members.begin(), chain.members.end());
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
