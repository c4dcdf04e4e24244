// Sorts along a dynamic dimension: what lies past the size sorts behind everything else, by a flag beside the keys.
#include "compiler/passes/dynamic_padder/sized_computation.h"

namespace kiln::padding {
namespace {

// The comparator of `sort` with two flags behind its arguments, which decide before it does.
Computation* FlaggedComparator(Module* m, const Instruction* sort) {
  const Computation* old = *sort->attrs().to_apply;
  Computation* compare = m->AddComputation("padded_compare");
  std::vector<Instruction*> arguments;
  const int64_t n = 2 * sort->operand_count();
  for (int64_t k = 0; k < n; ++k) arguments.push_back(compare->AddParameter(k, old->parameter(k)->shape(), "key"));
  const Shape flag = Shape::Scalar(PrimitiveType::Pred);
  const Expr a = compare->AddParameter(n, flag, "past"), b = compare->AddParameter(n + 1, flag, "past");
  absl::flat_hash_map<const Instruction*, Instruction*> map;
  for (Instruction* k : old->PostOrder()) {
    if (k->Is(Opcode::Parameter)) {
      map[k] = arguments[*k->attrs().parameter_number];
      continue;
    }
    std::vector<Instruction*> operands;
    for (Instruction* o : k->operands()) operands.push_back(map.at(o));
    map[k] = compare->AddClone(k, k->shape(), operands);
  }
  const Expr ordered = map.at(old->root());
  compare->set_root(SelectExpr(CompareExpr(Direction::NE, a, b), b, ordered).get());
  return compare;
}

}  // namespace

absl::Status PadSort(SizedComputation& f, Instruction* i) {
  Instruction* x = i->operand(0);
  const int64_t along = i->attrs().dimensions ? (*i->attrs().dimensions)[0] : x->shape().rank() - 1;
  LeafSizes sizes;
  const Instruction* sized = nullptr;  // whose size along the sorted dimension is known
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    const Sizes& of = f.Of(i->operand(k));
    if (of.count(along)) sized = i->operand(k);
    sizes[i->shape().IsTuple() ? ShapeIndex{k} : ShapeIndex{}] = of;
  }
  if (!sized) {
    f.SetAll(i, std::move(sizes));
    return absl::OkStatus();
  }
  const Ints dims = x->shape().dims();
  Computation* c = f.computation();
  const Expr past =
      CompareExpr(Direction::GE, IotaOf(c, PrimitiveType::S32, dims, along), BroadcastTo(f.Of(sized).at(along), dims));
  std::vector<Instruction*> operands = i->operands();
  operands.push_back(past.get());
  std::vector<Shape> shapes;
  for (const Instruction* o : operands) shapes.push_back(o->shape());
  Instruction* sort = c->AddClone(i, Shape::Tuple(shapes), operands);
  sort->mutable_attrs().to_apply = FlaggedComparator(f.module(), i);
  std::vector<Instruction*> parts;
  for (int64_t k = 0; k < i->operand_count(); ++k) parts.push_back(PartOf(sort, k).get());
  Instruction* value = i->shape().IsTuple() ? c->Add(Opcode::Tuple, i->shape(), parts) : parts[0];
  return f.Replace(i, value, sizes);
}

}  // namespace kiln::padding
