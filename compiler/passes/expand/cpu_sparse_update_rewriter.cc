// x - c * g, where g is updates added to rows of zeros: only rows that have an update are computed and written.
//
// Why: gradients of an embedding are such a g, as large as the table. Rows without an update are x itself, which a step
//   of gradient descent that owns its table need not touch: instead of filling, reading and writing whole tables it
//   takes time for the rows of a batch.
// How: the first update of a row gives it a place, its updates are added up there, and all of them then write the row's
//   new value, the same one.
// Left alone: g that others read too; c that is not a constant of the sign for which x - c * 0 is x, a zero's sign
//   included; small tables, and those of few rows for each update.
// Keeps: every result, bit for bit: sums of a row begin at zero and have the order that they had.
#include <cmath>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/expand/rows.h"
#include "compiler/passes/simplify/rules/reducer.h"

namespace kiln {
namespace {

constexpr int64_t kLeastBytes = 1 << 20;  // of the table
constexpr int64_t kRowsForUpdate = 4;

// What an instruction x - g, x - c * g or x + c * g consists of.
struct Parts {
  Instruction *table, *scatter;
  Instruction* product = nullptr;  // c * g, where there is a c
};

bool IsZero(const Instruction* i) {
  const std::optional<double> value = FloatSplat(i);
  return value && *value == 0 && !std::signbit(*value);
}

// Whether whole rows are added to zeros, the windows' dimensions being the last of the updates.
bool AddsRows(const Instruction* i) {
  if (!i->Is(Opcode::Scatter) || i->operand_count() != 3 || i->users().size() != 1 || !IsZero(i->operand(0)) ||
      ReducerOf(i) != Opcode::Add || i->shape().HasDynamic())
    return false;
  const Attributes& a = i->attrs();
  const Shape &s = i->shape(), &updates = i->operand(2)->shape();
  const auto is = [](const std::optional<Ints>& dims, const Ints& want) { return dims.value_or(Ints()) == want; };
  Ints windows;
  for (int64_t d = 1; d < s.rank(); ++d) {
    windows.push_back(updates.rank() - s.rank() + d);
    if (updates.dim(windows.back()) != s.dim(d)) return false;
  }
  return s.rank() > 0 && is(a.inserted_window_dims, {0}) && is(a.scatter_dims_to_operand_dims, {0}) &&
         is(a.update_window_dims, windows) && is(a.input_batching_dims, {}) &&
         IsIntegral(i->operand(1)->shape().type());
}

// `i` as parts, `g` being its operand `k`.
std::optional<Parts> PartsOf(Instruction* i, int64_t k) {
  Parts p{i->operand(1 - k), i->operand(k)};
  double c = 1;
  if (p.scatter->Is(Opcode::Multiply) && p.scatter->users().size() == 1) {
    p.product = p.scatter;
    const int64_t factor = FloatSplat(p.product->operand(0)) ? 0 : 1;
    c = FloatSplat(p.product->operand(factor)).value_or(0);
    p.scatter = p.product->operand(1 - factor);
  }
  const bool keeps = std::isfinite(c) && (i->Is(Opcode::Subtract) ? c > 0 : c < 0);
  return keeps && p.table != p.scatter && AddsRows(p.scatter) ? std::optional(p) : std::nullopt;
}

std::optional<Parts> PartsOf(Instruction* i) {
  const Shape& s = i->shape();
  if (!(i->Is(Opcode::Subtract) || i->Is(Opcode::Add)) || !s.IsArray() || !IsFloat(s.type()) || s.rank() == 0 ||
      s.HasDynamic() || s.ElementCount() * ByteWidth(s.type()) < kLeastBytes)
    return std::nullopt;
  std::optional<Parts> p = PartsOf(i, 1);
  if (!p && i->Is(Opcode::Add)) p = PartsOf(i, 0);
  if (!p) return std::nullopt;
  const Instruction* g = p->scatter;
  const int64_t row = s.ElementCount() / s.dim(0), updates = g->operand(2)->shape().ElementCount() / row;
  const bool laid_out = g->shape().HasDefaultLayout() && g->operand(1)->shape().HasDefaultLayout() &&
                        g->operand(2)->shape().HasDefaultLayout() && p->table->shape().HasDefaultLayout();
  return laid_out && updates > 0 && updates * kRowsForUpdate <= s.dim(0) && s.dim(0) <= INT32_MAX ? p : std::nullopt;
}

Expr As(Expr x, const Ints& dims) {
  return x.computation()->Add(Opcode::Bitcast, Shape::Array(x.type(), dims), {x.get()});
}

Computation* Second(Module* m, PrimitiveType t) {
  Computation* f = m->AddComputation("second");
  f->AddParameter(0, Shape::Scalar(t), "old");
  f->set_root(f->AddParameter(1, Shape::Scalar(t), "new"));
  return f;
}

Instruction* Rewritten(Instruction* i) {
  const Parts p = *PartsOf(i);
  Module* m = i->parent()->module();
  const int64_t first_new = m->next_id(), rows = i->shape().dim(0);
  Ints dims = i->shape().dims();
  dims[0] = p.scatter->operand(2)->shape().ElementCount() / (i->shape().ElementCount() / rows);
  const int64_t count = dims[0];
  const PrimitiveType s32 = PrimitiveType::S32;
  Computation* c = i->parent();
  const auto all = [&](int64_t value, const Ints& to) { return BroadcastTo(IntegerIn(c, s32, value), to); };
  const Ints column = {count, 1};
  Expr index = As(p.scatter->operand(1), column);
  if (InfoOf(index.type()).bits < InfoOf(s32).bits) index = ConvertTo(s32, index);
  // What lies outside of the table is dropped: it goes outside of what stands for the table too.
  const Expr inside = (index >= 0.0) & (index < static_cast<double>(rows));
  const Expr place = SelectExpr(inside, ConvertTo(s32, index), all(rows, column));
  const Expr firsts =
      ScatterRows(all(count, {rows}), place, IotaOf(c, s32, {count}, 0), ScalarFunction(m, Opcode::Minimum, s32));
  const Expr first = SelectExpr(inside, As(GatherRows(firsts, place), column), all(count, column));
  const Expr zeros = BroadcastTo(c->AddConstant(Literal::Of(i->shape().type(), 0)), dims);
  // The scatter as it was, into fewer rows.
  Instruction* sums =
      c->AddClone(p.scatter, zeros.shape(),
                  {zeros.get(), As(first, p.scatter->operand(1)->shape().dims()).get(), p.scatter->operand(2)});
  Expr update = GatherRows(sums, first);
  if (p.product) {
    const int64_t factor = p.product->operand(0) == p.scatter ? 1 : 0;
    update = update * *FloatSplat(p.product->operand(factor));
  }
  const Expr old = GatherRows(p.table, place);
  const Expr next = i->Is(Opcode::Subtract) ? old - update : old + update;
  const Expr result = ScatterRows(p.table, place, next, Second(m, i->shape().type()));
  for (Instruction* added : c->AddedSince(first_new)) added->mutable_shape().SetDefaultLayouts();
  return result.get();
}

}  // namespace

absl::StatusOr<bool> CpuSparseUpdateRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return PartsOf(i).has_value(); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> { return Rewritten(i); });
}

}  // namespace kiln
