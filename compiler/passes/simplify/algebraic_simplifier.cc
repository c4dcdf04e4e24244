// Local algebra over one instruction and its operands.
//
// Keeps: shapes, types and every result bit for bit, NaN, infinities and signed zeros included, with these exceptions:
//   power(x, 2) and power(x, 3) are products, as in XLA: the cube is rounded twice and may differ in its last bit;
//   a sum of one element may be -0 where HLO's order of addition allows +0.
// Source: HLO semantics; XLA's AlgebraicSimplifier.
#include <algorithm>
#include <cmath>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

// The scalar behind a constant or a broadcast of one; nullptr otherwise.
const Literal* SplatOf(const Instruction* i) {
  while (i->Is(Opcode::Broadcast) || i->Is(Opcode::Reshape) || i->Is(Opcode::Bitcast) || i->Is(Opcode::Copy))
    i = i->operand(0);
  if (!i->Is(Opcode::Constant) || !i->shape().IsArray() || i->literal().size() == 0) return nullptr;
  return i->shape().ElementCount() == 1 || (i->shape().ElementCount() <= 4096 && i->literal().IsSplat()) ? &i->literal()
                                                                                                         : nullptr;
}
bool IsAll(const Instruction* i, double v) {
  const Literal* l = SplatOf(i);
  if (!l) return false;
  const Element e = l->Get(0);
  if (IsFloat(l->type()) || IsComplex(l->type()))
    return e.re == v && e.im == 0 && std::signbit(e.re) == std::signbit(v);
  return e.i == static_cast<int64_t>(v) && v == std::floor(v);
}

bool IdentityPermutation(const Ints& p) {
  for (size_t k = 0; k < p.size(); ++k)
    if (p[k] != static_cast<int64_t>(k)) return false;
  return true;
}

