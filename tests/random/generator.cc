#include "tests/random/generator.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "compiler/hlo/infer.h"
#include "tests/random/growth.h"

namespace kiln {
namespace {

constexpr PrimitiveType kTypes[] = {
    PrimitiveType::F32, PrimitiveType::F32, PrimitiveType::F32,    PrimitiveType::S32,      PrimitiveType::S32,
    PrimitiveType::F64, PrimitiveType::S8,  PrimitiveType::Pred,   PrimitiveType::BF16,     PrimitiveType::F16,
    PrimitiveType::U8,  PrimitiveType::S64, PrimitiveType::U32,    PrimitiveType::S16,      PrimitiveType::U16,
    PrimitiveType::U64, PrimitiveType::S4,  PrimitiveType::F8E5M2, PrimitiveType::F8E4M3FN, PrimitiveType::U4};

constexpr PrimitiveType kMoreTypes[] = {
    PrimitiveType::C64,        PrimitiveType::C64,        PrimitiveType::C64,    PrimitiveType::C64,
    PrimitiveType::C128,       PrimitiveType::F64,        PrimitiveType::F16,    PrimitiveType::BF16,
    PrimitiveType::U64,        PrimitiveType::S64,        PrimitiveType::S8,     PrimitiveType::F8E4M3B11FNUZ,
    PrimitiveType::F8E4M3FNUZ, PrimitiveType::F8E5M2FNUZ, PrimitiveType::F8E3M4, PrimitiveType::F8E4M3,
    PrimitiveType::F4E2M1FN,   PrimitiveType::S2,         PrimitiveType::U2};

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
  if (o.libraries || o.wide) add(LibraryMakers());
  if (o.wide)
    for (const auto& part :
         {TransformMakers(), LinearMakers(), ContractionMakers(), PlaceMakers(), SpecialMakers(), StateMakers()})
      add(part);
  return all;
}

}  // namespace

PrimitiveType Growth::AnyType() {
  if (options.wide && Chance(40)) return kMoreTypes[Pick(std::size(kMoreTypes))];
  return kTypes[Pick(std::size(kTypes))];
}

Ints Growth::AnyDims() {
  Ints dims(Pick(4));
  for (int64_t& d : dims) d = Chance(4) ? 0 : Chance(20) ? 1 : Between(2, 8);
  // One long dimension, or two.
  if (most > 600 && !dims.empty() && Chance(60)) {
    dims[Pick(dims.size())] = Chance(40) ? Between(1000, 5000) : Between(40, 300);
    if (dims.size() > 1 && Chance(40)) dims[Pick(dims.size())] = Between(20, 150);
    while (Product(dims) > most) dims[Pick(dims.size())] = Between(1, 4);
  }
  return dims;
}

std::optional<Expr> Inferred(Computation* c, Opcode op, const std::vector<Expr>& operands, const Attributes& attrs,
                             const std::optional<Shape>& given) {
  std::vector<Instruction*> in;
  for (const Expr& e : operands) in.push_back(e.get());
  Instruction* i = c->Add(op, given.value_or(Shape()), in);
  i->mutable_attrs() = attrs;
  const auto shape = given ? InferShape(*i) : InferOmittedShape(*i);
  if (!shape.ok()) {
    c->Remove(i);
    return std::nullopt;
  }
  i->mutable_shape() = *shape;
  return i;
}

Expr Growth::As(PrimitiveType t, Expr e) {
  return ConvertTo(t, Complex(e) && !IsComplex(t) ? Unary(Opcode::Real, e) : e);
}

Expr Growth::Tame(Expr e) {
  if (Complex(e)) {
    Instruction* i = e.computation()->Add(Opcode::Complex, Shape::Array(e.type(), e.shape().dims()),
                                          {Tame(Unary(Opcode::Real, e)).get(), Tame(Unary(Opcode::Imag, e)).get()});
    return i;
  }
  if (!Number(e)) return e;
  const bool two = InfoOf(e.type()).bits == 2;
  Expr low = e.Like(IsUnsigned(e.type()) ? 0 : two ? -2 : -4);
  Expr high = e.Like(!two ? 4 : IsUnsigned(e.type()) ? 3 : 1);
  return e.computation()->Add(Opcode::Clamp, Shape::Array(e.type(), e.shape().dims()),
                              {low.get(), e.get(), high.get()});
}

