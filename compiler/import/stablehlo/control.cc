// StableHLO control flow and calls.
#include "absl/strings/numbers.h"
#include "compiler/import/stablehlo/converter.h"
#include "compiler/import/symbols.h"

namespace kiln::stablehlo {

namespace {

// The initial values of a loop whose body hands them on as they are; null for the others.
Values HandedOn(const mlir::Region& body, const Values& init) {
  Values out(init.size());
  if (body.ops.empty() || body.ops.back()->operands.size() != init.size()) return out;
  for (size_t k = 0; k < init.size(); ++k)
    if (body.ops.back()->operands[k] == body.arguments[k].name) out[k] = init[k];
  return out;
}

}  // namespace

absl::StatusOr<Values> ConvertCall(Call& call) {
  return call.converter.CallFunction(mlir::CalleeOf(call.op), call.op, call.c, call.x);
}

absl::StatusOr<Values> ConvertWhile(Call& call) {
  if (call.op.regions.size() != 2) return call.Fail("needs a condition and a body");
  std::vector<std::string> captured;
  for (const mlir::Region& r : call.op.regions) {
    if (r.arguments.size() != call.x.size()) return call.Fail("a region does not take the loop's values");
    call.converter.FreeNames(r, &captured);
  }
  std::vector<Shape> arguments;
  for (Instruction* i : call.x) arguments.push_back(i->shape());
  Values init = call.x;
  std::vector<int64_t> forwarded;
  for (const std::string& n : captured) {
    auto v = Lookup(*call.env, n);
    if (!v.ok()) return call.Fail(v.status().message());
    forwarded.push_back(static_cast<int64_t>(init.size()));
    init.push_back(*v);
  }
  const Values always = HandedOn(call.op.regions[1], call.x);
  ASSIGN_OR_RETURN(Computation * cond,
                   call.converter.TupleRegion(call.op.regions[0], arguments, captured, *call.env, "cond", {}, always));
  ASSIGN_OR_RETURN(Computation * body, call.converter.TupleRegion(call.op.regions[1], arguments, captured, *call.env,
                                                                  "body", forwarded, always));
  std::vector<Shape> shapes;
  for (Instruction* i : init) shapes.push_back(i->shape());
  Instruction* t = call.Add(Opcode::Tuple, Shape::Tuple(shapes), init);
  Instruction* w = call.Add(Opcode::While, t->shape(), {t});
  w->mutable_attrs().condition = cond;
  w->mutable_attrs().body = body;
  Values parts = call.Split(w);
  parts.resize(call.x.size());
  for (size_t k = 0; k < parts.size(); ++k)
    if (always[k]) call.converter.Always(parts[k], always[k]);
  return parts;
}

absl::StatusOr<Values> ConvertConditional(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  const bool two = call.name == "if";
  if (call.op.regions.empty()) return call.Fail("has no branch");
  if (two && call.op.regions.size() != 2) return call.Fail("needs two branches");
  std::vector<Computation*> branches;
  Values operands = {call.x[0]};
  for (const mlir::Region& r : call.op.regions) {
    std::vector<std::string> captured;
    call.converter.FreeNames(r, &captured);
    Values vals;
    std::vector<Shape> shapes;
    for (const std::string& n : captured) {
      auto v = Lookup(*call.env, n);
      if (!v.ok()) return call.Fail(v.status().message());
      vals.push_back(*v);
      shapes.push_back((*v)->shape());
    }
    operands.push_back(call.Add(Opcode::Tuple, Shape::Tuple(shapes), vals));
    ASSIGN_OR_RETURN(Computation * b, call.converter.TupleRegion(r, {}, captured, *call.env, "branch", {}, {}));
    branches.push_back(b);
  }
  Instruction* cond = call.Add(Opcode::Conditional, branches[0]->root()->shape(), operands);
  if (two) {
    cond->mutable_attrs().true_computation = branches[0];
    cond->mutable_attrs().false_computation = branches[1];
  } else {
    cond->mutable_attrs().branch_computations = branches;
  }
  return call.Split(cond);
}

absl::StatusOr<Values> ConvertToken(Call& call) { return Values{call.Add(Opcode::AfterAll, Shape::Token(), call.x)}; }

// inputs..., inits...; the body takes one slice of each input and the carries, and gives one slice of each output and
// the new carries. Results are the outputs, then the final carries.
absl::StatusOr<Values> ConvertScan(Call& call) {
  if (call.op.regions.size() != 1) return call.Fail("needs one body");
  ASSIGN_OR_RETURN(Computation * body, call.ScalarRegion(call.op.regions[0], "scan"));
  int64_t carries = call.One("operandSegmentSizes", 0);
  const Ints segments = call.List("operandSegmentSizes");
  if (segments.size() == 2) carries = segments[1];
  if (carries < 0 || carries > static_cast<int64_t>(call.x.size()))
    return call.Fail("operandSegmentSizes does not fit");
  Instruction* s = call.Add(Opcode::Scan, Shape::Tuple(call.types), call.x);
  s->mutable_attrs().to_apply = body;
  s->mutable_attrs().num_carries = carries;
  s->mutable_attrs().scan_dimension = call.One("dimension", 0);
  if (call.Flag("is_reverse", false)) s->mutable_attrs().is_reverse = true;
  return call.Split(s);
}

}  // namespace kiln::stablehlo