// The new value of `i`, or nullptr if no rule fires.
Instruction* Simplify(Instruction* i) {
  Computation* c = i->parent();
  auto x = [&](int k) { return i->operand(k); };
  const PrimitiveType t = i->shape().IsArray() ? i->shape().type() : PrimitiveType::Tuple;
  const bool integral = IsIntegral(t) || t == PrimitiveType::Pred;
  switch (i->opcode()) {
    case Opcode::Add:
      if (IsAll(x(0), 0) && integral) return x(1);
      if (IsAll(x(1), 0) && integral) return x(0);
      if (IsAll(x(1), -0.0) && IsFloat(t)) return x(0);  // x + -0 is x for every x
      if (IsAll(x(0), -0.0) && IsFloat(t)) return x(1);
      break;
    case Opcode::Subtract:
      if (IsAll(x(1), 0) && (integral || IsFloat(t))) return x(0);  // x - +0 is x for every x
      break;
    case Opcode::Multiply:
      if (IsAll(x(0), 1) && !IsComplex(t)) return x(1);
      if (IsAll(x(1), 1) && !IsComplex(t)) return x(0);
      break;
    case Opcode::Divide: {
      if (IsAll(x(1), 1) && !IsComplex(t)) return x(0);
      // Division by a power of two is exact as a multiplication.
      const Literal* l = SplatOf(x(1));
      if (l && (t == PrimitiveType::F32 || t == PrimitiveType::F64)) {
        int e;
        const double v = l->Get(0).re;
        if (std::isfinite(v) && v != 0 && std::fabs(std::frexp(v, &e)) == 0.5 && std::abs(e) < 100)
          return (Expr(x(0)) * (1 / v)).get();
      }
      break;
    }
    case Opcode::Power: {
      const Literal* l = SplatOf(x(1));
      if (l && IsFloat(t)) {
        const double e = l->Get(0).re;
        if (e == 2) return (Expr(x(0)) * Expr(x(0))).get();
        if (e == 1) return x(0);
        if (e == 3) return (Expr(x(0)) * Expr(x(0)) * Expr(x(0))).get();
      }
      break;
    }
    case Opcode::Maximum:
    case Opcode::Minimum: {
      // max(-inf, x) is x, NaN included.
      const double identity = i->Is(Opcode::Maximum) ? -INFINITY : INFINITY;
      if (IsFloat(t) && IsAll(x(0), identity)) return x(1);
      if (IsFloat(t) && IsAll(x(1), identity)) return x(0);
      if (x(0) == x(1)) return x(0);
      break;
    }
    case Opcode::And:
      if (t == PrimitiveType::Pred && IsAll(x(0), 1)) return x(1);
      if (t == PrimitiveType::Pred && IsAll(x(1), 1)) return x(0);
      break;
    case Opcode::Or:
    case Opcode::Xor:
      if (IsAll(x(0), 0)) return x(1);
      if (IsAll(x(1), 0)) return x(0);
      break;
    case Opcode::Not:
    case Opcode::Negate:
      if (x(0)->opcode() == i->opcode()) return x(0)->operand(0);
      break;
    case Opcode::Select:
      if (x(1) == x(2)) return x(1);
      if (const Literal* p = SplatOf(x(0))) return p->Get(0).i ? x(1) : x(2);
      break;
    case Opcode::Convert:
      if (x(0)->shape().type() == t) return x(0);
      // Integers that already fit need no widening twice.
      if (x(0)->Is(Opcode::Convert) && IsFloat(t) && IsFloat(x(0)->shape().type()) &&
          IsFloat(x(0)->operand(0)->shape().type())) {
        const TypeInfo &a = InfoOf(x(0)->operand(0)->shape().type()), &b = InfoOf(x(0)->shape().type());
        if (b.exponent_bits >= a.exponent_bits && b.mantissa_bits >= a.mantissa_bits && b.flavour == FloatFlavour::Ieee)
          return ConvertTo(t, x(0)->operand(0)).get();  // the first step lost nothing
      }
      break;
    case Opcode::Real:
      if (x(0)->Is(Opcode::Complex)) return x(0)->operand(0);
      break;
    case Opcode::Imag:
      if (x(0)->Is(Opcode::Complex)) return x(0)->operand(1);
      break;
    case Opcode::Copy:
      if (x(0)->Is(Opcode::Copy) && i->shape() == x(0)->shape()) return x(0);
      break;
    case Opcode::Broadcast: {
      const Ints& map = *i->attrs().dimensions;
      if (i->shape().dims() == x(0)->shape().dims() && IdentityPermutation(map)) return x(0);
      if (x(0)->Is(Opcode::Iota) && x(0)->shape().rank() > 0)
        return IotaOf(c, t, i->shape().dims(), map[static_cast<size_t>(*x(0)->attrs().iota_dimension)]).get();
      if (x(0)->Is(Opcode::Broadcast)) {
        Ints composed;
        for (int64_t d : *x(0)->attrs().dimensions) composed.push_back(map[d]);
        return BroadcastTo(x(0)->operand(0), i->shape().dims(), composed).get();
      }
      if (i->shape().ElementCount() == x(0)->shape().ElementCount() && std::is_sorted(map.begin(), map.end()))
        return ReshapeTo(x(0), i->shape().dims()).get();
      // Dropping extents 1 from the operand exposes scalars and vectors.
      Ints kept, kept_map;
      for (size_t k = 0; k < map.size(); ++k)
        if (x(0)->shape().dim(k) != 1) {
          kept.push_back(x(0)->shape().dim(k));
          kept_map.push_back(map[k]);
        }
      if (kept.size() != map.size()) return BroadcastTo(ReshapeTo(x(0), kept), i->shape().dims(), kept_map).get();
      break;
    }
    case Opcode::Reshape: {
      if (i->shape().dims() == x(0)->shape().dims()) return x(0);
      if (x(0)->Is(Opcode::Reshape)) return ReshapeTo(x(0)->operand(0), i->shape().dims()).get();
      if (x(0)->Is(Opcode::Broadcast) && x(0)->operand(0)->shape().ElementCount() == 1)
        return BroadcastTo(ReshapeTo(x(0)->operand(0), {}), i->shape().dims()).get();
      if (x(0)->Is(Opcode::Constant) && x(0)->users().size() == 1)
        return c->AddConstant(x(0)->literal().Reshaped(i->shape()));
      if (x(0)->Is(Opcode::Iota) && i->shape().rank() > 0) {
        // An iota that only gains or loses extents 1 stays an iota.
        Ints from, to;
        int64_t from_pos = -1, to_dim = -1, pos = 0;
        for (int64_t d = 0; d < x(0)->shape().rank(); ++d)
          if (x(0)->shape().dim(d) != 1) {
            if (d == *x(0)->attrs().iota_dimension) from_pos = static_cast<int64_t>(from.size());
            from.push_back(x(0)->shape().dim(d));
          }
        for (int64_t d = 0; d < i->shape().rank(); ++d)
          if (i->shape().dim(d) != 1) {
            if (pos++ == from_pos) to_dim = d;
            to.push_back(i->shape().dim(d));
          }
        if (from == to && to_dim >= 0) return IotaOf(c, t, i->shape().dims(), to_dim).get();
      }
      break;
    }
    case Opcode::Transpose: {
      const Ints& p = *i->attrs().dimensions;
      if (IdentityPermutation(p)) return x(0);
      if (x(0)->Is(Opcode::Transpose)) {
        Ints q;
        for (int64_t d : p) q.push_back((*x(0)->attrs().dimensions)[d]);
        return TransposeBy(x(0)->operand(0), q).get();
      }
      // Moving only extents 1 is a reshape.
      Ints moved;
      for (int64_t d : p)
        if (x(0)->shape().dim(d) != 1) moved.push_back(d);
      if (std::is_sorted(moved.begin(), moved.end())) return ReshapeTo(x(0), i->shape().dims()).get();
      if (x(0)->Is(Opcode::Broadcast)) {
        Ints map;
        for (int64_t d : *x(0)->attrs().dimensions) map.push_back(std::find(p.begin(), p.end(), d) - p.begin());
        return BroadcastTo(x(0)->operand(0), i->shape().dims(), map).get();
      }
      break;
    }
    case Opcode::Slice: {
      if (i->shape().dims() == x(0)->shape().dims()) return x(0);
      if (x(0)->Is(Opcode::Slice) && i->shape().ElementCount() > 0) {
        attr::Slices s = *i->attrs().slice;
        for (size_t d = 0; d < s.size(); ++d) {
          const SliceDim& in = (*x(0)->attrs().slice)[d];
          const int64_t n = i->shape().dim(d);
          s[d].start = in.start + s[d].start * in.stride;
          s[d].stride *= in.stride;
          s[d].limit = n == 0 ? s[d].start : s[d].start + (n - 1) * s[d].stride + 1;
        }
        Instruction* n = c->Add(Opcode::Slice, i->shape(), {x(0)->operand(0)});
        n->mutable_attrs().slice = s;
        return n;
      }
      if (x(0)->Is(Opcode::Broadcast) && SplatOf(x(0)))
        return BroadcastTo(ReshapeTo(x(0)->operand(0), {}), i->shape().dims()).get();
      if (x(0)->Is(Opcode::Concatenate)) {
        // A slice inside one operand.
        const int64_t d = (*x(0)->attrs().dimensions)[0];
        int64_t base = 0;
        for (Instruction* part : x(0)->operands()) {
          const int64_t n = part->shape().dim(d);
          const SliceDim& s = (*i->attrs().slice)[d];
          if (s.start >= base && s.limit <= base + n) {
            attr::Slices moved = *i->attrs().slice;
            moved[d].start -= base;
            moved[d].limit -= base;
            Instruction* r = c->Add(Opcode::Slice, i->shape(), {part});
            r->mutable_attrs().slice = moved;
            return r;
          }
          base += n;
        }
      }
      break;
    }
    case Opcode::Pad: {
      bool none = true;
      for (const PadDim& p : *i->attrs().padding) none = none && p == PadDim{};
      if (none) return x(0);
      break;
    }
    case Opcode::Concatenate: {
      if (i->operand_count() == 1) return x(0);
      const int64_t d = (*i->attrs().dimensions)[0];
      std::vector<Instruction*> kept;
      for (Instruction* o : i->operands())
        if (o->shape().dim(d) != 0) kept.push_back(o);
      if (!kept.empty() && kept.size() < i->operands().size()) {
        if (kept.size() == 1) return kept[0];
        Instruction* n = c->Add(Opcode::Concatenate, i->shape(), kept);
        n->mutable_attrs().dimensions = i->attrs().dimensions;
        return n;
      }
      break;
    }
    case Opcode::Reverse: {
      Ints real;
      for (int64_t d : *i->attrs().dimensions)
        if (x(0)->shape().dim(d) != 1) real.push_back(d);
      if (real.empty()) return x(0);
      break;
    }
    case Opcode::DynamicSlice:
      if (i->shape().dims() == x(0)->shape().dims()) return x(0);
      break;
    case Opcode::DynamicUpdateSlice:
      if (x(1)->shape().dims() == i->shape().dims()) return x(1);
      break;
    case Opcode::Reduce: {
      // Reducing extents 1 under add, with its identity: a reshape.
      if (i->operand_count() != 2 || i->shape().IsTuple()) break;
      for (int64_t d : *i->attrs().dimensions)
        if (x(0)->shape().dim(d) != 1) return nullptr;
      const Instruction* r = (*i->attrs().to_apply)->root();
      if (r->operand_count() == 2 && r->operand(0)->Is(Opcode::Parameter) && r->operand(1)->Is(Opcode::Parameter) &&
          r->operand(0) != r->operand(1)) {
        const bool identity = (r->Is(Opcode::Maximum) && IsFloat(t) && IsAll(x(1), -INFINITY)) ||
                              (r->Is(Opcode::Minimum) && IsFloat(t) && IsAll(x(1), INFINITY)) ||
                              (r->Is(Opcode::Multiply) && IsAll(x(1), 1)) || (r->Is(Opcode::Add) && IsAll(x(1), 0)) ||
                              (r->Is(Opcode::And) && t == PrimitiveType::Pred && IsAll(x(1), 1)) ||
                              (r->Is(Opcode::Or) && IsAll(x(1), 0));
        // 0 + -0 is +0: the sum of one element may turn a negative zero positive, which HLO's free association allows
        // either way.
        if (identity) return ReshapeTo(x(0), i->shape().dims()).get();
      }
      break;
    }
    case Opcode::GetTupleElement:
      if (x(0)->Is(Opcode::Tuple)) return x(0)->operand(*i->attrs().tuple_index);
      break;
    default:
      break;
  }
  // Constants stand on the right, so that equal computations look equal.
  if (i->HasTrait(Commutative) && i->operand_count() == 2 && x(0)->shape().type() == x(1)->shape().type() &&
      SplatOf(x(0)) && !SplatOf(x(1)))
    return c->AddClone(i, i->shape(), {x(1), x(0)});
  return nullptr;
}

