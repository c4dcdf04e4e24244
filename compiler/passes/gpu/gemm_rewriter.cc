// Products become calls of cuBLASLt, with the scaling, sum and activation around them as far as the library does these.
//
//   alpha * dot(a, b) + beta * c, + bias, relu or gelu, converted: one call.
// The sum with c is taken only if nobody else needs c, which the library may overwrite; a bias is a vector along the
// last dimension. Products of fewer than 100 elements in all stay loops, as do types that the library lacks. Products
// of 8-bit floats and their scales have calls of their own, where every device has such products; a pass of their own
// finds them before others take their conversions.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/hlo/uses.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/gpu/bitcasts.h"

namespace kiln {
namespace {

constexpr int64_t kSmallest = 100;  // elements of both operands and the result

bool TypesServed(PrimitiveType a, PrimitiveType b, PrimitiveType out) {
  using P = PrimitiveType;
  if (a != b) return false;
  switch (a) {
    case P::F16:
    case P::BF16:
      return out == a || out == P::F32;
    case P::F32:
    case P::F64:
    case P::C64:
    case P::C128:
      return out == a;
    case P::S8:
      return out == P::S32;
    default:
      return false;
  }
}

// Batch dimensions lead, and each side has one contracting and at most one other dimension.
bool FormServed(const Instruction* dot) {
  const Attributes& a = dot->attrs();
  if (a.sparsity || a.algorithm) return false;
  const Ints lb = a.lhs_batch_dims.value_or(Ints()), rb = a.rhs_batch_dims.value_or(Ints());
  if (!a.lhs_contracting_dims || a.lhs_contracting_dims->size() != 1 || a.rhs_contracting_dims->size() != 1)
    return false;
  for (size_t k = 0; k < lb.size(); ++k)
    if (lb[k] != static_cast<int64_t>(k) || rb[k] != static_cast<int64_t>(k)) return false;
  const auto batch = static_cast<int64_t>(lb.size());
  return dot->operand(0)->shape().rank() == batch + 2 && dot->operand(1)->shape().rank() == batch + 2;
}

bool Served(const Instruction* i) {
  if (!i->Is(Opcode::Dot) || !FormServed(i) || i->shape().HasDynamic()) return false;
  const Shape &a = i->operand(0)->shape(), &b = i->operand(1)->shape(), &o = i->shape();
  if (!TypesServed(a.type(), b.type(), o.type())) return false;
  const int64_t elements = a.ElementCount() + b.ElementCount() + o.ElementCount();
  if (elements < kSmallest || o.ElementCount() == 0 || a.ElementCount() == 0) return false;
  // Rows of 8-bit integers must be whole words.
  const auto whole = [](const Shape& s) { return s.dims().back() % 4 == 0 && s.dim(s.rank() - 2) % 4 == 0; };
  // And the library wants the contracted dimension minor on both sides.
  const bool minor =
      (*i->attrs().lhs_contracting_dims)[0] == a.rank() - 1 && (*i->attrs().rhs_contracting_dims)[0] == b.rank() - 1;
  return a.type() != PrimitiveType::S8 || (whole(a) && whole(b) && whole(o) && minor);
}

bool IsF8Product(PrimitiveType t) { return t == PrimitiveType::F8E4M3FN || t == PrimitiveType::F8E5M2; }

// An operand that is an array of 8-bit floats times, or divided by, one number.
struct ScaledF8 {
  Instruction* array;
  Instruction* scale = nullptr;  // null: 1
  bool divides = false;
  std::vector<Instruction*> moves;  // what moves the elements of the scaled array, the last first
};

// Operations that do to an array of 8-bit floats what they do to its wide form.
bool MovesElements(const Instruction* i) {
  if (!i->control_predecessors().empty() || !i->control_successors().empty() || !i->shape().HasDefaultLayout() ||
      i->shape().HasDynamic())
    return false;
  switch (i->opcode()) {
    case Opcode::Bitcast:
      return i->shape().type() == i->operand(0)->shape().type() && i->operand(0)->shape().HasDefaultLayout();
    case Opcode::Broadcast:
      return i->operand(0)->shape().rank() > 0;
    case Opcode::Pad:
      return FloatSplat(i->operand(1)) == 0.0 && !std::signbit(*FloatSplat(i->operand(1)));
    case Opcode::Copy:
    case Opcode::DynamicSlice:
    case Opcode::Reshape:
    case Opcode::Slice:
    case Opcode::Transpose:
      return true;
    default:
      return false;
  }
}

std::optional<ScaledF8> AsScaledF8(Instruction* i, bool inexact) {
  const auto widened = [&](Instruction* v) -> Instruction* {
    if (IsF8Product(v->shape().type())) return v;
    return v->Is(Opcode::Convert) && IsF8Product(v->operand(0)->shape().type()) ? v->operand(0) : nullptr;
  };
  ScaledF8 out{nullptr};
  for (; !IsF8Product(i->shape().type()) && MovesElements(i); i = i->operand(0)) out.moves.push_back(i);
  if ((out.array = widened(i))) return out;
  out.divides = i->Is(Opcode::Divide);
  // The library scales what it has summed, which rounds otherwise.
  if (!inexact || (!i->Is(Opcode::Multiply) && !out.divides)) return std::nullopt;
  for (int64_t k = 0; k < (out.divides ? 1 : 2); ++k) {
    Instruction* scale = i->operand(1 - k);
    out.array = widened(i->operand(k));
    if (!out.array || !scale->Is(Opcode::Broadcast) || scale->operand(0)->shape().rank() > 0) continue;
    out.scale = scale->operand(0);
    return out;
  }
  return std::nullopt;
}

// x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2 of a value x, however its products are ordered.
class GeluMatcher {
 public:
  explicit GeluMatcher(const Instruction* x) : x_(x) {}

