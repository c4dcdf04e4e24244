// Sizes where elements move: broadcasts, transposes, slices, concatenations, batches, and where sizes are stated.
#include <algorithm>

#include "compiler/passes/dynamic_padder/sized_computation.h"

namespace kiln::padding {
namespace {

absl::Status PadSetDimensionSize(SizedComputation& f, Instruction* i) {
  Instruction* x = i->operand(0);
  const int64_t d = (*i->attrs().dimensions)[0];
  Sizes sizes = f.Of(x);
  sizes[d] = i->operand(1);
  if (!i->shape().is_dynamic(d)) sizes.erase(d);
  // The array is the operand's own; a copy keeps the two sizes apart.
  Shape s = x->shape();
  StripDynamic(&s);
  Instruction* same = f.computation()->Add(Opcode::Copy, s, {x});
  same->set_loc(i->loc());
  return f.Replace(i, same, {{{}, sizes}});
}

Sizes OfTranspose(const Instruction* i, const Sizes& in) {
  Sizes out;
  for (int64_t d = 0; d < i->shape().rank(); ++d)
    if (const auto it = in.find((*i->attrs().dimensions)[d]); it != in.end()) out[d] = it->second;
  return out;
}

Sizes OfSlice(SizedComputation& f, const Instruction* i, const Sizes& in) {
  Sizes out;
  for (const auto& [d, s] : in) {
    const SliceDim& r = (*i->attrs().slice)[d];
    const Expr rest = Expr(s) - static_cast<double>(r.start);
    Expr count = (rest + static_cast<double>(r.stride - 1)) / static_cast<double>(r.stride);
    count = Binary(Opcode::Minimum, count, f.Int(i->shape().dim(d)));
    out[d] = SelectExpr(rest < 0.0, f.Int(0), count).get();
  }
  return out;
}

absl::Status PadPad(SizedComputation& f, Instruction* i) {
  Instruction* x = i->operand(0);
  Sizes out;
  for (const auto& [d, s] : f.Of(x)) {
    const PadDim& p = (*i->attrs().padding)[d];
    const Expr between = Binary(Opcode::Maximum, Expr(s) - 1.0, f.Int(0)) * static_cast<double>(p.interior);
    const Expr total = Expr(s) + between + static_cast<double>(p.low + p.high);
    out[d] = Binary(Opcode::Maximum, total, f.Int(0)).get();
  }
  i->ReplaceOperand(0, f.Masked(x, AllDims(x->shape()), i->operand(1)));
  f.Set(i, out);
  return absl::OkStatus();
}

absl::Status PadConcatenate(SizedComputation& f, Instruction* i) {
  const int64_t along = (*i->attrs().dimensions)[0];
  bool joined = false;
  Sizes out;
  for (const Instruction* o : i->operands())
    for (const auto& [d, s] : f.Of(o)) {
      joined = joined || d == along;
      if (d != along) out[d] = s;
    }
  if (!joined) {
    f.Set(i, out);
    return absl::OkStatus();
  }
  // Each part overwrites what lies past the size of the one before it.
  Expr at = f.Int(0), whole = BroadcastTo(f.Zero(i), i->shape().dims());
  for (Instruction* o : i->operands()) {
    std::vector<Expr> starts(i->shape().rank(), f.Int(0));
    starts[along] = at;
    whole = UpdateOf(whole, o, starts);
    at = at + f.SizeOf(o, along);
  }
  out[along] = at.get();
  return f.Replace(i, whole.get(), {{{}, out}});
}

absl::Status PadReverse(SizedComputation& f, Instruction* i) {
  const Sizes in = f.Of(i->operand(0));
  const Ints dims = i->shape().dims();
  const std::vector<Instruction*> users = i->users();
  const bool root = i->IsRoot();
  Expr y = i;
  for (int64_t d : *i->attrs().dimensions) {
    if (!in.count(d)) continue;
    // What lay past the size is in front now: start behind it.
    const Expr twice = ConcatOf({y, BroadcastTo(f.Zero(i), dims)}, d);
    std::vector<Expr> starts(i->shape().rank(), f.Int(0));
    starts[d] = f.Int(dims[d]) - Expr(in.at(d));
    y = DynamicSliceOf(twice, starts, dims);
  }
  f.Set(y.get(), in);
  if (y.get() == i) return absl::OkStatus();
  for (Instruction* u : users) i->ReplaceUseWith(u, y.get());
  if (root) f.computation()->set_root(y.get());
  return absl::OkStatus();
}

// Sizes of leading dimensions, where an operation treats each of what they hold alike; the last `whole` are its own.
absl::Status PadBatch(SizedComputation& f, Instruction* i, const Instruction* like, int64_t whole) {
  Sizes out;
  for (const Instruction* o : i->operands())
    for (const auto& [d, s] : f.Of(o)) {
      if (d >= o->shape().rank() - whole) return RefuseDynamic(f, i);
      if (o == like) out[d] = s;
    }
  if (!i->shape().IsTuple()) {
    f.Set(i, out);
    return absl::OkStatus();
  }
  LeafSizes parts;
  for (size_t k = 0; k < i->shape().tuple().size(); ++k) parts[{static_cast<int64_t>(k)}] = out;
  f.SetAll(i, std::move(parts));
  return absl::OkStatus();
}

absl::Status PadSolve(SizedComputation& f, Instruction* i) {
  // Right-hand sides are apart from each other, and past their size nothing is read.
  Instruction* b = i->operand(1);
  const int64_t sides = b->shape().rank() - (i->attrs().left_side.value_or(false) ? 1 : 2);
  const Sizes in = f.Of(b);
  Sizes batch = in;
  batch.erase(sides);
  f.Set(b, batch);
  const absl::Status status = PadBatch(f, i, b, 2);
  f.Set(b, in);
  if (status.ok()) f.Set(i, in);
  return status;
}

}  // namespace

absl::Status PadShapeOperation(SizedComputation& f, Instruction* i) {
  Instruction* x = i->operand(0);
  const Sizes in = f.Of(x);
  Sizes out;
  switch (i->opcode()) {
    case Opcode::SetDimensionSize:
      return PadSetDimensionSize(f, i);
    case Opcode::GetDimensionSize:
      return f.Replace(i, f.SizeOf(x, (*i->attrs().dimensions)[0]).get(), {});
    case Opcode::Reshape:
    case Opcode::DynamicReshape:
      return PadReshape(f, i);
    case Opcode::Pad:
      return PadPad(f, i);
    case Opcode::Concatenate:
      return PadConcatenate(f, i);
    case Opcode::Reverse:
      return PadReverse(f, i);
    case Opcode::Gather:
    case Opcode::Scatter:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
      return PadIndexed(f, i);
    case Opcode::Cholesky:
      return PadBatch(f, i, x, 2);
    case Opcode::TriangularSolve:
      return PadSolve(f, i);
    case Opcode::TopK:
      return PadBatch(f, i, x, 1);
    case Opcode::AllReduce:
      if (i->operand_count() != 1) return RefuseDynamic(f, i);
      out = in;
      break;
    case Opcode::BitcastConvert:
      for (const auto& [d, s] : in)
        if (d < i->shape().rank()) out[d] = s;
      break;
    case Opcode::Broadcast:
      for (const auto& [d, s] : in) out[(*i->attrs().dimensions)[d]] = s;
      break;
    case Opcode::Transpose:
      out = OfTranspose(i, in);
      break;
    case Opcode::Slice:
      out = OfSlice(f, i, in);
      break;
    default:
      return RefuseDynamic(f, i);
  }
  f.Set(i, out);
  return absl::OkStatus();
}

}  // namespace kiln::padding
