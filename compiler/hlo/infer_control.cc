#include "compiler/hlo/infer_rules.h"

namespace kiln::infer {

absl::StatusOr<Shape> ResultOfCall(const Instruction& i, const Computation* c, absl::string_view what) {
  REQUIRE(static_cast<int64_t>(c->parameters().size()) == i.operand_count(), what, " ", c->name(), " takes ",
          c->parameters().size(), " operands, not ", i.operand_count());
  for (int64_t k = 0; k < i.operand_count(); ++k)
    REQUIRE(c->parameter(k)->shape().Compatible(i.operand(k)->shape()), "operand ", k, " is ",
            i.operand(k)->shape().ToString(false), ", ", what, " ", c->name(), " takes ",
            c->parameter(k)->shape().ToString(false));
  return c->root()->shape();
}

absl::StatusOr<Shape> Call(const Instruction& i, Given) {
  REQUIRE(i.attrs().to_apply, "to_apply is missing");
  return ResultOfCall(i, *i.attrs().to_apply, "computation");
}

absl::StatusOr<Shape> Fusion(const Instruction& i, Given) {
  REQUIRE(i.attrs().calls, "calls is missing");
  return ResultOfCall(i, *i.attrs().calls, "fusion computation");
}

absl::StatusOr<Shape> While(const Instruction& i, Given) {
  const Attributes& a = i.attrs();
  REQUIRE(a.condition && a.body, "condition or body is missing");
  const Shape& s = i.operand(0)->shape();
  for (const Computation* c : {*a.condition, *a.body}) {
    REQUIRE(c->parameters().size() == 1, "computation ", c->name(), " takes ", c->parameters().size(),
            " parameters, not 1");
    REQUIRE(c->parameter(0)->shape().Compatible(s), "computation ", c->name(), " takes ",
            c->parameter(0)->shape().ToString(false), ", the state is ", s.ToString(false));
  }
  REQUIRE((*a.condition)->root()->shape().Compatible(Shape::Scalar(PrimitiveType::Pred)), "condition ",
          (*a.condition)->name(), " does not return pred[]");
  REQUIRE((*a.body)->root()->shape().Compatible(s), "body ", (*a.body)->name(), " returns ",
          (*a.body)->root()->shape().ToString(false), ", the state is ", s.ToString(false));
  return s;
}

absl::StatusOr<Shape> Conditional(const Instruction& i, Given) {
  const Attributes& a = i.attrs();
  REQUIRE(a.true_computation.has_value() == a.false_computation.has_value() &&
              a.true_computation.has_value() != a.branch_computations.has_value(),
          "has either true_computation and false_computation, or branch_computations");
  const std::vector<Computation*> branches = a.branch_computations
                                                 ? *a.branch_computations
                                                 : std::vector<Computation*>{*a.true_computation, *a.false_computation};
  REQUIRE(!branches.empty() && i.operand_count() == static_cast<int64_t>(branches.size()) + 1,
          "takes an index and one operand per branch (", branches.size(), "), not ", i.operand_count(), " operands");
  const Shape& sel = i.operand(0)->shape();
  REQUIRE(sel.rank() == 0 && (sel.type() == PrimitiveType::Pred || sel.type() == PrimitiveType::S32), "index is ",
          sel.ToString(false), ", not pred[] or s32[]");
  REQUIRE(sel.type() == PrimitiveType::S32 || branches.size() == 2, "pred[] chooses between 2 branches, not ",
          branches.size());
  for (size_t b = 0; b < branches.size(); ++b) {
    const Computation* c = branches[b];
    const Shape& x = i.operand(static_cast<int64_t>(b) + 1)->shape();
    REQUIRE(c->parameters().size() == 1, "branch ", c->name(), " takes ", c->parameters().size(), " parameters, not 1");
    REQUIRE(c->parameter(0)->shape().Compatible(x), "branch ", c->name(), " takes ",
            c->parameter(0)->shape().ToString(false), ", operand is ", x.ToString(false));
    REQUIRE(c->root()->shape().Compatible(branches[0]->root()->shape()), "branches return different shapes");
  }
  return branches[0]->root()->shape();
}

absl::StatusOr<Shape> Tuple(const Instruction& i, Given) {
  std::vector<Shape> out;
  for (const Instruction* o : i.operands()) out.push_back(o->shape());
  return Shape::Tuple(std::move(out));
}

absl::StatusOr<Shape> GetTupleElement(const Instruction& i, Given) {
  const Attributes& a = i.attrs();
  const Shape& t = i.operand(0)->shape();
  REQUIRE(t.IsTuple(), "operand is ", t.ToString(false), ", not a tuple");
  REQUIRE(a.tuple_index && *a.tuple_index >= 0 && *a.tuple_index < static_cast<int64_t>(t.tuple().size()),
          "index is out of range for ", t.tuple().size(), " elements");
  return t.tuple()[*a.tuple_index];
}

absl::StatusOr<Shape> AddDependency(const Instruction& i, Given) {
  const Shape& token = i.operand(1)->shape();
  REQUIRE(token.IsToken(), "operand 1 is ", token.ToString(false), ", not a token");
  return i.operand(0)->shape();
}

absl::StatusOr<Shape> AfterAll(const Instruction& i, Given) {
  for (int64_t k = 0; k < i.operand_count(); ++k)
    REQUIRE(i.operand(k)->shape().IsToken(), "operand ", k, " is ", i.operand(k)->shape().ToString(false),
            ", not a token");
  return Shape::Token();
}

absl::StatusOr<Shape> SameAsOperand(const Instruction& i, Given) { return i.operand(0)->shape(); }

absl::StatusOr<Shape> DeviceId(const Instruction&, Given) { return Shape::Scalar(PrimitiveType::U32); }

}  // namespace kiln::infer
