// Reductions and products: what lies past a size must not take part.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/passes/dynamic_padder/sized_computation.h"

namespace kiln::padding {

Expr NeutralOf(SizedComputation& f, const Computation* reducer, Instruction* init) {
  const Instruction* r = reducer->root();
  const PrimitiveType t = init->shape().type();
  const bool plain = r->operand_count() == 2 && r->operand(0)->Is(Opcode::Parameter) &&
                     r->operand(1)->Is(Opcode::Parameter) && r->operand(0) != r->operand(1);
  if (plain && r->Is(Opcode::Add)) return f.computation()->AddConstant(Literal::Of(t, IsFloat(t) ? -0.0 : 0.0));
  if (plain && r->Is(Opcode::Multiply)) return f.computation()->AddConstant(Literal::Of(t, 1));
  if (plain && r->Is(Opcode::Or)) return f.Zero(init);
  return init;
}

namespace {

bool Holds(const Ints& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

absl::Status PadReduce(SizedComputation& f, Instruction* i) {
  const Ints& dims = *i->attrs().dimensions;
  const int64_t n = i->operand_count() / 2;
  LeafSizes out;
  for (int64_t k = 0; k < n; ++k) {
    Instruction* x = i->operand(k);
    Sizes left;
    int64_t kept = 0;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      if (Holds(dims, d)) continue;
      if (const auto it = f.Of(x).find(d); it != f.Of(x).end()) left[kept] = it->second;
      ++kept;
    }
    out[n > 1 ? ShapeIndex{k} : ShapeIndex{}] = left;
    if (f.IsDynamic(x)) i->ReplaceOperand(k, f.Masked(x, dims, NeutralOf(f, *i->attrs().to_apply, i->operand(n + k))));
  }
  f.SetAll(i, std::move(out));
  return absl::OkStatus();
}

// floor((size + padding - window) / stride) + 1 positions, none if the window does not fit.
Expr Positions(SizedComputation& f, Expr size, const WindowDim& w) {
  Expr padded = size;
  if (w.lhs_dilate > 1)
    padded = Binary(Opcode::Maximum, (size - 1.0) * static_cast<double>(w.lhs_dilate) + 1.0, f.Int(0));
  const Expr room = padded + static_cast<double>(w.pad_low + w.pad_high - w.DilatedSize());
  const Expr count = room / static_cast<double>(w.stride) + 1.0;
  return SelectExpr(room < 0.0, f.Int(0), count);
}

absl::Status PadReduceWindow(SizedComputation& f, Instruction* i) {
  const int64_t n = i->operand_count() / 2;
  LeafSizes out;
  for (int64_t k = 0; k < n; ++k) {
    Instruction* x = i->operand(k);
    if (!f.IsDynamic(x)) continue;
    Sizes sizes;
    for (const auto& [d, s] : f.Of(x)) sizes[d] = Positions(f, s, (*i->attrs().window)[d]).get();
    // Past its size lies what pads the array: the initial value.
    i->ReplaceOperand(k, f.Masked(x, AllDims(x->shape()), i->operand(n + k)));
    out[n > 1 ? ShapeIndex{k} : ShapeIndex{}] = sizes;
  }
  f.SetAll(i, std::move(out));
  return absl::OkStatus();
}

absl::Status PadDot(SizedComputation& f, Instruction* i) {
  const Attributes& a = i->attrs();
  const Ints lc = a.lhs_contracting_dims.value_or(Ints()), rc = a.rhs_contracting_dims.value_or(Ints()),
             lb = a.lhs_batch_dims.value_or(Ints()), rb = a.rhs_batch_dims.value_or(Ints());
  Instruction *x = i->operand(0), *y = i->operand(1);
  const Sizes in_x = f.Of(x), in_y = f.Of(y);
  // A size that only one side knows holds for both: what lies past it must not meet anything.
  Sizes mask_x = in_x, mask_y = in_y;
  for (size_t k = 0; k < lc.size(); ++k) {
    if (in_x.count(lc[k])) mask_y.insert({rc[k], in_x.at(lc[k])});
    if (in_y.count(rc[k])) mask_x.insert({lc[k], in_y.at(rc[k])});
  }
  f.Set(x, mask_x);
  Instruction* l = f.Masked(x, lc, f.Zero(x));
  f.Set(x, in_x);
  f.Set(y, mask_y);
  Instruction* r = f.Masked(y, rc, f.Zero(y));
  f.Set(y, in_y);
  i->ReplaceOperand(0, l);
  i->ReplaceOperand(1, r);
  Sizes out;
  int64_t at = 0;
  for (size_t k = 0; k < lb.size(); ++k, ++at) {
    if (in_x.count(lb[k])) out[at] = in_x.at(lb[k]);
    if (in_y.count(rb[k])) out[at] = in_y.at(rb[k]);
  }
  const auto free = [&](const Shape& s, const Sizes& from, const Ints& batch, const Ints& contracted) {
    for (int64_t d = 0; d < s.rank(); ++d) {
      if (Holds(batch, d) || Holds(contracted, d)) continue;
      if (from.count(d)) out[at] = from.at(d);
      ++at;
    }
  };
  free(x->shape(), in_x, lb, lc);
  free(y->shape(), in_y, rb, rc);
  f.Set(i, out);
  return absl::OkStatus();
}

// Features that both sides sum over have one size; the kernel's windows are of its extents.
absl::Status PadConvolution(SizedComputation& f, Instruction* i) {
  const Attributes& a = i->attrs();
  const ConvDimensionNumbers& n = *a.dim_labels;
  Instruction *x = i->operand(0), *kernel = i->operand(1);
  const bool grouped = a.batch_group_count.value_or(1) != 1 || a.feature_group_count.value_or(1) != 1;
  Sizes out;
  for (const auto& [d, s] : f.Of(x)) {
    if (d == n.input_batch && a.batch_group_count.value_or(1) == 1) out[n.output_batch] = s;
    for (size_t k = 0; k < n.input_spatial.size(); ++k)
      if (d == n.input_spatial[k]) out[n.output_spatial[k]] = Positions(f, s, (*a.window)[k]).get();
  }
  const Sizes of_kernel = f.Of(kernel);
  Sizes of_input = f.Of(x);
  for (const auto& [d, s] : of_kernel) {
    if (grouped || (d != n.kernel_input && d != n.kernel_output)) return RefuseDynamic(f, i);
    if (d == n.kernel_output) out[n.output_feature] = s;
    if (d == n.kernel_input) of_input.insert({n.input_feature, s});
  }
  if (const auto it = of_input.find(n.input_feature); it != of_input.end() && !grouped) {
    Sizes masked = of_kernel;
    masked.insert({n.kernel_input, it->second});
    f.Set(kernel, masked);
    i->ReplaceOperand(1, f.Masked(kernel, {n.kernel_input}, f.Zero(kernel)));
    f.Set(kernel, of_kernel);
  }
  const Sizes in = f.Of(x);
  f.Set(x, of_input);
  i->ReplaceOperand(0, f.Masked(x, AllDims(x->shape()), f.Zero(x)));
  f.Set(x, in);
  f.Set(i, out);
  return absl::OkStatus();
}

// The least element of windows that ask for the greatest, and the other way round; nothing: windows ask for neither.
std::optional<Expr> NeverSelected(SizedComputation& f, const Instruction* i) {
  const Instruction* r = (*i->attrs().select)->root();
  const bool plain = r->Is(Opcode::Compare) && r->operand(0)->Is(Opcode::Parameter) &&
                     r->operand(1)->Is(Opcode::Parameter) && r->operand(0) != r->operand(1);
  if (!plain || *r->operand(0)->attrs().parameter_number != 0) return std::nullopt;
  const PrimitiveType t = i->operand(0)->shape().type();
  const Direction direction = *r->attrs().direction;
  if (!IsFloat(t) || (direction != Direction::GE && direction != Direction::LE)) return std::nullopt;
  const double infinity = std::numeric_limits<double>::infinity();
  return Expr(f.computation()->AddConstant(Literal::Of(t, direction == Direction::GE ? -infinity : infinity)));
}

// Past its size the operand is not selected, and the source changes nothing.
absl::Status PadSelectAndScatter(SizedComputation& f, Instruction* i) {
  Instruction *x = i->operand(0), *source = i->operand(1);
  const Sizes in = f.Of(x);
  if (f.IsDynamic(x)) {
    const std::optional<Expr> least = NeverSelected(f, i);
    if (!least) return RefuseDynamic(f, i);
    i->ReplaceOperand(0, f.Masked(x, AllDims(x->shape()), *least));
  }
  i->ReplaceOperand(1, f.Masked(source, AllDims(source->shape()), NeutralOf(f, *i->attrs().scatter, i->operand(2))));
  f.Set(i, in);
  return absl::OkStatus();
}

}  // namespace

absl::Status PadContraction(SizedComputation& f, Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Reduce:
      return PadReduce(f, i);
    case Opcode::ReduceWindow:
      return PadReduceWindow(f, i);
    case Opcode::Dot:
      return PadDot(f, i);
    case Opcode::SelectAndScatter:
      return PadSelectAndScatter(f, i);
    default:
      return PadConvolution(f, i);
  }
}

}  // namespace kiln::padding
