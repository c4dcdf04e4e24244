#include "tests/random/generator.h"

#include <algorithm>

#include "tests/random/growth.h"

namespace kiln {
namespace {

constexpr PrimitiveType kTypes[] = {
    PrimitiveType::F32, PrimitiveType::F32, PrimitiveType::F32,    PrimitiveType::S32,      PrimitiveType::S32,
    PrimitiveType::F64, PrimitiveType::S8,  PrimitiveType::Pred,   PrimitiveType::BF16,     PrimitiveType::F16,
    PrimitiveType::U8,  PrimitiveType::S64, PrimitiveType::U32,    PrimitiveType::S16,      PrimitiveType::U16,
    PrimitiveType::U64, PrimitiveType::S4,  PrimitiveType::F8E5M2, PrimitiveType::F8E4M3FN, PrimitiveType::U4};

std::vector<Maker> Makers(const RandomOptions& o) {
  std::vector<Maker> all;
  auto add = [&](std::vector<Maker> part) { all.insert(all.end(), part.begin(), part.end()); };
  add(ElementwiseMakers());
  add(MovementMakers());
  add(IndexingMakers());
  add(ReductionMakers());
  add(ControlMakers());
  if (o.dynamic) add(DynamicMakers());
  if (o.devices > 1) add(CollectiveMakers());
  if (o.libraries) add(LibraryMakers());
  return all;
}

}  // namespace

PrimitiveType Growth::AnyType() { return kTypes[Pick(std::size(kTypes))]; }

Ints Growth::AnyDims() {
  Ints dims(Pick(4));
  for (int64_t& d : dims) d = Chance(4) ? 0 : Chance(20) ? 1 : Between(2, 8);
  return dims;
}

Expr Growth::Tame(Expr e) {
  if (!Number(e)) return e;
  Expr low = e.Like(IsUnsigned(e.type()) ? 0 : -4), high = e.Like(4);
  return e.computation()->Add(Opcode::Clamp, Shape::Array(e.type(), e.shape().dims()),
                              {low.get(), e.get(), high.get()});
}

Expr Growth::Fit(Computation* c, PrimitiveType t, const Ints& dims) {
  for (int tries = 0; tries < 4; ++tries) {
    Expr e = Any();
    if (e.shape().dims() == dims) return ConvertTo(t, Tame(e));
  }
  for (size_t k = pool.size(); k-- > 0;)
    if (pool[k].shape().rank() == 0) return BroadcastTo(ConvertTo(t, Tame(pool[k])), dims);
  return BroadcastTo(c->AddConstant(Literal::Of(t, t == PrimitiveType::Pred ? 1 : static_cast<double>(Pick(4)))), dims);
}

Expr Growth::Index(Computation* c) {
  for (int tries = 0; tries < 3; ++tries) {
    Expr e = Any();
    if (e.shape().rank() == 0 && Number(e)) return ConvertTo(PrimitiveType::S32, Tame(e));
  }
  return IntegerIn(c, PrimitiveType::S32, Between(-3, 8));
}

Opcode Growth::Reducer(PrimitiveType t) {
  if (t == PrimitiveType::Pred) return Chance(50) ? Opcode::And : Opcode::Or;
  const Opcode ops[] = {Opcode::Add, Opcode::Maximum, Opcode::Minimum};
  // A narrow float rounds long sums, and may round them once or at every step.
  return ops[Narrow(t) ? 1 + Pick(2) : Pick(3)];
}

double Growth::Neutral(Opcode op, PrimitiveType t) {
  if (op == Opcode::And) return 1;
  const double most = InfoOf(t).bits < 8 ? 4 : 100;
  if (op == Opcode::Maximum) return IsUnsigned(t) ? 0 : -most;
  if (op == Opcode::Minimum) return most;
  return 0;
}

void Growth::Grow(Computation* c, uint64_t steps) {
  const std::vector<Maker> makers = Makers(options);
  int total = 0;
  for (const Maker& m : makers) total += m.weight;
  for (uint64_t k = 0; k < steps; ++k) {
    int at = static_cast<int>(Pick(static_cast<uint64_t>(total)));
    size_t m = 0;
    while (at >= makers[m].weight) at -= makers[m++].weight;
    const std::optional<Expr> e = makers[m].make(*this, c, Any());
    if (e && e->shape().rank() <= 5 && e->shape().ElementCount() <= kMostElements) pool.push_back(*e);
  }
}

std::unique_ptr<Module> RandomModule(uint64_t seed, const RandomOptions& options) {
  auto m = std::make_unique<Module>("random");
  m->replica_count = options.devices;
  Growth g(seed, options, m.get());
  Computation* c = m->AddComputation("main");
  m->set_entry(c);
  const int64_t arguments = g.Between(1, 4);
  for (int64_t k = 0; k < arguments; ++k)
    g.pool.emplace_back(c->AddParameter(k, Shape::Array(g.AnyType(), g.AnyDims()), absl::StrCat("x", k)));
  g.Grow(c, 4 + g.Pick(28));
  std::vector<Expr> results;
  const int64_t count = g.Between(1, 3);
  for (int64_t k = 0; k < count; ++k)
    results.push_back(g.pool[g.pool.size() - 1 - g.Pick(std::min<size_t>(g.pool.size(), 6))]);
  std::vector<Instruction*> parts;
  std::vector<Shape> shapes;
  for (const Expr& e : results) {
    parts.push_back(e.get());
    shapes.push_back(e.shape());
  }
  // Results that are tuples of tuples, sometimes.
  if (g.Chance(20)) {
    Instruction* inner = c->Add(Opcode::Tuple, Shape::Tuple(shapes), parts);
    parts = {inner, results[0].get()};
    shapes = {inner->shape(), results[0].shape()};
  }
  c->set_root(c->Add(Opcode::Tuple, Shape::Tuple(shapes), parts));
  // An argument that a result of its shape may overwrite. XLA loses the tuple around a single result, and the place.
  if (g.Chance(50) && !options.portable)
    for (int64_t p = 0; p < arguments; ++p)
      if (parts[0]->shape().IsArray() && c->parameter(p)->shape() == parts[0]->shape()) {
        m->aliases.push_back({{0}, p, {}, g.Chance(50)});
        break;
      }
  return m;
}

}  // namespace kiln
