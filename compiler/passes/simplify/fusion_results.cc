#include "compiler/passes/simplify/fusion_results.h"

#include <algorithm>

namespace kiln {
namespace {

bool HasControlEdges(const Instruction* i) {
  return !i->control_predecessors().empty() || !i->control_successors().empty();
}

// Kernels of other kinds count on the roots that they were made for.
bool IsPlainLoop(const Instruction* fusion) {
  const Attributes& a = fusion->attrs();
  return a.fusion_kind == FusionKind::kLoop && !a.output_to_operand_aliasing;
}

// Which results are read, if only elements are, and not all of them.
std::vector<int64_t> ReadResults(const Instruction* fusion) {
  const Instruction* root = (*fusion->attrs().calls)->root();
  if (!root->Is(Opcode::Tuple) || root->attrs().sharding || HasControlEdges(fusion) || fusion->IsRoot() ||
      fusion->users().empty())
    return {};
  std::vector<bool> read(fusion->shape().tuple().size());
  for (const Instruction* u : fusion->users()) {
    if (!u->Is(Opcode::GetTupleElement)) return {};
    read[static_cast<size_t>(*u->attrs().tuple_index)] = true;
  }
  std::vector<int64_t> out;
  for (size_t k = 0; k < read.size(); ++k)
    if (read[k]) out.push_back(static_cast<int64_t>(k));
  if (out.size() == read.size()) return {};
  // A kernel that would only copy its operand, or write a constant, is nothing to keep.
  const bool idle =
      out.size() == 1 && (root->operand(out[0])->Is(Opcode::Parameter) || root->operand(out[0])->Is(Opcode::Constant));
  return idle ? std::vector<int64_t>() : out;
}

void RemoveDead(Computation* c) {
  const std::vector<Instruction*> order = c->PostOrder();
  for (auto i = order.rbegin(); i != order.rend(); ++i)
    if ((*i)->users().empty() && !(*i)->IsRoot() && !(*i)->Is(Opcode::Parameter) && !HasControlEdges(*i) &&
        !(*i)->HasSideEffect())
      c->Remove(*i);
}

// The readers of a fusion whose one result is not an element any more read the fusion.
void ReadDirectly(Instruction* fusion) {
  for (Instruction* e : std::vector<Instruction*>(fusion->users())) {
    e->ReplaceAllUsesWith(fusion);
    fusion->parent()->Remove(e);
  }
}

void KeepResults(Instruction* fusion, const std::vector<int64_t>& kept) {
  Computation* f = *fusion->attrs().calls;
  std::vector<Instruction*> values;
  std::vector<Shape> shapes;
  for (int64_t k : kept) {
    values.push_back(f->root()->operand(k));
    shapes.push_back(fusion->shape().tuple()[static_cast<size_t>(k)]);
  }
  Instruction* old_root = f->root();
  f->set_root(values.size() == 1 ? values[0] : f->Add(Opcode::Tuple, Shape::Tuple(shapes), values));
  f->Remove(old_root);
  RemoveDead(f);
  fusion->mutable_shape() = values.size() == 1 ? shapes[0] : Shape::Tuple(shapes);
  if (values.size() == 1) return ReadDirectly(fusion);
  for (Instruction* e : fusion->users()) {
    const auto at = std::lower_bound(kept.begin(), kept.end(), *e->attrs().tuple_index);
    e->mutable_attrs().tuple_index = at - kept.begin();
  }
}

bool DropUnreadParameters(Instruction* fusion) {
  Computation* f = *fusion->attrs().calls;
  bool changed = false;
  for (int64_t k = static_cast<int64_t>(f->parameters().size()) - 1; k >= 0; --k) {
    if (!f->parameter(k)->users().empty() || f->parameter(k)->IsRoot() || HasControlEdges(f->parameter(k))) continue;
    f->RemoveParameter(k);
    fusion->RemoveOperand(k);
    changed = true;
  }
  return changed;
}

}  // namespace

bool DropUnreadFusionResults(Module& m, PassContext& ctx) {
  absl::flat_hash_map<const Computation*, int64_t> callers;
  std::vector<Instruction*> fusions;  // in the order of the module
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) {
      for (const Computation* f : i->called()) ++callers[f];
      if (i->Is(Opcode::Fusion) && IsPlainLoop(i.get())) fusions.push_back(i.get());
    }
  bool changed = false;
  for (Instruction* fusion : fusions) {
    Computation* f = *fusion->attrs().calls;
    const std::vector<int64_t> kept = ReadResults(fusion);
    const bool unread = std::any_of(f->parameters().begin(), f->parameters().end(), [](const Instruction* p) {
      return p->users().empty() && !p->IsRoot() && !HasControlEdges(p);
    });
    if ((kept.empty() && !unread) || !ctx.Take()) continue;
    if (callers[f] > 1) {
      --callers[f];
      fusion->mutable_attrs().calls = m.CloneComputation(f);
    }
    if (!kept.empty()) KeepResults(fusion, kept);
    changed = DropUnreadParameters(fusion) || !kept.empty() || changed;
  }
  return changed;
}

}  // namespace kiln
