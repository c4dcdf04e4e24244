// Sizes along tuples, loops, branches and calls.
//
// Each caller gets copies of what it calls, since another caller may bring other sizes along.
#include "compiler/passes/dynamic_padder/sized_computation.h"

namespace kiln::padding {
namespace {

ShapeIndex Joined(int64_t k, const ShapeIndex& rest) {
  ShapeIndex out = {k};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

LeafSizes OfElement(const LeafSizes& tuple, int64_t k) {
  LeafSizes out;
  for (const auto& [leaf, sizes] : tuple)
    if (!leaf.empty() && leaf[0] == k) out[ShapeIndex(leaf.begin() + 1, leaf.end())] = sizes;
  return out;
}

void Merge(const DynamicDims& from, DynamicDims* into) { into->insert(from.begin(), from.end()); }

Computation* CopyOf(SizedComputation& f, const Computation* c) { return f.module()->CloneComputation(c, "sized"); }

void SetCalled(Instruction* i, const std::vector<Computation*>& callees) {
  size_t k = 0;
  i->MapCalled([&](Computation*) { return callees[k++]; });
}

// `sized`, which gives the value of `i` and then a size for each of `dims`, takes the place of `i`.
absl::Status ReplaceBySized(SizedComputation& f, Instruction* i, Instruction* sized, const DynamicDims& dims) {
  for (Instruction* p : std::vector<Instruction*>(i->control_predecessors())) p->AddControlDependencyTo(sized);
  for (Instruction* s : std::vector<Instruction*>(i->control_successors())) sized->AddControlDependencyTo(s);
  int64_t at = i->shape().IsTuple() ? static_cast<int64_t>(i->shape().tuple().size()) : 1;
  Instruction* value = sized;
  if (!dims.empty()) {
    std::vector<Expr> parts;
    for (int64_t k = 0; k < at; ++k) parts.push_back(PartOf(sized, k));
    value = parts.empty() ? f.computation()->Add(Opcode::Tuple, i->shape(), {}) : parts[0].get();
    if (i->shape().IsTuple() && !parts.empty()) {
      std::vector<Instruction*> elements;
      for (const Expr& e : parts) elements.push_back(e.get());
      value = f.computation()->Add(Opcode::Tuple, i->shape(), elements);
    }
  }
  LeafSizes sizes;
  for (const auto& [leaf, dim] : dims) sizes[leaf][dim] = PartOf(sized, at++).get();
  return f.Replace(i, value, sizes);
}

Shape SizedShape(const Shape& s, const DynamicDims& dims) {
  if (dims.empty()) return s;
  std::vector<Shape> parts = s.IsTuple() ? s.tuple() : std::vector<Shape>{s};
  parts.resize(parts.size() + dims.size(), Shape::Scalar(PrimitiveType::S32));
  return Shape::Tuple(parts);
}

absl::Status PadLoop(SizedComputation& f, Instruction* loop) {
  Instruction* init = loop->operand(0);
  const Computation *condition = *loop->attrs().condition, *body = *loop->attrs().body;
  DynamicDims dims = KnownDims(f.All(init));
  for (const Shape& s :
       {loop->shape(), condition->parameter(0)->shape(), body->parameter(0)->shape(), body->root()->shape()})
    Merge(DeclaredDims(s), &dims);
  if (dims.empty() && !IsDynamicComputation(condition) && !IsDynamicComputation(body)) return absl::OkStatus();
  // A body may make more of its state dynamic than what comes in: then the state holds these sizes too.
  for (;;) {
    SizedComputation c(f.module(), CopyOf(f, condition)), b(f.module(), CopyOf(f, body));
    for (SizedComputation* part : {&c, &b}) {
      AddSizesToParameter(*part, part->computation()->parameter(0), dims);
      RETURN_IF_ERROR(PadComputation(*part));
    }
    Instruction* root = b.computation()->root();
    const size_t before = dims.size();
    Merge(KnownDims(b.All(root)), &dims);
    if (dims.size() != before) continue;
    b.computation()->set_root(WithSizes(b, root, dims));
    Instruction* sized = f.computation()->AddClone(loop, SizedShape(loop->shape(), dims), {WithSizes(f, init, dims)});
    sized->mutable_attrs().condition = c.computation();
    sized->mutable_attrs().body = b.computation();
    return ReplaceBySized(f, loop, sized, dims);
  }
}

// Branches and calls: `first` operands do not reach a callee.
absl::Status PadCallees(SizedComputation& f, Instruction* i, int64_t first) {
  const std::vector<Computation*> called = i->called();
  bool dynamic = i->shape().HasDynamic();
  for (const Instruction* o : i->operands()) dynamic = dynamic || f.IsDynamic(o);
  for (const Computation* c : called) dynamic = dynamic || IsDynamicComputation(c);
  if (!dynamic) return absl::OkStatus();
  std::vector<SizedComputation> callees;
  std::vector<Instruction*> operands = i->operands();
  DynamicDims dims = DeclaredDims(i->shape());
  int64_t at = first;
  for (const Computation* c : called) {
    callees.emplace_back(f.module(), CopyOf(f, c));
    SizedComputation& callee = callees.back();
    for (Instruction* p : callee.computation()->parameters()) {
      DynamicDims given = DeclaredDims(p->shape());
      Merge(KnownDims(f.All(operands[at])), &given);
      operands[at] = WithSizes(f, operands[at], given);
      ++at;
      AddSizesToParameter(callee, p, given);
    }
    RETURN_IF_ERROR(PadComputation(callee));
    Merge(KnownDims(callee.All(callee.computation()->root())), &dims);
  }
  std::vector<Computation*> copies;
  for (SizedComputation& callee : callees) {
    Computation* c = callee.computation();
    c->set_root(WithSizes(callee, c->root(), dims));
    copies.push_back(c);
  }
  Instruction* sized = f.computation()->AddClone(i, SizedShape(i->shape(), dims), operands);
  SetCalled(sized, copies);
  return ReplaceBySized(f, i, sized, dims);
}

}  // namespace

absl::Status PadControlFlow(SizedComputation& f, Instruction* i) {
  switch (i->opcode()) {
    case Opcode::While:
      return PadLoop(f, i);
    case Opcode::Conditional:
      return PadCallees(f, i, 1);
    case Opcode::Call:
      return PadCallees(f, i, 0);
    case Opcode::Tuple: {
      LeafSizes out;
      for (int64_t k = 0; k < i->operand_count(); ++k)
        for (const auto& [leaf, sizes] : f.All(i->operand(k))) out[Joined(k, leaf)] = sizes;
      f.SetAll(i, std::move(out));
      return absl::OkStatus();
    }
    case Opcode::GetTupleElement:
      f.SetAll(i, OfElement(f.All(i->operand(0)), *i->attrs().tuple_index));
      return absl::OkStatus();
    default:  // hands its operand on
      f.SetAll(i, f.All(i->operand(0)));
      return absl::OkStatus();
  }
}

}  // namespace kiln::padding