  // The last instruction of the formula, which alone is read elsewhere, or nullptr; `inside` has all of it.
  Instruction* Find() {
    for (Instruction* root : x_->users()) {
      inside_.clear();
      if (root->Is(Opcode::Multiply) && Whole(root) && Closed(root)) return root;
    }
    return nullptr;
  }

  const std::set<Instruction*>& inside() const { return inside_; }

 private:
  struct Product {
    double constant = 1;
    int64_t powers = 0;  // of x
    std::vector<Instruction*> others;
  };

  void Multiply(Instruction* i, Product* p) {
    if (i == x_) {
      ++p->powers;
    } else if (const auto c = FloatSplat(i)) {
      p->constant *= *c;
    } else if (i->Is(Opcode::Multiply)) {
      inside_.insert(i);
      for (Instruction* o : i->operands()) Multiply(o, p);
    } else {
      p->others.push_back(i);
    }
  }
  Product ProductOf(Instruction* i) {
    Product p;
    Multiply(i, &p);
    return p;
  }
  static bool Near(double a, double b) { return std::fabs(a - b) <= 2e-3 * std::fabs(b); }

  bool Whole(Instruction* root) {
    const Product p = ProductOf(root);
    if (p.powers != 1 || p.constant != 0.5 || p.others.size() != 1 || !p.others[0]->Is(Opcode::Add)) return false;
    Instruction* sum = p.others[0];
    inside_.insert(sum);
    for (int64_t k = 0; k < 2; ++k)
      if (sum->operand(k)->Is(Opcode::Tanh) && FloatSplat(sum->operand(1 - k)) == 1.0) {
        inside_.insert(sum->operand(k));
        return Inner(sum->operand(k)->operand(0));
      }
    return false;
  }
  bool Inner(Instruction* i) {
    const Product p = ProductOf(i);
    if (p.others.size() != 1 || !Near(p.constant, 0.7978845608) || !p.others[0]->Is(Opcode::Add)) return false;
    Instruction* sum = p.others[0];
    inside_.insert(sum);
    // x + c * x^3, or x * (1 + c * x^2).
    for (int64_t k = 0; k < 2; ++k) {
      const Product one = ProductOf(sum->operand(k)), cubic = ProductOf(sum->operand(1 - k));
      if (one.others.empty() && cubic.others.empty() && one.constant == 1 && Near(cubic.constant, 0.044715) &&
          one.powers + p.powers == 1 && cubic.powers + p.powers == 3)
        return true;
    }
    return false;
  }
  bool Closed(const Instruction* root) const {
    const auto within = [&](const Instruction* i) {
      return std::all_of(i->users().begin(), i->users().end(), [&](Instruction* u) { return inside_.contains(u); });
    };
    for (const Instruction* i : inside_)
      if (!i->control_predecessors().empty() || !i->control_successors().empty() ||
          (i != root && (i->IsRoot() || !within(i))))
        return false;
    return within(x_) && !x_->IsRoot();
  }

