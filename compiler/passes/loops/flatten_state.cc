#include "compiler/passes/loops/while_simplifications.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {
namespace {

Instruction* Element(Instruction* tuple, size_t k) {
  Instruction* e = tuple->parent()->Add(Opcode::GetTupleElement, tuple->shape().tuple()[k], {tuple});
  e->mutable_attrs().tuple_index = static_cast<int64_t>(k);
  return e;
}

void Leaves(Instruction* value, std::vector<Instruction*>* out) {
  if (!value->shape().IsTuple()) return out->push_back(value);
  for (size_t k = 0; k < value->shape().tuple().size(); ++k) Leaves(Element(value, k), out);
}

// A flat tuple of the leaves of `value`.
Instruction* Flat(Instruction* value, const Shape& flat) {
  std::vector<Instruction*> leaves;
  Leaves(value, &leaves);
  return value->parent()->Add(Opcode::Tuple, flat, leaves);
}

// A value of `shape` from the elements of `flat` that come next.
Instruction* Nested(const Shape& shape, Instruction* flat, size_t* next) {
  if (!shape.IsTuple()) return Element(flat, (*next)++);
  std::vector<Instruction*> parts;
  for (const Shape& s : shape.tuple()) parts.push_back(Nested(s, flat, next));
  return flat->parent()->Add(Opcode::Tuple, shape, parts);
}

Computation* OverFlatState(const Computation* from, const Shape& nested, const Shape& flat, const Instruction* site) {
  Computation* c = from->module()->AddComputation(from->name() + "_flat");
  c->set_execution_thread(from->execution_thread());
  size_t next = 0;
  Instruction* state = Nested(nested, c->AddParameter(0, flat, "state"), &next);
  c->set_root(InlineBody(c, from, {state}, site));
  return c;
}

}  // namespace

Instruction* FlattenState(Instruction* loop) {
  const Shape nested = loop->shape();
  if (!nested.IsTuple()) return nullptr;
  std::vector<Shape> leaves;
  ForEachLeaf(nested, [&](const ShapeIndex&, const Shape& s) { leaves.push_back(s); });
  const Shape flat = Shape::Tuple(leaves);
  if (flat == nested) return nullptr;
  Computation *body = OverFlatState(*loop->attrs().body, nested, flat, loop),
              *condition = OverFlatState(*loop->attrs().condition, nested, flat, loop);
  body->set_root(Flat(body->root(), flat));
  Instruction* n = loop->parent()->AddClone(loop, flat, {Flat(loop->operand(0), flat)});
  n->mutable_attrs().body = body;
  n->mutable_attrs().condition = condition;
  n->mutable_attrs().original_value.reset();
  n->mutable_attrs().origin.reset();
  n->mutable_attrs().sharding.reset();
  size_t next = 0;
  loop->ReplaceAllUsesWith(Nested(nested, n, &next));
  loop->parent()->Remove(loop);
  return n;
}

}  // namespace kiln
