#include "tests/random/generator.h"

#include <algorithm>
#include <random>

#include "compiler/hlo/graph_builder.h"

namespace kiln {
namespace {

constexpr PrimitiveType kTypes[] = {PrimitiveType::F32, PrimitiveType::F32,  PrimitiveType::S32, PrimitiveType::Pred,
                                    PrimitiveType::F64, PrimitiveType::BF16, PrimitiveType::F16, PrimitiveType::S8,
                                    PrimitiveType::U8,  PrimitiveType::S64,  PrimitiveType::U32, PrimitiveType::S16};
constexpr int64_t kMostElements = 600;

class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed), m_(std::make_unique<Module>("random")) {}

  std::unique_ptr<Module> Run() {
    Computation* c = m_->AddComputation("main");
    m_->set_entry(c);
    const int64_t arguments = 1 + Pick(4);
    for (int64_t k = 0; k < arguments; ++k)
      pool_.emplace_back(c->AddParameter(k, Shape::Array(AnyType(), AnyDims()), absl::StrCat("x", k)));
    Grow(c, 4 + Pick(28), 0);
    std::vector<Instruction*> results;
    std::vector<Shape> shapes;
    for (int64_t k = 0; k < 1 + static_cast<int64_t>(Pick(3)); ++k) {
      results.push_back(pool_[pool_.size() - 1 - Pick(std::min<size_t>(pool_.size(), 6))].get());
      shapes.push_back(results.back()->shape());
    }
    c->set_root(c->Add(Opcode::Tuple, Shape::Tuple(shapes), results));
    return std::move(m_);
  }

 private:
  uint64_t Pick(uint64_t n) { return rng_() % n; }
  bool Chance(int percent) { return Pick(100) < static_cast<uint64_t>(percent); }
  PrimitiveType AnyType() { return kTypes[Pick(std::size(kTypes))]; }
  Ints AnyDims() {
    Ints dims(Pick(4));
    for (int64_t& d : dims) d = Chance(4) ? 0 : Chance(20) ? 1 : 2 + static_cast<int64_t>(Pick(7));
    return dims;
  }
  Expr Any() { return pool_[Pick(pool_.size())]; }
  static bool Number(Expr e) { return e.type() != PrimitiveType::Pred; }
  static bool Narrow(Expr e) { return IsFloat(e.type()) && InfoOf(e.type()).bits < 32; }

  // Values stay small integers, so that sums and products are exact in every type.
  Expr Tame(Expr e) {
    if (!Number(e)) return e;
    Expr low = e.Like(IsUnsigned(e.type()) ? 0 : -4), high = e.Like(4);
    return e.computation()->Add(Opcode::Clamp, Shape::Array(e.type(), e.shape().dims()),
                                {low.get(), e.get(), high.get()});
  }

  // Some value of the given type and extents.
  Expr Fit(Computation* c, PrimitiveType t, const Ints& dims) {
    for (int tries = 0; tries < 4; ++tries) {
      Expr e = Any();
      if (e.shape().dims() == dims) return ConvertTo(t, Tame(e));
    }
    for (size_t k = pool_.size(); k-- > 0;)
      if (pool_[k].shape().rank() == 0) return BroadcastTo(ConvertTo(t, Tame(pool_[k])), dims);
    return BroadcastTo(c->AddConstant(Literal::Of(t, t == PrimitiveType::Pred ? 1 : static_cast<double>(Pick(4)))),
                       dims);
  }

  Expr Index(Computation* c) {
    for (int tries = 0; tries < 3; ++tries) {
      Expr e = Any();
      if (e.shape().rank() == 0 && Number(e)) return ConvertTo(PrimitiveType::S32, Tame(e));
    }
    return IntegerIn(c, PrimitiveType::S32, static_cast<int64_t>(Pick(12)) - 3);
  }

  Opcode Reducer(Expr e) {
    if (!Number(e)) return Chance(50) ? Opcode::And : Opcode::Or;
    const Opcode ops[] = {Opcode::Add, Opcode::Maximum, Opcode::Minimum};
    // A narrow float rounds long sums, and may round them once or at every step.
    return ops[Narrow(e) ? 1 + Pick(2) : Pick(3)];
  }
  double Neutral(Opcode op, PrimitiveType t) {
    if (op == Opcode::And) return 1;
    if (op == Opcode::Maximum) return IsUnsigned(t) ? 0 : -100;
    if (op == Opcode::Minimum) return 100;
    return 0;
  }

