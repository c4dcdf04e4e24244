#include "compiler/passes/expand/scalar_body.h"

namespace kiln {

bool IsScalarBody(const Computation* f) {
  for (const auto& x : f->instructions()) {
    const bool results = x->IsRoot() && x->Is(Opcode::Tuple);
    if (!results && (!x->shape().IsScalar() || (!x->IsElementwise() && !x->Is(Opcode::Parameter) &&
                                                !x->Is(Opcode::Constant) && !x->Is(Opcode::BitcastConvert))))
      return false;
  }
  return true;
}

std::vector<Expr> ApplyScalarBody(const Computation* f, const std::vector<Expr>& arguments) {
  Computation* c = arguments[0].computation();
  const Ints& dims = arguments[0].shape().dims();
  absl::flat_hash_map<const Instruction*, Instruction*> map;
  for (const Instruction* x : f->PostOrder()) {
    if (x->Is(Opcode::Parameter)) {
      map[x] = arguments[static_cast<size_t>(*x->attrs().parameter_number)].get();
    } else if (x->Is(Opcode::Constant)) {
      map[x] = BroadcastTo(c->AddConstant(x->literal()), dims).get();
    } else if (!x->Is(Opcode::Tuple)) {
      std::vector<Instruction*> operands;
      for (const Instruction* o : x->operands()) operands.push_back(map.at(o));
      map[x] = c->AddClone(x, Shape::Array(x->shape().type(), dims), operands);
    }
  }
  std::vector<Expr> out;
  if (f->root()->Is(Opcode::Tuple))
    for (const Instruction* o : f->root()->operands()) out.push_back(map.at(o));
  else
    out.push_back(map.at(f->root()));
  return out;
}

}  // namespace kiln