  const Instruction* x_;
  std::set<Instruction*> inside_;
};

class Rewriter {
 public:
  // `others`: products of wider types too.
  Rewriter(PassContext& ctx, bool others) : ctx_(ctx), others_(others) {}

  bool Run(Computation* c) {
    bool changed = false;
    for (Instruction* i : c->PostOrder()) {
      if (i->Is(Opcode::Dot) && ((ctx_.f8_products && CallF8(i)) || (!others_ && WidenF8(i)))) {
        changed = true;
        continue;
      }
      if (!others_ || !Served(i) || !ctx_.Take()) continue;
      Call(i);
      changed = true;
    }
    // What surrounds the calls joins them, from the inside out, and goes: only the calls stay.
    std::vector<Instruction*> calls;
    for (Instruction* i : c->PostOrder())
      if (IsGemmCall(i)) calls.push_back(i);
    for (Instruction* call : calls) {
      while (Instruction* grown = Grow(call)) {
        call = grown;
        changed = true;
      }
      changed = TakeGelu(call) || changed;
    }
    return changed;
  }

 private:
  static Instruction* MakeCall(Computation* c, const Shape& shape, std::vector<Instruction*> operands,
                               const GemmConfig& config, const std::string& target) {
    Instruction* call = c->Add(Opcode::CustomCall, shape, std::move(operands), "cublas-lt-matmul");
    call->mutable_attrs().custom_call_target = attr::Str(target);
    call->mutable_attrs().backend_config = ToText(config);
    return call;
  }

  static void Replace(Instruction* old, Instruction* with) {
    with->set_loc(old->loc());
    old->ReplaceAllUsesWith(with);
    old->parent()->Remove(old);
  }

  static void Call(Instruction* dot) {
    const Attributes& a = dot->attrs();
    GemmConfig g{a.lhs_batch_dims.value_or(Ints()), *a.lhs_contracting_dims, a.rhs_batch_dims.value_or(Ints()),
                 *a.rhs_contracting_dims};
    g.precise = AsksForPrecision(dot);
    Replace(dot, MakeCall(dot->parent(), dot->shape(), dot->operands(), g, kGemmTarget));
  }

  // Instructions of `c` with ids from `first_new` on are row major in a module that has layouts.
  static void GiveLayouts(Computation* c, int64_t first_new, const Shape& like) {
    if (!like.layout()) return;
    for (Instruction* i : c->AddedSince(first_new)) i->mutable_shape().SetDefaultLayouts();
  }

