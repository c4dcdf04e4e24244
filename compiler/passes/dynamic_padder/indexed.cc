// Gathers, scatters and slices at positions that are values. Windows fit by bounds; what lies past a size reads as
// zeros, and what is written there is not there.
#include <algorithm>

#include "compiler/passes/dynamic_padder/sized_computation.h"

namespace kiln::padding {
namespace {

bool Holds(const Ints& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

// The dimensions of indices that count windows, in the order that results and updates have them.
Ints IndexDims(const Instruction* indices, const Instruction* i) {
  Ints out;
  for (int64_t d = 0; d < indices->shape().rank(); ++d)
    if (d != i->attrs().index_vector_dim.value_or(-1)) out.push_back(d);
  return out;
}

absl::Status PadGather(SizedComputation& f, Instruction* i) {
  const Attributes& a = i->attrs();
  Instruction *x = i->operand(0), *indices = i->operand(1);
  const Ints offset = a.offset_dims.value_or(Ints()), collapsed = a.collapsed_slice_dims.value_or(Ints()),
             batching = a.operand_batching_dims.value_or(Ints());
  const Sizes in = f.Of(x), of_indices = f.Of(indices);
  Ints windows, parts;  // operand dimensions that offset dimensions walk, and those of which windows hold a part
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (!Holds(collapsed, d) && !Holds(batching, d)) windows.push_back(d);
    if ((*a.slice_sizes)[d] != x->shape().dim(d)) parts.push_back(d);
  }
  const Ints counted = IndexDims(indices, i);
  Sizes out;
  size_t window = 0, index = 0;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const bool moves = Holds(offset, d);
    const int64_t from = moves ? windows[window++] : counted[index++];
    const Sizes& sizes = moves ? in : of_indices;
    if (const auto it = sizes.find(from); it != sizes.end() && (!moves || !Holds(parts, from))) out[d] = it->second;
  }
  i->ReplaceOperand(0, f.Masked(x, parts, f.Zero(x)));
  f.Set(i, out);
  return absl::OkStatus();
}

// Updates past a size get indices that are outside of any array.
absl::Status PadScatter(SizedComputation& f, Instruction* i) {
  const Attributes& a = i->attrs();
  const int64_t n = i->operand_count() / 2;
  Instruction* indices = i->operand(n);
  const Ints windows = a.update_window_dims.value_or(Ints()), counted = IndexDims(indices, i);
  Sizes of_indices = f.Of(indices);
  LeafSizes out;
  for (int64_t k = 0; k < n; ++k) {
    const Instruction *x = i->operand(k), *updates = i->operand(n + 1 + k);
    Ints walked;
    for (int64_t d = 0; d < x->shape().rank(); ++d)
      if (!Holds(a.inserted_window_dims.value_or(Ints()), d) && !Holds(a.input_batching_dims.value_or(Ints()), d))
        walked.push_back(d);
    size_t window = 0, index = 0;
    for (int64_t d = 0; d < updates->shape().rank(); ++d) {
      const bool moves = Holds(windows, d);
      const int64_t to = moves ? walked[window++] : counted[index++];
      const auto size = f.Of(updates).find(d);
      if (size == f.Of(updates).end()) continue;
      // Of a window, what is not there must not be there in the operand.
      if (moves && (!f.Of(x).count(to) || x->shape().dim(to) != updates->shape().dim(d))) return RefuseDynamic(f, i);
      if (!moves) of_indices.insert({to, size->second});
    }
    out[n > 1 ? ShapeIndex{k} : ShapeIndex{}] = f.Of(x);
  }
  if (!of_indices.empty()) {
    // The largest of few bits may be within the array.
    const PrimitiveType t = indices->shape().type();
    Instruction* wide = IsUnsigned(t) && BitWidth(t) < 32 ? ConvertTo(PrimitiveType::S32, indices).get() : indices;
    const Sizes given = f.Of(wide);
    f.Set(wide, of_indices);
    i->ReplaceOperand(n, f.Masked(wide, counted, IntegerIn(f.computation(), wide->shape().type(), -1)));
    f.Set(wide, given);
  }
  f.SetAll(i, std::move(out));
  return absl::OkStatus();
}

absl::Status PadDynamicSlice(SizedComputation& f, Instruction* i) {
  Instruction* x = i->operand(0);
  Sizes out;
  Ints parts;
  for (const auto& [d, s] : f.Of(x)) {
    if (i->shape().dim(d) == x->shape().dim(d))
      out[d] = s;
    else
      parts.push_back(d);
  }
  i->ReplaceOperand(0, f.Masked(x, parts, f.Zero(x)));
  f.Set(i, out);
  return absl::OkStatus();
}

// Past the size of the update the array keeps what it has.
absl::Status PadDynamicUpdateSlice(SizedComputation& f, Instruction* i) {
  Instruction *x = i->operand(0), *update = i->operand(1);
  if (f.IsDynamic(update)) {
    std::vector<Instruction*> from = {x};
    from.insert(from.end(), i->operands().begin() + 2, i->operands().end());
    Instruction* old =
        f.computation()->Add(Opcode::DynamicSlice, Shape::Array(x->shape().type(), update->shape().dims()), from);
    old->mutable_attrs().dynamic_slice_sizes = update->shape().dims();
    i->ReplaceOperand(1, f.Masked(update, AllDims(update->shape()), old));
  }
  const Sizes in = f.Of(x);
  f.Set(i, in);
  return absl::OkStatus();
}

}  // namespace

absl::Status PadIndexed(SizedComputation& f, Instruction* i) {
  if (i->Is(Opcode::Gather)) return PadGather(f, i);
  if (i->Is(Opcode::Scatter)) return PadScatter(f, i);
  return i->Is(Opcode::DynamicSlice) ? PadDynamicSlice(f, i) : PadDynamicUpdateSlice(f, i);
}

}  // namespace kiln::padding
