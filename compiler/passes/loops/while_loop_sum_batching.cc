// Products that a loop's iterations only add up are one product of all iterations behind the loop, which contracts over
// them too; sums of what lies in memory for all iterations are one sum.
//
// Why: the gradient of a recurrence adds a product of few rows to the gradient of its weights in every step, which
//   reads and writes the weights' size for little work.
// Keeps: every result, but for the order in which it is summed up and for the rounding of the sums between; nothing in
//   the config's EXACT, but for integers.
// Cost: the factors of all iterations take memory where they do not anyway. New arrays are no larger than those that
//   the loop goes through step by step, or four times what it adds to; what a step keeps is an eighth of its products.
// Left alone: products that contract enough in a step; sums that a step reads or that depend on a choice; loops that
//   are not known to run at least four times.
#include <algorithm>
#include <utility>

#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/loop_sums.h"
#include "compiler/passes/loops/step_arrays.h"
#include "compiler/passes/other_passes.h"
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/reducer.h"

namespace kiln {
namespace {

constexpr int64_t kFewestSteps = 4;
constexpr int64_t kMostContracted = 64;  // in a step: more is enough for a product to run well
constexpr int64_t kMostOfSums = 4;       // times what the sums take, for new arrays
constexpr int64_t kLeastSaving = 8;      // times less is kept in a step than was added

// A product that is no dot: what two arrays, repeated along each other's dimensions, make element by element.
bool IsOuterProduct(const Instruction* i) {
  if (!i->Is(Opcode::Multiply) || !i->operand(0)->Is(Opcode::Broadcast) || !i->operand(1)->Is(Opcode::Broadcast))
    return false;
  std::vector<int> mapped(static_cast<size_t>(i->shape().rank()), 0);
  for (const Instruction* o : i->operands())
    for (const int64_t d : *o->attrs().dimensions) ++mapped[static_cast<size_t>(d)];
  return std::all_of(mapped.begin(), mapped.end(), [](int n) { return n == 1; }) &&
         i->operand(0)->operand(0)->shape().rank() > 0 && i->operand(1)->operand(0)->shape().rank() > 0;
}

bool IsProduct(const Instruction* i) { return i->Is(Opcode::Dot) || IsOuterProduct(i); }

Instruction* Factor(const Instruction* product, int64_t side) {
  Instruction* o = product->operand(side);
  return product->Is(Opcode::Dot) ? o : o->operand(0);
}

bool IsSum(const Instruction* i) {
  return i->Is(Opcode::Reduce) && i->shape().IsArray() && ReducerOf(i) == Opcode::Add &&
         pattern::IsAll(i->operand(1), 0);
}

// What has to be known of all iterations.
std::vector<Instruction*> Wanted(const Instruction* loop, const LoopTerm& term) {
  if (IsSum(term.leaf)) return {term.leaf->operand(0)};
  if (!IsProduct(term.leaf)) return {term.leaf};
  std::vector<Instruction*> out;
  for (int64_t side = 0; side < 2; ++side)
    if (!IsFixed(loop, Factor(term.leaf, side))) out.push_back(Factor(term.leaf, side));
  return out;
}

int64_t Contracted(const Instruction* product) {
  if (!product->Is(Opcode::Dot)) return 1;
  int64_t n = 1;
  for (const int64_t d : *product->attrs().lhs_contracting_dims) n *= product->operand(0)->shape().dim(d);
  return n;
}

struct Plan {
  std::vector<LoopSum> sums;
  std::vector<Instruction*> kept;  // what new arrays keep
};

class Planner {
 public:
  Planner(const Instruction* loop, const StepArrays& steps) : loop_(loop), steps_(steps) {}

  Plan Run(bool floats) {
    std::vector<LoopSum> products, rest;
    for (LoopSum& sum : LoopSums(loop_)) {
      const PrimitiveType type = loop_->shape().tuple()[static_cast<size_t>(sum.element)].type();
      if (IsFloat(type) && !floats) continue;
      const bool any =
          std::any_of(sum.terms.begin(), sum.terms.end(), [](const LoopTerm& t) { return IsProduct(t.leaf); });
      (any ? products : rest).push_back(std::move(sum));
    }
    // The largest pay for what others then find.
    std::stable_sort(products.begin(), products.end(),
                     [&](const LoopSum& a, const LoopSum& b) { return BytesOf(a) > BytesOf(b); });
    for (LoopSum& sum : products)
      if (Gains(sum)) Accept(std::move(sum));
    for (LoopSum& sum : rest)
      if (New(sum).empty()) Accept(std::move(sum));
    return std::move(plan_);
  }