  Expr Step(Computation* c, int depth) {
    Expr x = Any();
    const Ints dims = x.shape().dims();
    const int64_t rank = x.shape().rank();
    switch (Pick(20)) {
      case 0:
      case 1: {
        if (!Number(x)) {
          const Opcode ops[] = {Opcode::And, Opcode::Or, Opcode::Xor};
          return Binary(ops[Pick(3)], x, Fit(c, x.type(), dims));
        }
        const Opcode ops[] = {Opcode::Add, Opcode::Subtract, Opcode::Multiply, Opcode::Maximum, Opcode::Minimum};
        return Tame(Binary(ops[Pick(5)], Tame(x), Fit(c, x.type(), dims)));
      }
      case 2: {
        if (!Number(x)) return Unary(Opcode::Not, x);
        if (IsFloat(x.type())) {
          const Opcode ops[] = {Opcode::Negate, Opcode::Abs, Opcode::Floor, Opcode::Ceil, Opcode::Sign, Opcode::Sqrt};
          const Opcode op = ops[Pick(6)];
          return op == Opcode::Sqrt ? Unary(Opcode::Floor, Unary(op, Unary(Opcode::Abs, Tame(x)))) : Unary(op, x);
        }
        const Opcode ops[] = {Opcode::Negate, Opcode::Abs,  Opcode::Not,
                              Opcode::Popcnt, Opcode::Sign, Opcode::CountLeadingZeros};
        return Unary(ops[Pick(6)], x);
      }
      case 3: {
        const char* directions[] = {"LT", "LE", "GT", "GE", "EQ", "NE"};
        return CompareExpr(directions[Pick(6)], x, Fit(c, x.type(), dims));
      }
      case 4:
        return SelectExpr(Fit(c, PrimitiveType::Pred, dims), x, Fit(c, x.type(), dims));
      case 5:
        return ConvertTo(AnyType(), Tame(x));
      case 6: {  // broadcast along new dimensions
        Ints out = AnyDims(), map;
        if (Product(out) == 0 && Product(dims) != 0) out.clear();
        Ints result;
        size_t next = 0;
        for (int64_t d = 0; d < rank; ++d) {
          while (next < out.size() && Chance(50)) result.push_back(out[next++]);
          map.push_back(static_cast<int64_t>(result.size()));
          result.push_back(dims[d]);
        }
        while (next < out.size()) result.push_back(out[next++]);
        return Product(result) > kMostElements ? x : BroadcastTo(x, result, map);
      }
      case 7: {
        Ints order(rank);
        for (int64_t d = 0; d < rank; ++d) order[d] = d;
        std::shuffle(order.begin(), order.end(), rng_);
        return TransposeBy(x, order);
      }
      case 8: {  // reshape: merge neighbours, or split a dimension
        Ints out = dims;
        if (rank >= 2 && Chance(60)) {
          const size_t d = Pick(rank - 1);
          out[d] *= out[d + 1];
          out.erase(out.begin() + static_cast<int64_t>(d) + 1);
        } else {
          const size_t d = Pick(rank + 1);
          if (d < static_cast<size_t>(rank) && out[d] > 0 && out[d] % 2 == 0) {
            out[d] /= 2;
            out.insert(out.begin() + static_cast<int64_t>(d), 2);
          } else {
            out.insert(out.begin() + static_cast<int64_t>(d), 1);
          }
        }
        return ReshapeTo(x, out);
      }
      case 9: {
        attr::Slices r;
        Ints out;
        for (int64_t d : dims) {
          const int64_t start = d ? static_cast<int64_t>(Pick(d)) : 0,
                        limit = start + (d ? 1 + static_cast<int64_t>(Pick(d - start)) : 0),
                        stride = 1 + static_cast<int64_t>(Pick(3));
          r.push_back({start, limit, stride});
          out.push_back((limit - start + stride - 1) / stride);
        }
        Instruction* i = c->Add(Opcode::Slice, Shape::Array(x.type(), out), {x.get()});
        i->attrs().slice = r;
        return i;
      }
      case 10: {
        attr::Padding p;
        Ints out;
        for (int64_t d : dims) {
          PadDim q{static_cast<int64_t>(Pick(4)) - 1, static_cast<int64_t>(Pick(4)) - 1, static_cast<int64_t>(Pick(2))};
          p.push_back(q);
          out.push_back(std::max<int64_t>(0, d + std::max<int64_t>(d - 1, 0) * q.interior + q.low + q.high));
        }
        if (Product(out) > kMostElements) return x;
        Instruction* i = c->Add(Opcode::Pad, Shape::Array(x.type(), out), {x.get(), Fit(c, x.type(), {}).get()});
        i->attrs().padding = p;
        return i;
      }
      case 11: {
        if (rank == 0 || 2 * Product(dims) > kMostElements) return x;
        return ConcatOf({x, Fit(c, x.type(), dims)}, static_cast<int64_t>(Pick(rank)));
      }
      case 12: {
        if (rank == 0) return x;
        Instruction* i = c->Add(Opcode::Reverse, Shape::Array(x.type(), dims), {x.get()});
        i->attrs().dimensions = Ints{static_cast<int64_t>(Pick(rank))};
        return i;
      }
      case 13:
      case 14: {
        if (rank == 0) return x;
        Ints reduced;
        for (int64_t d = 0; d < rank; ++d)
          if (Chance(50)) reduced.push_back(d);
        const Opcode op = Reducer(x);
        Expr init = c->AddConstant(Literal::Of(x.type(), Neutral(op, x.type())));
        return Tame(ReduceOf(Tame(x), init, reduced, ScalarFunction(m_.get(), op, x.type())));
      }
      case 15: {  // [m, k] x [k, n]
        const PrimitiveType t = Number(x) && !Narrow(x) && InfoOf(x.type()).bits >= 32 ? x.type() : PrimitiveType::F32;
        const int64_t m = 1 + static_cast<int64_t>(Pick(9)), k = 1 + static_cast<int64_t>(Pick(9)),
                      n = 1 + static_cast<int64_t>(Pick(20));
        return Tame(DotOf(Fit(c, t, {m, k}), Fit(c, t, {k, n}), 0, 1, 0));
      }
      case 16: {
        if (rank == 0) return x;
        std::vector<Expr> starts;
        Ints sizes;
        for (int64_t d : dims) {
          starts.push_back(Index(c));
          sizes.push_back(d ? 1 + static_cast<int64_t>(Pick(d)) : 0);
        }
        if (Chance(50)) return DynamicSliceOf(x, starts, sizes);
        return UpdateOf(x, Fit(c, x.type(), sizes), starts);
      }
      case 17: {
        if (rank == 0 || !Number(x)) return x;
        Instruction* i = c->Add(Opcode::Sort, Shape::Array(x.type(), dims), {Tame(x).get()});
        Computation* less = m_->AddComputation("less");
        Expr a = less->AddParameter(0, Shape::Scalar(x.type()), "a"),
             b = less->AddParameter(1, Shape::Scalar(x.type()), "b");
        less->set_root(CompareExpr(Chance(50) ? "LT" : "GT", a, b).get());
        i->attrs().dimensions = Ints{static_cast<int64_t>(Pick(rank))};
        i->attrs().to_apply = less;
        return Tame(i);  // the sign of a zero is not ordered
      }
      case 18: {
        if (depth >= 2) return x;
        // A loop whose body is random over its carried values.
        std::vector<Expr> init = {Tame(x), Tame(Any())};
        const std::vector<Expr> outer = std::move(pool_);
        std::vector<Expr> result =
            LoopOf(c, static_cast<int64_t>(Pick(4)), init, [&](Expr at, const std::vector<Expr>& v) {
              pool_ = v;
              pool_.push_back(at);
              Grow(at.computation(), 2 + Pick(6), depth + 1);
              std::vector<Expr> next;
              for (const Expr& e : v) next.push_back(Fit(at.computation(), e.type(), e.shape().dims()));
              return next;
            });
        pool_ = outer;
        return result[Pick(2)];
      }
      default: {
        if (depth >= 2) return x;
        Expr other = Any();
        Expr flag = Fit(c, PrimitiveType::Pred, {});
        const std::vector<Expr> outer = std::move(pool_);
        std::vector<Instruction*> operands = {flag.get()};
        std::vector<Computation*> branches;
        for (int k = 0; k < 2; ++k) {
          Instruction* argument =
              c->Add(Opcode::Tuple, Shape::Tuple({x.shape(), other.shape()}), {x.get(), other.get()});
          operands.push_back(argument);
          Computation* branch = m_->AddComputation("branch");
          Instruction* p = branch->AddParameter(0, argument->shape(), "both");
          pool_.clear();
          for (int64_t e = 0; e < 2; ++e) {
            Instruction* g = branch->Add(Opcode::GetTupleElement, argument->shape().tuple()[e], {p});
            g->attrs().tuple_index = e;
            pool_.emplace_back(g);
          }
          Grow(branch, 1 + Pick(5), depth + 1);
          branch->set_root(Fit(branch, x.type(), dims).get());
          branches.push_back(branch);
        }
        pool_ = outer;
        Instruction* i = c->Add(Opcode::Conditional, Shape::Array(x.type(), dims), operands);
        i->attrs().true_computation = branches[0];
        i->attrs().false_computation = branches[1];
        return i;
      }
    }
  }

  void Grow(Computation* c, uint64_t steps, int depth) {
    for (uint64_t k = 0; k < steps; ++k) {
      Expr e = Step(c, depth);
      if (e.shape().rank() <= 5 && e.shape().ElementCount() <= kMostElements) pool_.push_back(e);
    }
  }

  std::mt19937_64 rng_;
  std::unique_ptr<Module> m_;
  std::vector<Expr> pool_;
};

}  // namespace

std::unique_ptr<Module> RandomModule(uint64_t seed) { return Generator(seed).Run(); }

}  // namespace kiln