// True if `n` may take the place of `i`: the same type, extents and layout. Mixed precision makes an operand another
// type than the result, and a layout was asked for by somebody.
bool Replaces(Instruction* n, const Instruction* i) {
  if (!n->shape().Compatible(i->shape())) return false;
  if (!i->shape().layout() || !n->shape().IsArray()) return true;
  if (!n->shape().layout()) n->mutable_shape().SetDefaultLayouts();
  return n->shape().layout() == i->shape().layout();
}

// What is added to a computation from now on.
class Built {
 public:
  explicit Built(Computation* c) : c_(c), before_(c->instruction_count()) {}
  // Takes it out again, users before what they use.
  void Discard() const {
    while (c_->instruction_count() > before_) c_->Remove(c_->instructions().back().get());
  }

 private:
  Computation* c_;
  int64_t before_;
};

}  // namespace

absl::StatusOr<bool> AlgebraicSimplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (i->users().empty() && !i->IsRoot()) continue;
      if (i->shape().HasDynamic() || !i->control_predecessors().empty() || !i->control_successors().empty()) continue;
      const Built built(c.get());
      Instruction* n = Simplify(i);
      if (!n || n == i || !Replaces(n, i) || !ctx.Take()) {
        built.Discard();
        continue;
      }
      if (n->loc().line == 0) n->set_loc(i->loc());
      i->ReplaceAllUsesWith(n);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
