#include "compiler/analysis/row_stencil.h"

#include <algorithm>

namespace kiln {
namespace {

// Whether `value` reads `array` by slices alone, each at its own element and a constant distance from it; adds them to
// `slices`.
bool ReadsBySlices(const Instruction* value, const Instruction* array, std::vector<const Instruction*>* slices) {
  absl::flat_hash_set<const Instruction*> depends = {array};
  for (const Instruction* i : value->parent()->PostOrder()) {
    if (i->Is(Opcode::DynamicUpdateSlice) && i->IsRoot()) continue;
    const auto reads = [&](const Instruction* o) { return depends.contains(o); };
    if (std::none_of(i->operands().begin(), i->operands().end(), reads)) continue;
    depends.insert(i);
    if (i->shape().dims() != value->shape().dims() || !i->shape().HasDefaultLayout()) return false;
    if (i->IsElementwise()) {
      if (i->OperandIndex(array) >= 0) return false;
      continue;
    }
    if (!i->Is(Opcode::Slice) || i->operand(0) != array) return false;
    for (const SliceDim& d : *i->attrs().slice)
      if (d.stride != 1) return false;
    slices->push_back(i);
  }
  return depends.contains(value) && !slices->empty();
}

}  // namespace

std::optional<RowStencil> RowStencilOf(const Instruction* update, const Instruction* value, const Instruction* array) {
  constexpr int64_t kShortest = 32;          // elements of a row
  constexpr int64_t kMostBytes = 128 << 10;  // of the copies
  constexpr int64_t kBlocks = 64, kRowsForEachEdge = 32;
  const Shape &s = array->shape(), &u = value->shape();
  if (!update->Is(Opcode::DynamicUpdateSlice) || s.rank() < 2 || s.HasDynamic() || !s.HasDefaultLayout() ||
      s.ElementCount() == 0 || u.ElementCount() == 0)
    return std::nullopt;
  const Instruction* start = update->operand(2);
  for (int64_t d = 0; d < s.rank(); ++d)
    if (!update->operand(2 + d)->Is(Opcode::Constant)) return std::nullopt;
  std::vector<const Instruction*> slices;
  if (!ReadsBySlices(value, array, &slices)) return std::nullopt;
  RowStencil out;
  out.rows = u.dim(0);
  out.first = std::clamp<int64_t>(start->literal().Get(0).i, 0, s.dim(0) - out.rows);
  out.before = out.after = 0;
  for (const Instruction* i : slices) {
    const int64_t distance = (*i->attrs().slice)[0].start - out.first;
    out.before = std::max(out.before, -distance);
    out.after = std::max(out.after, distance);
  }
  const int64_t reach = out.before + out.after, row = s.ElementCount() / s.dim(0);
  if (row < kShortest || (out.before + 1) * (s.ByteSize() / s.dim(0)) > kMostBytes) return std::nullopt;
  out.block = std::max((out.rows + kBlocks - 1) / kBlocks, kRowsForEachEdge * std::max<int64_t>(reach, 1));
  out.blocks = (out.rows + out.block - 1) / out.block;
  return out;
}

}  // namespace kiln