 private:
  // What new arrays have to keep besides those of the plan.
  std::vector<Instruction*> New(const LoopSum& sum) const {
    std::vector<Instruction*> out;
    for (const LoopTerm& term : sum.terms)
      for (Instruction* v : Wanted(loop_, term)) {
        Instruction* base = steps_.BaseOf(v);
        const auto in = [&](const std::vector<Instruction*>& list) {
          return std::find(list.begin(), list.end(), base) != list.end();
        };
        if (!steps_.IsKnown(base) && !in(plan_.kept) && !in(out)) out.push_back(base);
      }
    return out;
  }

  bool Gains(const LoopSum& sum) const {
    int64_t product_bytes = 0;
    for (const LoopTerm& term : sum.terms) {
      if (!IsProduct(term.leaf)) continue;
      if (!term.is_used_once || Contracted(term.leaf) > kMostContracted || Wanted(loop_, term).empty()) return false;
      product_bytes += term.leaf->shape().ByteSize();
    }
    int64_t bytes = 0, step_bytes = 0;
    for (const Instruction* base : New(sum)) {
      bytes += steps_.ShapeOf(base).ByteSize();
      step_bytes += base->shape().ByteSize();
    }
    const int64_t most = std::max(steps_.known_bytes(), kMostOfSums * (sum_bytes_ + BytesOf(sum)));
    return kLeastSaving * step_bytes <= product_bytes && new_bytes_ + bytes <= most;
  }

  int64_t BytesOf(const LoopSum& sum) const {
    return loop_->shape().tuple()[static_cast<size_t>(sum.element)].ByteSize();
  }

  void Accept(LoopSum sum) {
    for (Instruction* base : New(sum)) {
      plan_.kept.push_back(base);
      new_bytes_ += steps_.ShapeOf(base).ByteSize();
    }
    sum_bytes_ += BytesOf(sum);
    plan_.sums.push_back(std::move(sum));
  }

  const Instruction* loop_;
  const StepArrays& steps_;
  Plan plan_;
  int64_t new_bytes_ = 0, sum_bytes_ = 0;
};

// The sums behind the loop.
class Builder {
 public:
  Builder(Instruction* loop, const StepArrays& steps) : loop_(loop), c_(loop->parent()), steps_(steps) {}

  Instruction* Total(const LoopSum& sum) {
    const Expr init = InitOf(loop_, sum.element);
    PrimitiveType type = init.type();
    for (const LoopTerm& term : sum.terms)
      if (BitWidth(term.type) > BitWidth(type)) type = term.type;
    Expr total = ConvertTo(type, init);
    for (const LoopTerm& term : sum.terms) {
      const Expr all = ConvertTo(type, Term(term));
      total = term.is_subtracted ? total - all : total + all;
    }
    return ConvertTo(init.type(), total).get();
  }

 private:
  Expr Term(const LoopTerm& term) {
    Expr all = IsProduct(term.leaf) ? Product(term) : Sum(term);
    for (auto it = term.chain.rbegin(); it != term.chain.rend(); ++it) {
      const Instruction* i = *it;
      if (i->Is(Opcode::Convert)) continue;
      if (i->Is(Opcode::Multiply)) {
        const Expr factor = BeforeLoop(loop_, i->operand(1)->operand(0));
        all = all * BroadcastTo(ConvertTo(all.type(), factor), i->shape().dims());
      } else {
        all = c_->AddClone(i, Shape::Array(all.type(), i->shape().dims()), {all.get()});
      }
    }
    return all;
  }

  Expr Sum(const LoopTerm& term) {
    if (!IsSum(term.leaf)) return OverSteps(steps_.All(term.leaf, loop_), {0}, term.type);
    Ints dims = {0};
    for (const int64_t d : *term.leaf->attrs().dimensions) dims.push_back(d + 1);
    return OverSteps(steps_.All(term.leaf->operand(0), loop_), dims, term.type);
  }

  Expr OverSteps(Expr all, const Ints& dims, PrimitiveType type) {
    const Expr zero = c_->AddConstant(Literal::Of(type, 0));
    return ReduceOf(ConvertTo(type, all), zero, dims, ScalarFunction(c_->module(), Opcode::Add, type));
  }

  Expr Product(const LoopTerm& term) {
    const Instruction* leaf = term.leaf;
    const bool fixed[2] = {IsFixed(loop_, Factor(leaf, 0)), IsFixed(loop_, Factor(leaf, 1))};
    std::vector<Instruction*> factors;
    for (int64_t side = 0; side < 2; ++side) {
      const Expr factor =
          fixed[side] ? BeforeLoop(loop_, Factor(leaf, side)) : steps_.All(Factor(leaf, side), loop_).get();
      if (fixed[1 - side])
        factors.push_back(OverSteps(factor, {0}, term.type).get());
      else
        factors.push_back(fixed[side] ? ConvertTo(term.type, factor).get() : factor.get());
    }
    const bool by_steps = !fixed[0] && !fixed[1];
    // Kernels widen halves to f32 on the way, and nothing else.
    const bool widens = BitWidth(leaf->shape().type()) == 16 && term.type == PrimitiveType::F32;
    const PrimitiveType type = widens || !by_steps ? term.type : leaf->shape().type();
    return leaf->Is(Opcode::Dot) ? DotOfAll(leaf, factors, by_steps, type) : OuterOfAll(leaf, factors, by_steps, type);
  }