  // The array of 8-bit floats that the product reads: moved as the wide array was, its contracted dimension minor, and
  // its last two extents multiples of 16.
  static Instruction* F8Operand(const ScaledF8& s, int64_t contracting) {
    Expr x = s.array;
    const PrimitiveType t = x.type();
    if (!x.shape().HasDefaultLayout()) x = x.computation()->Add(Opcode::Copy, LaidOut(t, x.shape().dims()), {x.get()});
    for (auto m = s.moves.rbegin(); m != s.moves.rend(); ++m) {
      std::vector<Instruction*> operands = (*m)->operands();
      operands[0] = x.get();
      if ((*m)->Is(Opcode::Pad)) operands[1] = x.computation()->AddConstant(Literal::Of(t, 0));
      Shape shape = (*m)->shape();
      shape.set_type(t);
      x = x.computation()->AddClone(*m, shape, operands);
    }
    const auto rank = static_cast<size_t>(x.shape().rank());
    Ints order(rank);
    std::iota(order.begin(), order.end(), 0);
    if (contracting != x.shape().rank() - 1) std::swap(order[rank - 1], order[rank - 2]);
    x = TransposeBy(x, order);
    Shape padded = Shape::Array(t, x.shape().dims());
    attr::Padding amounts(rank);
    for (size_t d = rank - 2; d < rank; ++d) {
      amounts[d].high = (16 - padded.dims()[d] % 16) % 16;
      padded.mutable_dims()[d] += amounts[d].high;
    }
    if (padded.dims() == x.shape().dims()) return x.get();
    Instruction* zero = x.computation()->AddConstant(Literal::Of(t, 0));
    Instruction* pad = x.computation()->Add(Opcode::Pad, padded, {x.get(), zero});
    pad->mutable_attrs().padding = amounts;
    return pad;
  }

  static Instruction* F8Scale(const ScaledF8& s, Computation* c) {
    if (!s.scale) return c->AddConstant(Literal::Of(PrimitiveType::F32, 1));
    Expr x = ConvertTo(PrimitiveType::F32, s.scale);
    return (s.divides ? 1.0 / x : x).get();
  }

  static bool ServesF8(const Instruction* dot) {
    return FormServed(dot) && !dot->shape().HasDynamic() && dot->shape().HasDefaultLayout() &&
           dot->shape().ElementCount() > 0 && dot->operand(0)->shape().ElementCount() > 0 &&
           IsFloat(dot->shape().type()) && BitWidth(dot->shape().type()) <= 32;
  }

  // The library multiplies matrices whose contracted dimension is minor, of extents that 16 divides, and not two of
  // the type with fewer digits.
  bool CallF8(Instruction* dot) {
    const PrimitiveType out = dot->shape().type();
    if (!ServesF8(dot)) return false;
    const std::vector<Instruction*> sides = dot->operands();
    const bool inexact = ctx_.algebra != Algebra::kExact;
    const std::optional<ScaledF8> a = AsScaledF8(dot->operand(0), inexact), b = AsScaledF8(dot->operand(1), inexact);
    if (!a || !b) return false;
    const auto coarse = [](const ScaledF8& s) { return s.array->shape().type() == PrimitiveType::F8E5M2; };
    if ((coarse(*a) && coarse(*b)) || !ctx_.Take()) return false;
    Computation* c = dot->parent();
    const int64_t first_new = c->module()->next_id(), rank = dot->shape().rank();
    GemmConfig g;
    g.lhs_batch = dot->attrs().lhs_batch_dims.value_or(Ints());
    g.rhs_batch = dot->attrs().rhs_batch_dims.value_or(Ints());
    g.lhs_contracting = g.rhs_contracting = {rank - 1};
    const Shape laid_out = dot->shape();
    Instruction* x = F8Operand(*a, (*dot->attrs().lhs_contracting_dims)[0]);
    Instruction* y = F8Operand(*b, (*dot->attrs().rhs_contracting_dims)[0]);
    // Results narrower than the library's are rounded from its widest.
    Shape shape = laid_out;
    if (BitWidth(out) < 16) shape.set_type(PrimitiveType::F32);
    shape.mutable_dims()[rank - 2] = x->shape().dim(rank - 2);
    shape.mutable_dims()[rank - 1] = y->shape().dim(rank - 2);
    Expr product = MakeCall(c, shape, {x, y, F8Scale(*a, c), F8Scale(*b, c)}, g, kGemmF8Target);
    if (shape.dims() != laid_out.dims()) product = SliceOf(product, Ints(rank, 0), laid_out.dims());
    Replace(dot, ConvertTo(out, product).get());
    GiveLayouts(c, first_new, laid_out);
    RemoveWide(c, sides);
    return true;
  }

