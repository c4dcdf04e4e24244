#include "compiler/eval/evaluator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "compiler/eval/families.h"
#include "compiler/eval/runtime_shape.h"
#include "compiler/eval/scalar.h"

namespace kiln {

absl::StatusOr<Literal> EvalElementwise(const Instruction& i, const Shape& shape,
                                        const std::vector<const Literal*>& x) {
  Literal out(shape);
  const int64_t n = out.size();
  const IndexSpace space(shape.dims());
  Element e[3];
  for (int64_t k = 0; k < n; ++k) {
    for (size_t o = 0; o < x.size(); ++o) {
      // Scalar predicates and bounds apply to every element; an array without a size may be larger than the result.
      const Ints& dims = x[o]->shape().dims();
      e[o] = x[o]->Get(dims.empty() ? 0 : dims == shape.dims() ? k : IndexSpace(dims).Linear(space.At(k)));
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

namespace {

// Position `at` along dimension `d`, that dimension dropped.
Literal SliceAt(const Literal& x, int64_t d, int64_t at) {
  Ints dims = x.shape().dims();
  dims.erase(dims.begin() + d);
  Literal out(Shape::Array(x.type(), dims));
  const IndexSpace is(x.shape().dims()), os(dims);
  for (int64_t n = 0; n < out.size(); ++n) {
    Ints p = os.At(n);
    p.insert(p.begin() + d, at);
    out.Set(n, x.Get(is.Linear(p)));
  }
  return out;
}

// Inputs, then carries; one step for each position of the scanned dimension, in order or from the end.
absl::StatusOr<Literal> EvalScan(const Instruction& i, const std::vector<const Literal*>& x) {
  const Computation& body = **i.attrs().to_apply;
  const size_t carries = static_cast<size_t>(i.attrs().num_carries.value_or(0)), inputs = x.size() - carries;
  const int64_t d = i.attrs().scan_dimension.value_or(0);
  std::vector<Shape> results = i.shape().IsTuple() ? i.shape().tuple() : std::vector<Shape>{i.shape()};
  const size_t outputs = results.size() - carries;
  std::vector<Literal> out, state;
  for (size_t k = 0; k < carries; ++k) state.push_back(*x[inputs + k]);
  const int64_t steps = inputs ? x[0]->shape().dim(d) : outputs ? results[0].dim(d) : 0;
  for (size_t k = 0; k < outputs; ++k) {
    results[k] = Shape::Array(results[k].type(), results[k].dims());
    results[k].mutable_dims()[d] = steps;
    out.emplace_back(results[k]);
  }
  for (size_t k = 1; k < inputs; ++k)
    if (x[k]->shape().dim(d) != steps) return ErrorAt(&i, "its inputs have different sizes");
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t at = i.attrs().is_reverse.value_or(false) ? steps - 1 - s : s;
    std::vector<Literal> in;
    for (size_t k = 0; k < inputs; ++k) in.push_back(SliceAt(*x[k], d, at));
    in.insert(in.end(), state.begin(), state.end());
    ASSIGN_OR_RETURN(Literal r, EvaluateComputation(body, in));
    const std::vector<Literal> parts = r.shape().IsTuple() ? r.elements() : std::vector<Literal>{r};
    for (size_t k = 0; k < outputs; ++k) {
      const IndexSpace ps(parts[k].shape().dims()), os(results[k].dims());
      for (int64_t n = 0; n < parts[k].size(); ++n) {
        Ints p = ps.At(n);
        p.insert(p.begin() + d, at);
        out[k].Set(os.Linear(p), parts[k].Get(n));
      }
    }
    for (size_t k = 0; k < carries; ++k) state[k] = parts[outputs + k];
  }
  out.insert(out.end(), state.begin(), state.end());
  return i.shape().IsTuple() ? Literal::Tuple(std::move(out)) : std::move(out[0]);
}

// What is wrong with a value of an instruction of shape `want`, or nothing: element types and extents, sizes by bounds.
std::string Mismatch(const Literal& got, const Shape& want) {
  if (want.IsTuple() || got.shape().IsTuple()) {
    if (!want.IsTuple() || !got.shape().IsTuple() || got.elements().size() != want.tuple().size())
      return absl::StrCat("is ", got.shape().ToString(false));
    for (size_t k = 0; k < want.tuple().size(); ++k)
      if (std::string why = Mismatch(got.elements()[k], want.tuple()[k]); !why.empty()) return why;
    return "";
  }
  bool same = got.type() == want.type() && got.shape().rank() == want.rank();
  for (int64_t d = 0; same && d < want.rank(); ++d) same = got.shape().dim(d) <= want.dim(d);
  return same ? "" : absl::StrCat("is ", got.shape().ToString(false));
}

absl::StatusOr<Literal> ValueOf(const Instruction& i, const std::vector<const Literal*>& x) {
  ASSIGN_OR_RETURN(const Shape shape, RuntimeShape(i, x));
  if (i.IsElementwise()) return EvalElementwise(i, shape, x);
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
    case Opcode::AsyncStart: {
      std::vector<Literal> in;
      for (const Literal* l : x) in.push_back(*l);
      ASSIGN_OR_RETURN(Literal r, EvaluateComputation(**i.attrs().calls, in));
      std::vector<Literal> parts = {Literal::Tuple(in), std::move(r)};
      for (size_t k = 2; k < i.shape().tuple().size(); ++k) parts.emplace_back(i.shape().tuple()[k]);
      return Literal::Tuple(std::move(parts));
    }
    case Opcode::AsyncUpdate:
      return *x[0];
    case Opcode::AsyncDone:
      return x[0]->elements()[1];
    case Opcode::CopyStart:
      return Literal::Tuple({*x[0], *x[0], Literal::Int(PrimitiveType::U32, 0)});
    case Opcode::CopyDone:
      return x[0]->elements()[0];
    case Opcode::Scan:
      return EvalScan(i, x);
    case Opcode::Map: {
      Literal out(shape);
      const IndexSpace space(shape.dims());
      for (int64_t k = 0; k < out.size(); ++k) {
        std::vector<Element> in;
        for (const Literal* l : x) in.push_back(l->Get(IndexSpace(l->shape().dims()).Linear(space.At(k))));
        ASSIGN_OR_RETURN(Literal r, CallScalar(**i.attrs().to_apply, in));
        out.Set(k, r.Get(0));
      }
      return out;
    }
    default:
      break;
  }
  for (auto family :
       {EvalDynamicSize, EvalShapeOp, EvalReduction, EvalContraction, EvalLinalg, EvalBatchNorm, EvalRandom, EvalLapack,
        EvalCsrProduct, EvalLibraryCall, EvalAnnotation, EvalManualBoundary, EvalCollective}) {
    auto r = family(i, shape, x);
    if (r.ok() || !absl::IsNotFound(r.status())) return r;
  }
  return ErrorAt(&i, "the reference evaluator does not know this operation", absl::StatusCode::kUnimplemented);
}

}  // namespace

absl::StatusOr<Literal> EvaluateInstruction(const Instruction& i, const std::vector<const Literal*>& x) {
  ASSIGN_OR_RETURN(Literal out, ValueOf(i, x));
  if (std::string why = Mismatch(out, i.shape()); !why.empty())
    return ErrorAt(&i, absl::StrCat("the evaluator's value ", why, ", the instruction ", i.shape().ToString(false)),
                   absl::StatusCode::kInternal);
  return out;
}

absl::StatusOr<Literal> EvaluateComputation(const Computation& c, const std::vector<Literal>& arguments) {
  absl::flat_hash_map<const Instruction*, Literal> value, before_sizes;
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
    if (i->Is(Opcode::SetDimensionSize)) {
      // A size that is set again may grow.
      const auto whole = before_sizes.find(i->operand(0));
      const Literal array = whole == before_sizes.end() ? *x[0] : whole->second;
      x.push_back(&(before_sizes[i] = array));
    }
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
  ForgetRandomState();
  return EvaluateComputation(*m.entry(), arguments);
}

}  // namespace kiln
