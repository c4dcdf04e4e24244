// Every elementwise operation on every type that takes it: compiled code against the reference evaluator, on values
// chosen to hurt. The matrix is made from opcodes.def and types.def; one program per type holds all its operations.
#include <cmath>
#include <limits>

#include "aot/tools/difference.h"
#include "aot/tools/runner.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/infer.h"
#include "compiler/hlo/verify.h"
#include "gtest/gtest.h"
#include "tests/op_matrix/backend.h"

namespace kiln {
namespace {

std::vector<double> Nasty(PrimitiveType t) {
  std::vector<double> v = {0.0, -0.0, 1,   -1,   0.5,  -0.5, 1.5, 2.5,  -2.5,  3,
                           7,   -7,   0.1, -0.3, 1e-3, 10,   100, -100, 0.999, 1.001};
  if (InfoOf(t).exponent_bits >= 5) v.insert(v.end(), {1000, -1000, 30000, 1e-4});
  if (InfoOf(t).exponent_bits >= 8 || IsComplex(t)) v.insert(v.end(), {1e10, -1e10, 1e30, 1e-30, 88.5, -87, 1e6});
  if (!IsComplex(t)) v.insert(v.end(), {INFINITY, -INFINITY, NAN});
  return v;
}

std::vector<int64_t> NastyIntegers(PrimitiveType t) {
  const int bits = InfoOf(t).bits;
  const int64_t top = IsSigned(t) ? (bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits - 1)) - 1)
                                  : (bits == 64 ? -1 : (int64_t{1} << bits) - 1);
  std::vector<int64_t> v = {0, 1, 2, 3, top, top - 1, 5, bits, bits - 1};
  if (IsSigned(t)) v.insert(v.end(), {-1, -2, -top, -top - 1, -3});
  return v;
}

Literal Values(PrimitiveType t, int64_t n, int64_t stride) {
  Literal l(Shape::Array(t, {n}));
  const std::vector<double> f = Nasty(t);
  const std::vector<int64_t> ints = NastyIntegers(t);
  for (int64_t k = 0; k < n; ++k) {
    Element e;
    const int64_t q = k / stride;
    e.re = f[q % f.size()];
    e.im = IsComplex(t) ? f[(q * 7 + 3) % f.size()] : 0;
    e.i = t == PrimitiveType::Pred ? q & 1 : ints[q % ints.size()];
    l.Set(k, e);
  }
  return l;
}

// Units in the last place that the compiled operation may be off: 0 for exact ones. docs/numerics.md has the table.
double Bound(Opcode op, PrimitiveType t) {
  if (IsComplex(t)) return op == Opcode::Add || op == Opcode::Subtract || op == Opcode::Negate ? 0 : 64;
  if (IsFloat(t) && InfoOf(t).bits < 32) return InfoOf(op).traits & Transcendental || op == Opcode::Rsqrt ? 1 : 0;
  if (!(InfoOf(op).traits & Transcendental)) return op == Opcode::Rsqrt ? 1 : 0;
  return t == PrimitiveType::F64 ? 4 : op == Opcode::Tanh || op == Opcode::Erf || op == Opcode::Logistic ? 8 : 3;
}

class OpMatrix : public testing::TestWithParam<PrimitiveType> {};

