#include "compiler/passes/fusion/joins.h"

#include <algorithm>
#include <array>

#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

// Whether all of the operand's innermost dimension is taken at once, and is the innermost of the result.
bool GathersRows(const Instruction* i) {
  const Shape& from = i->operand(0)->shape();
  const int64_t last = from.rank() - 1;
  const Ints& windows = *i->attrs().offset_dims;
  return last >= 0 && from.dim(last) > 1 && from.dim(last) == (*i->attrs().slice_sizes)[static_cast<size_t>(last)] &&
         !windows.empty() && windows.back() == i->shape().rank() - 1;
}

// Whether elements of operands have places that follow those of the loop.
bool IsInOrder(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Slice:
    case Opcode::Reverse:
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::Iota:
      return true;
    case Opcode::Gather:
      return GathersRows(i);
    case Opcode::Pad:
      return !LeavesHoles(i);
    case Opcode::Transpose:
      return KeepsRows(i);
    case Opcode::Bitcast:
    case Opcode::Reshape:
      return DegenerateBitcast(i);
    default:
      return i->IsElementwise();
  }
}

}  // namespace

bool LeavesHolesInRows(const Instruction* i) {
  const Ints& dims = i->shape().dims();
  for (size_t d = dims.size(); d-- > 0;)
    if (dims[d] != 1) return (*i->attrs().padding)[d].interior > 0;
  return false;
}

bool OnlyMoves(const Instruction* c) {
  static constexpr std::array kMovements = {
      Opcode::Slice,     Opcode::DynamicSlice, Opcode::Reverse, Opcode::Parameter, Opcode::Constant,
      Opcode::Broadcast, Opcode::Concatenate,  Opcode::Iota,    Opcode::Gather,    Opcode::Pad,
      Opcode::Transpose, Opcode::Bitcast,      Opcode::Reshape};
  constexpr int64_t kFew = 16;  // elements of the result for one that is computed
  const auto moves = [&](const Instruction* i) {
    const bool moved = std::find(kMovements.begin(), kMovements.end(), i->opcode()) != kMovements.end();
    return moved || (i->IsElementwise() && i->shape().ElementCount() * kFew <= c->shape().ElementCount());
  };
  if (!c->shape().IsArray()) return false;
  if (!c->Is(Opcode::Fusion)) return moves(c);
  const auto& all = (*c->attrs().calls)->instructions();
  return std::all_of(all.begin(), all.end(), [&](const auto& i) { return moves(i.get()); });
}

bool LeavesHoles(const Instruction* i) {
  return std::any_of(i->attrs().padding->begin(), i->attrs().padding->end(),
                     [](const PadDim& d) { return d.interior > 0; });
}

bool DegenerateBitcast(const Instruction* i) {
  if (!i->shape().HasDefaultLayout() || !i->operand(0)->shape().HasDefaultLayout()) return false;
  Ints a, b;
  for (int64_t d : i->shape().dims())
    if (d != 1) a.push_back(d);
  for (int64_t d : i->operand(0)->shape().dims())
    if (d != 1) b.push_back(d);
  return a == b;
}

bool KeepsRows(const Instruction* transpose) {
  const Ints &dims = transpose->shape().dims(), &from = *transpose->attrs().dimensions;
  int64_t last = -1, most = -1;
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != 1) last = from[d], most = std::max(most, from[d]);
  return last == most;
}

int64_t Meetings(const Instruction* i) {
  if (i->Is(Opcode::Concatenate)) {
    const Ints& dims = i->shape().dims();
    const bool inner =
        std::all_of(dims.begin() + (*i->attrs().dimensions)[0] + 1, dims.end(), [](int64_t d) { return d == 1; });
    return inner ? i->operand_count() - 1 : 0;
  }
  int64_t n = 0;
  if (i->Is(Opcode::Fusion))
    for (const auto& x : (*i->attrs().calls)->instructions()) n += Meetings(x.get());
  return n;
}

bool JoinsPieces(const Instruction* p) {
  const Shape& s = p->shape();
  return s.rank() > 1 && s.HasDefaultLayout() && s.ElementCount() > s.dims().back();
}

bool ReadsInOrder(const Instruction* c) {
  if (!RootOf(c)->shape().IsArray() || !RootOf(c)->shape().HasDefaultLayout()) return false;
  if (!c->Is(Opcode::Fusion)) return IsInOrder(c);
  const auto& all = (*c->attrs().calls)->instructions();
  return std::all_of(all.begin(), all.end(), [&](const auto& i) { return IsInOrder(i.get()); });
}

bool GathersFew(const Instruction* c, const Instruction* p) {
  constexpr int64_t kMost = 2;
  return RootOf(c)->Is(Opcode::Gather) && c->shape().ElementCount() <= kMost * p->shape().ElementCount();
}

}  // namespace kiln
