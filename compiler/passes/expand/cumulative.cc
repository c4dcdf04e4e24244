#include "compiler/passes/expand/cumulative.h"

#include "compiler/passes/expand/scalar_body.h"

namespace kiln {
namespace {

Expr Window(Expr x, Expr init, Computation* f, int64_t dim) {
  const int64_t n = x.shape().dim(dim);
  Instruction* w = x.computation()->Add(Opcode::ReduceWindow, x.shape(), {x.get(), init.get()});
  attr::Win window(static_cast<size_t>(x.shape().rank()));
  window[static_cast<size_t>(dim)].size = n;
  window[static_cast<size_t>(dim)].pad_low = n - 1;
  w->mutable_attrs().window = std::move(window);
  w->mutable_attrs().to_apply = f;
  return w;
}

Expr PadWith(Expr x, Expr value, int64_t dim, int64_t low, int64_t high) {
  Ints dims = x.shape().dims();
  dims[dim] += low + high;
  Instruction* p = x.computation()->Add(Opcode::Pad, Shape::Array(x.type(), dims), {x.get(), value.get()});
  attr::Padding padding(dims.size());
  padding[static_cast<size_t>(dim)] = {low, high, 0};
  p->mutable_attrs().padding = std::move(padding);
  return p;
}

}  // namespace

int64_t CumulativeDim(const Instruction* i, int64_t longest) {
  if (!i->Is(Opcode::ReduceWindow) || i->operand_count() != 2 || !i->shape().IsArray() ||
      i->shape().dims() != i->operand(0)->shape().dims() || !IsScalarBody(*i->attrs().to_apply))
    return -1;
  switch ((*i->attrs().to_apply)->root()->opcode()) {
    case Opcode::Add:
    case Opcode::Multiply:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::And:
    case Opcode::Or:
      break;
    default:
      return -1;
  }
  int64_t dim = -1;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const WindowDim& w = (*i->attrs().window)[static_cast<size_t>(d)];
    const int64_t n = i->shape().dim(d);
    if (w == WindowDim()) continue;
    WindowDim whole;
    whole.size = n;
    whole.pad_low = n - 1;
    if (dim >= 0 || !(w == whole) || n <= longest) return -1;
    dim = d;
  }
  return dim;
}

Expr Cumulate(Expr x, Expr init, Computation* f, int64_t dim, int64_t block) {
  const Ints dims = x.shape().dims();
  const int64_t n = dims[dim];
  if (n <= block) return Window(x, init, f, dim);
  const int64_t blocks = (n + block - 1) / block;
  Ints split = dims;
  split[dim] = blocks;
  split.insert(split.begin() + dim + 1, block);
  Expr inside = Window(ReshapeTo(PadWith(x, init, dim, 0, blocks * block - n), split), init, f, dim + 1);
  Ints from(split.size(), 0), to = split, totals = dims;
  from[dim + 1] = block - 1;
  totals[dim] = blocks;
  Expr before = Cumulate(ReshapeTo(SliceOf(inside, from, to), totals), init, f, dim, block);
  // What all blocks before each one give: the totals one further, from init.
  Ints last = totals;
  last[dim] = blocks - 1;
  before = PadWith(SliceOf(before, Ints(dims.size(), 0), last), init, dim, 1, 0);
  Ints kept;
  for (int64_t d = 0; d < static_cast<int64_t>(split.size()); ++d)
    if (d != dim + 1) kept.push_back(d);
  Expr all = ApplyScalarBody(f, {BroadcastTo(before, split, kept), inside})[0];
  Ints flat = dims;
  flat[dim] = blocks * block;
  return SliceOf(ReshapeTo(all, flat), Ints(dims.size(), 0), dims);
}

}  // namespace kiln