TEST_P(OpMatrix, CompiledEqualsReference) {
  const PrimitiveType t = GetParam();
  const int64_t n = 1024;
  auto m = std::make_unique<Module>("matrix");
  Computation* c = m->AddComputation("main");
  m->set_entry(c);
  const Shape s = Shape::Array(t, {n});
  Instruction* x = c->AddParameter(0, s, "x");
  Instruction* y = c->AddParameter(1, s, "y");
  Instruction* p = c->AddParameter(2, Shape::Array(PrimitiveType::Pred, {n}), "p");
  std::vector<Instruction*> results;
  std::vector<double> bounds;
  for (int k = 0; k < OpcodeCount(); ++k) {
    const Opcode op = static_cast<Opcode>(k);
    const OpcodeInfo& info = InfoOf(op);
    if (!(info.traits & Elementwise) || op == Opcode::StochasticConvert || op == Opcode::Copy ||
        op == Opcode::Convert || op == Opcode::Complex)
      continue;
    if (IsComplex(t) && (op == Opcode::Remainder || op == Opcode::Clamp || op == Opcode::Erf)) continue;
    // Complex functions are compared by the StableHLO conformance programs, whose references know the branch cuts.
    if (IsComplex(t) && (info.traits & Transcendental || op == Opcode::Divide || op == Opcode::Sqrt ||
                         op == Opcode::Rsqrt || op == Opcode::Sign || op == Opcode::Multiply))
      continue;
    if (t == PrimitiveType::Pred && op != Opcode::And && op != Opcode::Or && op != Opcode::Xor && op != Opcode::Not &&
        op != Opcode::Add && op != Opcode::Multiply && op != Opcode::Maximum && op != Opcode::Minimum &&
        op != Opcode::Select && op != Opcode::Compare)
      continue;
    std::vector<Instruction*> ops;
    if (op == Opcode::Select)
      ops = {p, x, y};
    else if (op == Opcode::Clamp)
      ops = {x, y, x};
    else if (info.arity == 1)
      ops = {x};
    else
      ops = {x, y};
    if (op == Opcode::ReducePrecision && IsFloat(t))
      for (const auto& [exponent, mantissa] : {std::pair{4, 1}, {5, 0}, {5, 10}, {8, 0}, {8, 3}, {11, 20}}) {
        Instruction* reduced = c->Add(op, s, ops);
        reduced->mutable_attrs().exponent_bits = exponent;
        reduced->mutable_attrs().mantissa_bits = mantissa;
        results.push_back(reduced);
        bounds.push_back(Bound(op, t));
      }
    Instruction* i = c->Add(op, s, ops);
    if (op == Opcode::Compare) i->mutable_attrs().direction = IsComplex(t) ? Direction::NE : Direction::LT;
    if (op == Opcode::ReducePrecision) {
      i->mutable_attrs().exponent_bits = 5;
      i->mutable_attrs().mantissa_bits = 4;
    }
    auto inferred = InferShape(*i);
    if (!inferred.ok()) {
      c->Remove(i);
      continue;
    }
    i->mutable_shape() = *inferred;
    results.push_back(i);
    bounds.push_back(Bound(op, t));
  }
  std::vector<Shape> shapes;
  // Conversions to every type.
  for (int k = 0; k < 64; ++k) {
    const auto to = TypeFromProto(k);
    if (!to || !IsArrayType(*to) || *to == t) continue;
    Instruction* i = c->Add(Opcode::Convert, Shape::Array(*to, {n}), {x});
    results.push_back(i);
    bounds.push_back(0);
  }
  for (Instruction* r : results) shapes.push_back(r->shape());
  c->set_root(c->Add(Opcode::Tuple, Shape::Tuple(shapes), results));
  ASSERT_TRUE(VerifyModule(*m).ok()) << VerifyModule(*m);
  const std::vector<Literal> args = {Values(t, n, 1), Values(t, n, 23), Values(PrimitiveType::Pred, n, 2)};
  auto want = Evaluate(*m, args);
  ASSERT_TRUE(want.ok()) << want.status();
  std::vector<std::string> names;
  for (Instruction* r : results) names.push_back(r->name() + " -> " + r->shape().ToString(false));
  CompileOptions o;
  o.cpu.levels = {"native"};
  o.cpu.flush_subnormals = false;
  auto got = RunModule(std::move(m), args, o, TestedBackend());
  ASSERT_TRUE(got.ok()) << got.status();
  for (size_t r = 0; r < names.size(); ++r) {
    const Literal &have = got->results[r], &wanted = want->elements()[r];
    const WorstElement e = CompareArrays(have, wanted).ulps;
    EXPECT_LE(e.value, bounds[r]) << names[r] << " at x = " << args[0].Get(e.element).re << "/"
                                  << args[0].Get(e.element).i << ", y = " << args[1].Get(e.element).re << "/"
                                  << args[1].Get(e.element).i << ": got " << ElementText(have, e.element) << ", want "
                                  << ElementText(wanted, e.element);
  }
  RecordProperty("operations", static_cast<int>(names.size()));
}

std::vector<PrimitiveType> ArrayTypes() {
  std::vector<PrimitiveType> out;
  for (int k = 0; k < 64; ++k)
    if (auto t = TypeFromProto(k); t && IsArrayType(*t)) out.push_back(*t);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Types, OpMatrix, testing::ValuesIn(ArrayTypes()),
                         [](const auto& i) { return std::string(TextOf(i.param)); });

}  // namespace
}  // namespace kiln
