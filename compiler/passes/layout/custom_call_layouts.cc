// custom-call-layouts: what a user's function asks for as a layout becomes a transpose around the call.
//
// A function that takes f32[3,4]{0,1} reads 4 x 3 numbers in row-major order, which is what f32[4,3] is: the operand is
// transposed, and the call's shapes list extents from the slowest to the fastest. Results likewise. Calls that kiln's
// own kernels serve are operations on values, for which no layout matters.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/lapack.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/physical_shape.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

Shape Physical(const Shape& s) { return Shape::Array(s.type(), PhysicalShape(s).dims()); }

bool Plain(const Shape& s) { return !s.IsArray() || s.HasDefaultLayout(); }

// The shapes that the call wants of its operands: its constraints, or the operands' own.
absl::StatusOr<std::vector<Shape>> Wanted(const Instruction* i) {
  std::vector<Shape> out;
  for (const Instruction* o : i->operands()) out.push_back(o->shape());
  if (!i->attrs().operand_layout_constraints) return out;
  std::string text = i->attrs().operand_layout_constraints->text;
  if (text.size() < 2) return out;
  text.front() = '(';
  text.back() = ')';
  auto constraints = ParseShape(text);
  if (!constraints.ok() || constraints->tuple().size() != out.size())
    return ErrorAt(i, "operand_layout_constraints do not fit the operands");
  for (size_t k = 0; k < out.size(); ++k) {
    if (!constraints->tuple()[k].Compatible(out[k]))
      return ErrorAt(i, absl::StrCat("operand_layout_constraints of operand ", k, " do not fit it"));
    out[k] = constraints->tuple()[k];
  }
  return out;
}

bool AsksForLayouts(const Instruction* i) {
  if (!i->Is(Opcode::CustomCall)) return false;
  auto wanted = Wanted(i);
  if (!wanted.ok() || !std::all_of(wanted->begin(), wanted->end(), Plain)) return true;
  if (i->shape().IsTuple()) return !std::all_of(i->shape().tuple().begin(), i->shape().tuple().end(), Plain);
  return !Plain(i->shape());
}

// A result as the rest of the program knows it.
Expr Logical(Expr physical, const Shape& s) {
  return Plain(s) ? physical : TransposeBy(physical, InversePermutation(MajorToMinor(s)));
}

absl::StatusOr<Instruction*> Rewrite(Instruction* i) {
  Computation* c = i->parent();
  if (LapackOf(i)) {
    Shape s = i->shape();
    s.ClearLayouts();
    Instruction* call = c->AddClone(i, s, i->operands());
    call->mutable_attrs().operand_layout_constraints.reset();
    return call;
  }
  ASSIGN_OR_RETURN(std::vector<Shape> wanted, Wanted(i));
  std::vector<Instruction*> operands;
  for (size_t k = 0; k < wanted.size(); ++k) {
    Expr x = i->operand(static_cast<int64_t>(k));
    operands.push_back(Plain(wanted[k]) ? x.get() : TransposeBy(x, MajorToMinor(wanted[k])).get());
  }
  const bool tuple = i->shape().IsTuple();
  std::vector<Shape> parts;
  if (tuple)
    for (const Shape& s : i->shape().tuple()) parts.push_back(s.IsArray() ? Physical(s) : s);
  Instruction* call = c->AddClone(i, tuple ? Shape::Tuple(parts) : Physical(i->shape()), operands);
  call->mutable_attrs().operand_layout_constraints.reset();
  if (!tuple) return Logical(call, i->shape()).get();
  std::vector<Instruction*> results;
  std::vector<Shape> shapes;
  for (size_t k = 0; k < parts.size(); ++k) {
    Instruction* g = c->Add(Opcode::GetTupleElement, parts[k], {call});
    g->mutable_attrs().tuple_index = static_cast<int64_t>(k);
    results.push_back(parts[k].IsArray() ? Logical(g, i->shape().tuple()[k]).get() : g);
    shapes.push_back(results.back()->shape());
  }
  return c->Add(Opcode::Tuple, Shape::Tuple(shapes), results);
}

}  // namespace

absl::StatusOr<bool> CustomCallLayouts(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, AsksForLayouts, Rewrite);
}

}  // namespace kiln
