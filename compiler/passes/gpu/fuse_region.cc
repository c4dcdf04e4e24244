#include "compiler/passes/gpu/fuse_region.h"

namespace kiln {

Instruction* FuseRegion(const std::vector<Instruction*>& outputs,
                        const absl::flat_hash_set<const Instruction*>& members) {
  Computation* c = outputs[0]->parent();
  Computation* f = c->module()->AddComputation("fused_computation");
  std::vector<Instruction*> operands, order;
  for (Instruction* i : c->PostOrder())
    if (members.contains(i)) order.push_back(i);
  absl::flat_hash_map<const Instruction*, Instruction*> inside;
  for (Instruction* i : order) {
    std::vector<Instruction*> arguments;
    for (Instruction* o : i->operands()) {
      Instruction*& clone = inside[o];
      if (!clone) {
        clone = f->AddParameter(static_cast<int64_t>(operands.size()), o->shape(), "param");
        operands.push_back(o);
      }
      arguments.push_back(clone);
    }
    inside[i] = f->AddClone(i, i->shape(), arguments);
  }
  std::vector<Instruction*> roots;
  std::vector<Shape> shapes;
  for (const Instruction* o : outputs) {
    roots.push_back(inside.at(o));
    shapes.push_back(o->shape());
  }
  const bool one = outputs.size() == 1;
  const Shape shape = one ? shapes[0] : Shape::Tuple(shapes);
  f->set_root(one ? roots[0] : f->Add(Opcode::Tuple, shape, roots));
  Instruction* fusion = c->Add(Opcode::Fusion, shape, operands, "fusion");
  fusion->set_loc(outputs[0]->loc());
  fusion->mutable_attrs().calls = f;
  fusion->mutable_attrs().fusion_kind = "kCustom";
  for (size_t k = 0; k < outputs.size(); ++k) {
    Instruction* with = fusion;
    if (!one) {
      with = c->Add(Opcode::GetTupleElement, shapes[k], {fusion});
      with->mutable_attrs().tuple_index = static_cast<int64_t>(k);
    }
    outputs[k]->ReplaceAllUsesWith(with);
  }
  for (size_t k = order.size(); k-- > 0;)
    if (order[k]->users().empty() && !order[k]->IsRoot()) c->Remove(order[k]);
  return fusion;
}

}  // namespace kiln