  Expr DotOfAll(const Instruction* leaf, const std::vector<Instruction*>& factors, bool by_steps, PrimitiveType type) {
    Instruction* dot = c_->AddClone(leaf, Shape::Array(type, leaf->shape().dims()), factors);
    if (!by_steps) return dot;
    Attributes& a = dot->mutable_attrs();
    for (auto* dims : {&a.lhs_batch_dims, &a.rhs_batch_dims, &a.lhs_contracting_dims, &a.rhs_contracting_dims})
      if (*dims)
        for (int64_t& d : **dims) ++d;
    for (auto* dims : {&a.lhs_contracting_dims, &a.rhs_contracting_dims}) {
      if (!*dims) *dims = Ints();
      (*dims)->insert((*dims)->begin(), 0);
    }
    return dot;
  }

  Expr OuterOfAll(const Instruction* leaf, const std::vector<Instruction*>& factors, bool by_steps,
                  PrimitiveType type) {
    Ints dims, order(static_cast<size_t>(leaf->shape().rank()));
    for (const Instruction* o : leaf->operands())
      for (const int64_t d : *o->attrs().dimensions) {
        order[static_cast<size_t>(d)] = static_cast<int64_t>(dims.size());
        dims.push_back(leaf->shape().dim(d));
      }
    Instruction* dot = c_->Add(Opcode::Dot, Shape::Array(type, dims), factors);
    dot->mutable_attrs().lhs_contracting_dims = by_steps ? Ints{0} : Ints();
    dot->mutable_attrs().rhs_contracting_dims = by_steps ? Ints{0} : Ints();
    return TransposeBy(dot, order);
  }

  Instruction* loop_;
  Computation* c_;
  const StepArrays& steps_;
};

std::optional<Induction> Served(const Instruction* loop) {
  const bool arrays = std::all_of(loop->shape().tuple().begin(), loop->shape().tuple().end(),
                                  [](const Shape& s) { return s.IsArray() && !s.HasDynamic(); });
  if (!arrays || !HasFlatState(loop) || !HasNoControlEdges(*loop->attrs().body, *loop->attrs().condition))
    return std::nullopt;
  const std::optional<Induction> count = FindInduction(loop);
  return count && count->trips >= kFewestSteps ? count : std::nullopt;
}

// The loop as the plan has it, without what it adds up.
void Move(Instruction* loop, const Induction& count, const std::vector<Instruction*>& kept, bool floats) {
  std::vector<Instruction*> zeros;
  const StepArrays before(loop, count);
  for (const Instruction* base : kept) {
    const Shape shape = before.ShapeOf(base);
    zeros.push_back(BroadcastTo(loop->parent()->AddConstant(Literal::Of(shape.type(), 0)), shape.dims()).get());
  }
  auto element = static_cast<int64_t>(loop->shape().tuple().size());
  loop = ExtendLoop(loop, zeros);
  StepArrays steps(loop, count);
  const Plan plan = Planner(loop, steps).Run(floats);  // the same in the loop's copy
  for (Instruction* base : plan.kept) steps.Keep(base, element++);
  std::vector<Instruction*> totals;
  for (const LoopSum& sum : plan.sums) totals.push_back(Builder(loop, steps).Total(sum));
  Computation* body = *loop->attrs().body;
  for (size_t n = 0; n < plan.sums.size(); ++n) {
    const int64_t k = plan.sums[n].element;
    body->root()->ReplaceOperand(k, PartOf(body->parameter(0), k).get());
    for (Instruction* r : ElementReaders(loop, k)) r->ReplaceAllUsesWith(totals[n]);
  }
  ShrinkLoop(loop, LiveElements(loop));
}

}  // namespace

absl::StatusOr<bool> WhileLoopSumBatching(Module& m, PassContext& ctx) {
  const bool floats = ctx.algebra != Algebra::kExact;
  bool changed = false;
  for (Computation* c : m.PostOrder())
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      const std::optional<Induction> count = Served(loop);
      if (!count) continue;
      const StepArrays steps(loop, *count);
      const Plan plan = Planner(loop, steps).Run(floats);
      if (plan.sums.empty() || !ctx.Take()) continue;
      Move(loop, *count, plan.kept, floats);
      changed = true;
    }
  if (changed) {
    m.RemoveUnreachableComputations();
    RETURN_IF_ERROR(Dce(m, ctx).status());
  }
  return changed;
}

}  // namespace kiln