  // Where no 8-bit product is served, 16 bits hold the operands exactly.
  bool WidenF8(Instruction* dot) {
    const PrimitiveType out = dot->shape().type();
    const auto narrow = [](const Instruction* o) { return IsF8Product(o->shape().type()); };
    if (!narrow(dot->operand(0)) || !narrow(dot->operand(1)) || !ServesF8(dot)) return false;
    int64_t elements = dot->shape().ElementCount();
    for (const Instruction* o : dot->operands()) elements += o->shape().ElementCount();
    if (elements < kSmallest || !ctx_.Take()) return false;
    Computation* c = dot->parent();
    const int64_t first_new = c->module()->next_id();
    const Shape laid_out = dot->shape();
    Shape shape = laid_out;
    if (out != PrimitiveType::F16) shape.set_type(PrimitiveType::F32);
    Instruction* wide = c->AddClone(
        dot, shape,
        {ConvertTo(PrimitiveType::F16, dot->operand(0)).get(), ConvertTo(PrimitiveType::F16, dot->operand(1)).get()});
    Replace(dot, ConvertTo(out, wide).get());
    GiveLayouts(c, first_new, laid_out);
    return true;
  }

  // The wide arrays go where nobody else reads them; both sides may be one array.
  static void RemoveWide(Computation* c, const std::vector<Instruction*>& sides) {
    std::set<Instruction*> left(sides.begin(), sides.end());
    while (!left.empty()) {
      Instruction* side = left.extract(left.begin()).value();
      if (!side->users().empty() || side->Is(Opcode::Parameter) || side->IsRoot() ||
          !side->control_predecessors().empty() || !side->control_successors().empty())
        continue;
      left.insert(side->operands().begin(), side->operands().end());
      c->Remove(side);
    }
  }

  // The one reader of `i`, if its memory is all that the reader needs to know of it.
  static Instruction* OnlyUser(Instruction* i) {
    return i->users().size() == 1 && !i->IsRoot() && i->shape().HasDefaultLayout() ? i->users()[0] : nullptr;
  }

  // The call with its only user in it, or nullptr. A bitcast between them moves behind both.
  Instruction* Grow(Instruction* call) {
    if (call->users().size() != 1 || call->IsRoot() || !IsFloat(call->shape().type())) return nullptr;
    Instruction *user = call->users()[0], *value = call;
    if (user->Is(Opcode::Bitcast) && user->shape().type() == call->shape().type() && OnlyUser(user) &&
        call->shape().HasDefaultLayout()) {
      value = user;
      user = user->users()[0];
      if (!user->IsElementwise() || !user->shape().HasDefaultLayout()) return nullptr;
    }
    auto config = GemmConfigOf(call);
    if (!config.ok() || !user->control_predecessors().empty()) return nullptr;
    GemmConfig g = *config;
    std::vector<Instruction*> operands = call->operands();
    const bool plain = g.epilogue == "DEFAULT";
    if (ChangesType(*user) || (user->operand_count() == 2 && user->operand(0) == user->operand(1))) return nullptr;
    Instruction* other = user->operand_count() == 2 ? user->operand(user->operand(0) == value ? 1 : 0) : nullptr;
    const bool f8 = IsCallTo(call, kGemmF8Target);
    if (f8 && user->Is(Opcode::Multiply) && plain && g.beta == 0 && other->Is(Opcode::Broadcast) &&
        other->operand(0)->shape().rank() == 0 && !FloatSplat(other)) {
      if (!ctx_.Take()) return nullptr;
      const int64_t first_new = call->parent()->module()->next_id();
      operands[2] = (Expr(operands[2]) * ConvertTo(PrimitiveType::F32, other->operand(0))).get();
      GiveLayouts(call->parent(), first_new, call->shape());
    } else if (user->Is(Opcode::Multiply) && plain && g.beta == 0) {
      const auto scale = FloatSplat(other);
      if (!scale || !std::isfinite(*scale) || !ctx_.Take()) return nullptr;
      g.alpha *= *scale;
    } else if (user->Is(Opcode::Add) && Bias(other, call->shape()) && plain &&
               !(f8 && call->shape().type() == PrimitiveType::F32)) {
      if (!ctx_.Take()) return nullptr;
      g.epilogue = "BIAS";
      operands.push_back(Bias(other, call->shape()));
    } else if (user->Is(Opcode::Add) && plain && g.beta == 0 && other->users().size() == 1 && !other->IsRoot() &&
               (value == call || other->shape().HasDefaultLayout()) && !FloatSplat(other)) {
      if (!ctx_.Take()) return nullptr;
      g.beta = 1;
      operands.push_back(BitcastTo(other, call->shape()));
    } else if (user->Is(Opcode::Maximum) && !g.HasRelu() && !g.HasGelu() && FloatSplat(other) == 0.0) {
      if (!ctx_.Take()) return nullptr;
      g.epilogue = g.HasBias() ? "BIAS_RELU" : "RELU";
    } else {
      return nullptr;
    }
    Instruction* grown = MakeCall(call->parent(), value == call ? user->shape() : call->shape(), operands, g,
                                  call->attrs().custom_call_target->text);
    Replace(user, value == call ? grown : BitcastTo(grown, user->shape()));
    if (value != call) call->parent()->Remove(value);
    call->parent()->Remove(call);
    return grown;
  }