Expr Growth::Folded(Expr e) {
  if (Complex(e)) {
    Instruction* i = e.computation()->Add(Opcode::Complex, Shape::Array(e.type(), e.shape().dims()),
                                          {Folded(Unary(Opcode::Real, e)).get(), Folded(Unary(Opcode::Imag, e)).get()});
    return i;
  }
  if (!Arithmetic(e.type())) return Tame(e);
  return Binary(Opcode::Remainder, e, e.Like(5));
}

Expr Growth::Rounded(Expr e) {
  if (Complex(e)) {
    Instruction* i =
        e.computation()->Add(Opcode::Complex, Shape::Array(e.type(), e.shape().dims()),
                             {Rounded(Unary(Opcode::Real, e)).get(), Rounded(Unary(Opcode::Imag, e)).get()});
    return i;
  }
  return Folded(Unary(Opcode::RoundNearestEven, e + options.offset));
}

namespace {

// Values of all sizes in a fixed pattern, moved by a number of the program.
Expr Pattern(Growth& g, Computation* c, PrimitiveType t, const Ints& dims) {
  const PrimitiveType s32 = PrimitiveType::S32;
  Expr n = IotaOf(c, s32, {Product(dims)}, 0);
  Expr mixed = Binary(Opcode::Remainder, n * static_cast<double>(2 * g.Between(1, 20) + 1) + 3, n.Like(7)) - 3;
  return Growth::As(t, g.Tame(ReshapeTo(mixed, dims)));
}

}  // namespace

Expr Growth::Fit(Computation* c, PrimitiveType t, const Ints& dims) {
  for (int tries = 0; tries < 4; ++tries) {
    Expr e = Any();
    if (e.shape().dims() == dims) return As(t, Tame(e));
  }
  if (options.wide && c == module->entry() && c->parameters().size() < 10 && Chance(50)) {
    const auto number = static_cast<int64_t>(c->parameters().size());
    pool.emplace_back(c->AddParameter(number, Shape::Array(t, dims), absl::StrCat("x", number)));
    return Tame(pool.back());
  }
  if (options.wide && Product(dims) > 1 && Chance(60)) {
    // The elements of a larger value, in another form.
    for (int tries = 0; tries < 6; ++tries) {
      Expr e = Any();
      const int64_t n = e.shape().ElementCount(), want = Product(dims);
      if (n < want) continue;
      return As(t, Tame(ReshapeTo(SliceOf(ReshapeTo(e, {n}), {n - want}, {n}), dims)));
    }
    return Pattern(*this, c, t, dims);
  }
  for (size_t k = pool.size(); k-- > 0;)
    if (pool[k].shape().rank() == 0) return BroadcastTo(As(t, Tame(pool[k])), dims);
  return BroadcastTo(c->AddConstant(Literal::Of(t, t == PrimitiveType::Pred ? 1 : static_cast<double>(Pick(4)))), dims);
}

Expr Growth::Index(Computation* c) {
  for (int tries = 0; tries < 3; ++tries) {
    Expr e = Any();
    if (e.shape().rank() == 0 && Number(e)) return As(PrimitiveType::S32, Tame(e));
  }
  return IntegerIn(c, PrimitiveType::S32, Between(-3, 8));
}

Opcode Growth::Reducer(PrimitiveType t) {
  if (t == PrimitiveType::Pred) return Chance(50) ? Opcode::And : Opcode::Or;
  if (IsComplex(t)) return Opcode::Add;
  const Opcode ops[] = {Opcode::Add, Opcode::Maximum, Opcode::Minimum};
  // A narrow float rounds long sums, and may round them once or at every step.
  return ops[Narrow(t) ? 1 + Pick(2) : Pick(3)];
}

