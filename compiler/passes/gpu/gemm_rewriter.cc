// Products become calls of cuBLASLt, with the scaling, sum and activation around them as far as the library does these.
//
//   alpha * dot(a, b) + beta * c, + bias, relu or gelu, converted: one call.
// The sum with c is taken only if nobody else needs c, since the library may overwrite it; a bias is a vector along the
// last dimension. Products of fewer than 100 elements in all stay loops, as do types that the library lacks.
// Products of 8-bit floats, with the scales that their operands or the result are multiplied by, have calls of their
// own, where every device has such products; a pass of their own finds them before others take their conversions.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
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

// An operand that is an array of 8-bit floats times one number.
struct ScaledF8 {
  Instruction* array;
  Instruction* scale;  // null: 1
};

std::optional<ScaledF8> AsScaledF8(Instruction* i) {
  const auto narrow = [](const Instruction* v) {
    return v->shape().type() == PrimitiveType::F8E4M3FN || v->shape().type() == PrimitiveType::F8E5M2;
  };
  const auto widened = [&](Instruction* v) -> Instruction* {
    if (narrow(v)) return v;
    return v->Is(Opcode::Convert) && narrow(v->operand(0)) ? v->operand(0) : nullptr;
  };
  if (Instruction* array = widened(i)) return ScaledF8{array, nullptr};
  if (!i->Is(Opcode::Multiply)) return std::nullopt;
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *array = widened(i->operand(k)), *scale = i->operand(1 - k);
    if (array && scale->Is(Opcode::Broadcast) && scale->operand(0)->shape().rank() == 0)
      return ScaledF8{array, scale->operand(0)};
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
      if (i->Is(Opcode::Dot) && ctx_.f8_products && CallF8(i)) {
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
    GemmConfig g;
    g.lhs_batch = dot->attrs().lhs_batch_dims.value_or(Ints());
    g.rhs_batch = dot->attrs().rhs_batch_dims.value_or(Ints());
    g.lhs_contracting = *dot->attrs().lhs_contracting_dims;
    g.rhs_contracting = *dot->attrs().rhs_contracting_dims;
    Replace(dot, MakeCall(dot->parent(), dot->shape(), dot->operands(), g, kGemmTarget));
  }

  // Instructions of `c` with ids from `first_new` on are row major in a module that has layouts.
  static void GiveLayouts(Computation* c, int64_t first_new, const Shape& like) {
    if (!like.layout()) return;
    for (Instruction* i : c->AddedSince(first_new)) i->mutable_shape().SetDefaultLayouts();
  }

  // The library multiplies matrices whose contracted dimension is minor, of extents that 16 divides, and not two of
  // the type with fewer digits.
  bool CallF8(Instruction* dot) {
    const PrimitiveType out = dot->shape().type();
    if (out != PrimitiveType::F32 && out != PrimitiveType::BF16 && out != PrimitiveType::F16) return false;
    if (!FormServed(dot) || dot->shape().HasDynamic()) return false;
    const std::optional<ScaledF8> a = AsScaledF8(dot->operand(0)), b = AsScaledF8(dot->operand(1));
    if (!a || !b) return false;
    const auto coarse = [](const ScaledF8& s) { return s.array->shape().type() == PrimitiveType::F8E5M2; };
    if (coarse(*a) && coarse(*b)) return false;
    const int64_t rank = dot->shape().rank();
    for (const Instruction* i : {dot, dot->operand(0), dot->operand(1)})
      if (i->shape().dim(rank - 1) % 16 || i->shape().dim(rank - 2) % 16 || i->shape().ElementCount() == 0)
        return false;
    if (!a->array->shape().HasDefaultLayout() || !b->array->shape().HasDefaultLayout() ||
        !dot->shape().HasDefaultLayout() || !ctx_.Take())
      return false;
    Computation* c = dot->parent();
    const int64_t first_new = c->module()->next_id();
    const auto minor = [&](Instruction* array, int64_t contracting) -> Instruction* {
      if (contracting == rank - 1) return array;
      Ints order(static_cast<size_t>(rank));
      std::iota(order.begin(), order.end(), 0);
      std::swap(order[static_cast<size_t>(rank) - 1], order[static_cast<size_t>(rank) - 2]);
      return TransposeBy(array, order).get();
    };
    const auto scale = [&](Instruction* s) -> Instruction* {
      return s ? ConvertTo(PrimitiveType::F32, s).get() : c->AddConstant(Literal::Of(PrimitiveType::F32, 1));
    };
    GemmConfig g;
    g.lhs_batch = dot->attrs().lhs_batch_dims.value_or(Ints());
    g.rhs_batch = dot->attrs().rhs_batch_dims.value_or(Ints());
    g.lhs_contracting = g.rhs_contracting = {rank - 1};
    std::vector<Instruction*> sides = dot->operands();
    const Shape laid_out = dot->shape();
    Replace(dot, MakeCall(c, dot->shape(),
                          {minor(a->array, (*dot->attrs().lhs_contracting_dims)[0]),
                           minor(b->array, (*dot->attrs().rhs_contracting_dims)[0]), scale(a->scale), scale(b->scale)},
                          g, kGemmF8Target));
    GiveLayouts(c, first_new, laid_out);
    // The wide arrays go where nobody else reads them.
    while (!sides.empty()) {
      Instruction* side = sides.back();
      sides.pop_back();
      if (!side->users().empty() || side->Is(Opcode::Parameter) || side->IsRoot() ||
          !side->control_predecessors().empty() || !side->control_successors().empty())
        continue;
      const std::set<Instruction*> operands(side->operands().begin(), side->operands().end());
      c->Remove(side);
      sides.insert(sides.end(), operands.begin(), operands.end());
    }
    return true;
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
    if (user->operand_count() == 2 && user->operand(0) == user->operand(1)) return nullptr;
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