  // An activation that reads the result several times, possibly through a bitcast.
  bool TakeGelu(Instruction* call) {
    auto config = GemmConfigOf(call);
    const PrimitiveType t = call->shape().type();
    if (!config.ok() || IsCallTo(call, kGemmF8Target) || config->HasRelu() || config->HasGelu() || config->beta != 0 ||
        (t != PrimitiveType::F32 && t != PrimitiveType::F16 && t != PrimitiveType::BF16) || call->IsRoot() ||
        call->users().empty())
      return false;
    Instruction* value = call;
    if (Instruction* user = OnlyUser(call); user && user->Is(Opcode::Bitcast) && user->shape().type() == t)
      value = user;
    GeluMatcher matcher(value);
    Instruction* root = matcher.Find();
    if (!root || !root->shape().HasDefaultLayout() || !ctx_.Take()) return false;
    config->epilogue = config->HasBias() ? "BIAS_GELU" : "GELU";
    Instruction* grown =
        MakeCall(call->parent(), call->shape(), call->operands(), *config, call->attrs().custom_call_target->text);
    grown->set_loc(root->loc());
    root->ReplaceAllUsesWith(value == call ? grown : BitcastTo(grown, value->shape()));
    std::set<Instruction*> dead = matcher.inside();
    dead.insert({value, call});
    RemoveUnread(std::move(dead));
    return true;
  }

  // Those that nobody reads, readers first.
  static void RemoveUnread(std::set<Instruction*> dead) {
    for (bool again = true; again;) {
      again = false;
      for (auto i = dead.begin(); i != dead.end();) {
        const bool unread = (*i)->users().empty();
        if (unread) (*i)->parent()->Remove(*i);
        again = again || unread;
        i = unread ? dead.erase(i) : std::next(i);
      }
    }
  }

  // The vector that `i` repeats along its last dimension, which is that of `result` too, or nullptr.
  static Instruction* Bias(Instruction* i, const Shape& result) {
    if (!i || i->shape().rank() == 0 || i->shape().dims().back() != result.dims().back()) return nullptr;
    if (!i->Is(Opcode::Broadcast) || i->operand(0)->shape().rank() != 1) return nullptr;
    const Ints& dims = *i->attrs().dimensions;
    return dims.size() == 1 && dims[0] == i->shape().rank() - 1 && i->operand(0)->shape().dim(0) > 1 ? i->operand(0)
                                                                                                     : nullptr;
  }

  PassContext& ctx_;
  const bool others_;
};

absl::StatusOr<bool> Rewrite(Module& m, PassContext& ctx, bool others) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) changed |= Rewriter(ctx, others).Run(c);
  return changed;
}

}  // namespace

absl::StatusOr<bool> CublasGemmRewriter(Module& m, PassContext& ctx) { return Rewrite(m, ctx, true); }

absl::StatusOr<bool> CublasGemmF8Rewriter(Module& m, PassContext& ctx) { return Rewrite(m, ctx, false); }

}  // namespace kiln