double Growth::Neutral(Opcode op, PrimitiveType t) {
  if (op == Opcode::And) return 1;
  const int bits = InfoOf(t).bits;
  const double highest = bits == 2 ? (IsUnsigned(t) ? 3 : 1) : bits < 8 ? 4 : Tiny(t) ? 8 : 100;
  if (op == Opcode::Maximum) return IsUnsigned(t) ? 0 : bits == 2 ? -2 : -highest;
  if (op == Opcode::Minimum) return highest;
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
    const Expr x = Any();
    if (Complex(x) && !makers[m].complex) continue;
    const std::optional<Expr> e = makers[m].make(*this, c, x);
    if (e && e->shape().rank() <= 5 && e->shape().ElementCount() <= most) pool.push_back(*e);
  }
}

namespace {

void Share(Growth& g, Computation* c, const std::vector<Instruction*>& results) {
  std::vector<bool> taken(c->parameters().size());
  for (size_t r = 0; r < (g.options.wide ? results.size() : 1); ++r)
    for (size_t p = 0; p < taken.size(); ++p) {
      const auto number = static_cast<int64_t>(p);
      if (taken[p] || !results[r]->shape().IsArray() || c->parameter(number)->shape() != results[r]->shape()) continue;
      taken[p] = true;
      g.module->aliases.push_back({{static_cast<int64_t>(r)}, number, {}, g.Chance(50)});
      break;
    }
  if (!g.options.wide) return;
  for (size_t p = 0; p < taken.size(); ++p)
    if (!taken[p] && g.Chance(15)) g.module->buffer_donors.push_back({static_cast<int64_t>(p), {}});
}

// Arguments and results in any order of dimensions; what shares memory has one.
void LayOut(Growth& g, const Computation* c) {
  EntryLayout layout;
  const auto order = [&](Shape* s) {
    Ints minor_to_major = Layout::Descending(s->rank()).minor_to_major;
    if (g.Chance(60)) absl::c_shuffle(minor_to_major, g.rng);
    s->set_layout(Layout{minor_to_major});
  };
  for (const Instruction* p : c->parameters()) {
    layout.parameters.push_back(p->shape());
    order(&layout.parameters.back());
  }
  layout.result = c->root()->shape();
  for (Shape& s : layout.result.mutable_tuple()) {
    if (s.IsArray())
      order(&s);
    else
      for (Shape& inner : s.mutable_tuple()) order(&inner);
  }
  for (const AliasEntry& a : g.module->aliases)
    layout.result.mutable_tuple()[static_cast<size_t>(a.output[0])] =
        layout.parameters[static_cast<size_t>(a.parameter)];
  g.module->entry_layout = layout;
}

}  // namespace

std::unique_ptr<Module> RandomModule(uint64_t seed, const RandomOptions& options) {
  auto m = std::make_unique<Module>("random");
  m->replica_count = options.devices;
  Growth g(seed, options, m.get());
  if (options.wide && g.Chance(15)) g.most = 20000;
  Computation* c = m->AddComputation("main");
  m->set_entry(c);
  const int64_t arguments = g.Between(1, 4);
  for (int64_t k = 0; k < arguments; ++k)
    g.pool.emplace_back(c->AddParameter(k, Shape::Array(g.AnyType(), g.AnyDims()), absl::StrCat("x", k)));
  g.Grow(c, 4 + g.Pick(28));
  std::vector<Expr> results;
  const int64_t count = g.Between(1, options.wide ? 5 : 3);
  for (int64_t k = 0; k < count; ++k)
    results.push_back(g.pool[g.pool.size() - 1 - g.Pick(std::min<size_t>(g.pool.size(), options.wide ? 10 : 6))]);
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
  if (g.Chance(50) && !options.portable) Share(g, c, parts);
  if (options.wide && !options.portable && g.Chance(25)) LayOut(g, c);
  return m;
}

}  // namespace kiln
