// Copies of a loop's results become further results of the loop: one kernel writes them all. A bitcast between a result
// and its copy comes behind both. For the entry's loops. Source: XLA's copy_fusion.cc.
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

bool PlainCopy(const Instruction* i) {
  return i->Is(Opcode::Copy) && i->shape() == i->operand(0)->shape() && i->control_predecessors().empty() &&
         i->control_successors().empty();
}

// A result that the loop computes element by element, not one that it updates in an argument's memory.
bool Computed(const Instruction* root) {
  if (!root->shape().IsArray() || !root->shape().HasDefaultLayout()) return false;
  return root->IsElementwise() || (root->Is(Opcode::DynamicUpdateSlice) && !root->operand(0)->Is(Opcode::Parameter));
}

// The result `root` as readers know it: the fusion, or its elements.
std::vector<Instruction*> ReadersOf(Instruction* fusion, int64_t root) {
  if (fusion->shape().IsArray()) return {fusion};
  std::vector<Instruction*> out;
  for (Instruction* u : fusion->users())
    if (u->Is(Opcode::GetTupleElement) && *u->attrs().tuple_index == root) out.push_back(u);
  return out;
}

// Copies of `value`, or of bitcasts of it.
void TakeCopies(const Instruction* value, std::vector<Instruction*>* out) {
  for (Instruction* u : value->users()) {
    if (PlainCopy(u)) out->push_back(u);
    if (u->Is(Opcode::Bitcast) && u->shape().type() == value->shape().type()) TakeCopies(u, out);
  }
}

struct Copied {
  int64_t root;
  Instruction* copy;
};

std::vector<Copied> CopiesOf(Instruction* fusion, const std::vector<Instruction*>& roots) {
  std::vector<Copied> out;
  for (size_t k = 0; k < roots.size(); ++k) {
    std::vector<Instruction*> copies;
    if (!Computed(roots[k])) continue;
    for (const Instruction* r : ReadersOf(fusion, static_cast<int64_t>(k))) TakeCopies(r, &copies);
    for (Instruction* c : copies) out.push_back({static_cast<int64_t>(k), c});
  }
  return out;
}

// The readers of `old` read `fusion`, whose first results are those of `old`.
void MoveReaders(Instruction* old, Instruction* fusion) {
  if (old->shape().IsArray()) {
    old->ReplaceAllUsesWith(PartOf(fusion, 0).get());
    return;
  }
  std::vector<Expr> parts;
  for (size_t k = 0; k < old->shape().tuple().size(); ++k) {
    const auto part = static_cast<int64_t>(k);
    parts.push_back(PartOf(fusion, part));
    for (Instruction* r : ReadersOf(old, part)) {
      r->ReplaceAllUsesWith(parts.back().get());
      old->parent()->Remove(r);
    }
  }
  if (!old->users().empty() || old->IsRoot())
    old->ReplaceAllUsesWith(old->parent()->Add(Opcode::Tuple, old->shape(), [&] {
      std::vector<Instruction*> operands;
      for (const Expr& e : parts) operands.push_back(e.get());
      return operands;
    }()));
}

void WriteCopies(Instruction* i, std::vector<Instruction*> roots, const std::vector<Copied>& copies) {
  Computation *c = i->parent(), *f = *i->attrs().calls;
  Instruction* tuple = f->root()->Is(Opcode::Tuple) ? f->root() : nullptr;
  const size_t first_copy = roots.size();
  for (const Copied& copied : copies) {
    Instruction* root = roots[static_cast<size_t>(copied.root)];
    roots.push_back(f->Add(Opcode::Copy, root->shape(), {root}));
  }
  std::vector<Shape> shapes;
  for (const Instruction* r : roots) shapes.push_back(r->shape());
  f->set_root(f->Add(Opcode::Tuple, Shape::Tuple(shapes), roots));
  if (tuple) f->Remove(tuple);
  Instruction* fusion = c->AddClone(i, Shape::Tuple(shapes), i->operands());
  for (Instruction* p : std::vector<Instruction*>(i->control_predecessors())) p->AddControlDependencyTo(fusion);
  for (Instruction* s : std::vector<Instruction*>(i->control_successors())) fusion->AddControlDependencyTo(s);
  for (size_t k = 0; k < copies.size(); ++k) {
    Instruction *copy = copies[k].copy, *with = PartOf(fusion, static_cast<int64_t>(first_copy + k)).get();
    if (with->shape() != copy->shape()) with = c->Add(Opcode::Bitcast, copy->shape(), {with});
    copy->ReplaceAllUsesWith(with);
    c->Remove(copy);
  }
  MoveReaders(i, fusion);
  c->Remove(i);
}

}  // namespace

absl::StatusOr<bool> CopyFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Instruction* i : OfOpcode(m.entry(), Opcode::Fusion)) {
    if (IsCustomFusion(i)) continue;
    Instruction* root = (*i->attrs().calls)->root();
    const std::vector<Instruction*> roots =
        root->Is(Opcode::Tuple) ? root->operands() : std::vector<Instruction*>{root};
    const std::vector<Copied> copies = CopiesOf(i, roots);
    if (copies.empty() || !ctx.Take()) continue;
    WriteCopies(i, roots, copies);
    changed = true;
  }
  return changed;
}

}  // namespace kiln
