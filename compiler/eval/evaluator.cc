#include "compiler/eval/evaluator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "compiler/eval/families.h"
#include "compiler/eval/scalar.h"

namespace kiln {

absl::StatusOr<Literal> EvalElementwise(const Instruction& i, const std::vector<const Literal*>& x) {
  Literal out(i.shape());
  const int64_t n = out.size();
  Element e[3];
  for (int64_t k = 0; k < n; ++k) {
    for (size_t o = 0; o < x.size(); ++o) {
      // Scalar predicates and bounds apply to every element.
      e[o] = x[o]->Get(x[o]->shape().rank() == 0 ? 0 : k);
    }
    ASSIGN_OR_RETURN(Element r, EvaluateScalar(i, e));
    out.Set(k, r);
  }
  return out;
}

absl::StatusOr<Literal> CallScalar(const Computation& f, const std::vector<Element>& args) {
  std::vector<Literal> in;
  for (size_t k = 0; k < args.size(); ++k) {
    Literal l(f.parameter(static_cast<int64_t>(k))->shape());
    l.Set(0, args[k]);
    in.push_back(std::move(l));
  }
  return EvaluateComputation(f, in);
}

absl::StatusOr<Literal> EvaluateInstruction(const Instruction& i, const std::vector<const Literal*>& x) {
  if (i.IsElementwise()) return EvalElementwise(i, x);
  switch (i.opcode()) {
    case Opcode::Constant:
      return i.literal();
    case Opcode::Tuple: {
      std::vector<Literal> parts;
      for (const Literal* l : x) parts.push_back(*l);
      return Literal::Tuple(std::move(parts));
    }
    case Opcode::GetTupleElement:
      return x[0]->elements()[*i.attrs().tuple_index];
    case Opcode::OptimizationBarrier:
    case Opcode::AddDependency:
    case Opcode::Domain:
      return *x[0];
    case Opcode::AfterAll:
      return Literal(Shape::Token());
    case Opcode::PartitionId:
    case Opcode::ReplicaId:
      return Literal::Int(PrimitiveType::U32, 0);
    case Opcode::Call: {
      std::vector<Literal> in;
      for (const Literal* l : x) in.push_back(*l);
      return EvaluateComputation(**i.attrs().to_apply, in);
    }
    case Opcode::Fusion: {
      std::vector<Literal> in;
      for (const Literal* l : x) in.push_back(*l);
      return EvaluateComputation(**i.attrs().calls, in);
    }
    case Opcode::While: {
      Literal state = *x[0];
      for (;;) {
        ASSIGN_OR_RETURN(Literal go, EvaluateComputation(**i.attrs().condition, {state}));
        if (!go.Get(0).i) return state;
        ASSIGN_OR_RETURN(state, EvaluateComputation(**i.attrs().body, {state}));
      }
    }
    case Opcode::Conditional: {
      const int64_t v = x[0]->Get(0).i;
      if (i.attrs().true_computation)
        return EvaluateComputation(v ? **i.attrs().true_computation : **i.attrs().false_computation, {*x[v ? 1 : 2]});
      const int64_t n = static_cast<int64_t>(i.attrs().branch_computations->size());
      const int64_t b = i.operand(0)->shape().type() == PrimitiveType::Pred ? (v ? 0 : 1) : v < 0 || v >= n ? n - 1 : v;
      return EvaluateComputation(*(*i.attrs().branch_computations)[b], {*x[b + 1]});
    }
    case Opcode::Map: {
      Literal out(i.shape());
      for (int64_t k = 0; k < out.size(); ++k) {
        std::vector<Element> in;
        for (const Literal* l : x) in.push_back(l->Get(k));
        ASSIGN_OR_RETURN(Literal r, CallScalar(**i.attrs().to_apply, in));
        out.Set(k, r.Get(0));
      }
      return out;
    }
    default:
      break;
  }
  for (auto family : {EvalShapeOp, EvalReduction, EvalContraction, EvalLinalg}) {
    auto r = family(i, x);
    if (r.ok() || !absl::IsNotFound(r.status())) return r;
  }
  return ErrorAt(&i, "the reference evaluator does not know this operation", absl::StatusCode::kUnimplemented);
}

absl::StatusOr<Literal> EvaluateComputation(const Computation& c, const std::vector<Literal>& arguments) {
  absl::flat_hash_map<const Instruction*, Literal> value;
  absl::flat_hash_map<const Instruction*, int> uses;
  const auto order = c.PostOrder();
  for (const Instruction* i : order)
    for (const Instruction* o : i->operands()) ++uses[o];
  for (const Instruction* i : order) {
    if (i->Is(Opcode::Parameter)) {
      value[i] = arguments[*i->attrs().parameter_number];
      continue;
    }
    std::vector<const Literal*> x;
    for (const Instruction* o : i->operands()) x.push_back(&value.at(o));
    auto r = EvaluateInstruction(*i, x);
    if (!r.ok()) return r.status();
    for (const Instruction* o : i->operands())
      if (--uses[o] == 0 && o != c.root()) value.erase(o);
    value[i] = std::move(*r);
  }
  return value.at(c.root());
}

absl::StatusOr<Literal> Evaluate(const Module& m, const std::vector<Literal>& arguments) {
  if (arguments.size() != m.entry()->parameters().size())
    return InvalidArgument("error: ", arguments.size(), " arguments given, the entry takes ",
                           m.entry()->parameters().size());
  return EvaluateComputation(*m.entry(), arguments);
}

}  // namespace kiln
