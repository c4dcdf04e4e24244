// Collectives of packed elements narrower than a byte move bytes: elements that share a byte lie along the fastest
// dimension, and become one element of 8 bits before, and again themselves behind.
//
// Stays: what is not packed, rows that do not end with a byte, pieces of an all-to-all that do not, and collectives of
// several arrays.
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

constexpr int64_t kByte = 8;

int64_t PerByte(const Shape& s) { return kByte / InfoOf(s.type()).bits; }

bool IsPacked(const Shape& s) {
  return s.IsArray() && s.rank() > 0 && !s.HasDynamic() && InfoOf(s.type()).bits < kByte && s.layout() &&
         s.layout()->extras.find(absl::StrCat("E(", InfoOf(s.type()).bits, ")")) != std::string::npos;
}

// The dimension along which elements share a byte.
int64_t Fastest(const Shape& s) { return s.layout()->minor_to_major[0]; }

bool MovesElements(const Instruction* i) {
  return i->Is(Opcode::AllGather) || i->Is(Opcode::AllToAll) || i->Is(Opcode::CollectiveBroadcast) ||
         i->Is(Opcode::CollectivePermute);
}

// Into how many pieces an all-to-all cuts dimension `d`; nothing if its groups differ.
std::optional<int64_t> Pieces(const Module& m, const Instruction* i, int64_t d) {
  if (!i->Is(Opcode::AllToAll) || *i->attrs().dimensions != Ints{d}) return 1;
  const auto groups = DeviceGroups(*i, m.replica_count, m.partition_count);
  if (!groups.ok() || groups->empty()) return std::nullopt;
  return static_cast<int64_t>((*groups)[0].size());
}

bool IsWanted(const Module& m, const Instruction* i) {
  if (!MovesElements(i) || i->operand_count() != 1 || !IsPacked(i->shape()) || !IsPacked(i->operand(0)->shape()))
    return false;
  const Shape& x = i->operand(0)->shape();
  const int64_t d = Fastest(x);
  const std::optional<int64_t> pieces = Pieces(m, i, d);
  return pieces && d == Fastest(i->shape()) && x.dim(d) % (*pieces * PerByte(x)) == 0;
}

// Dimension `d` in groups that share a byte, which come last: the order of dimensions, and back.
Ints GroupsLast(int64_t rank, int64_t d) {
  Ints order(static_cast<size_t>(rank + 1));
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + d + 1);
  order.push_back(d + 1);
  return order;
}

Instruction* Bitcast(const Expr& x, PrimitiveType type, const Ints& dims) {
  return x.get()->parent()->Add(Opcode::BitcastConvert, Shape::Array(type, dims), {x.get()});
}

Instruction* OfBytes(Instruction* i) {
  const Shape &x = i->operand(0)->shape(), &out = i->shape();
  const int64_t n = PerByte(x), d = Fastest(x);
  const auto at = static_cast<size_t>(d);
  Ints split = x.dims(), bytes = x.dims(), moved = out.dims();
  bytes[at] /= n;
  moved[at] /= n;
  split[at] /= n;
  split.insert(split.begin() + d + 1, n);
  const Ints order = GroupsLast(x.rank(), d);
  Instruction* before = Bitcast(TransposeBy(ReshapeTo(i->operand(0), split), order), PrimitiveType::U8, bytes);
  Instruction* move = i->parent()->AddClone(i, Shape::Array(PrimitiveType::U8, moved), {before});
  Ints groups = moved, back(order.size());
  groups.push_back(n);
  for (size_t k = 0; k < order.size(); ++k) back[static_cast<size_t>(order[k])] = static_cast<int64_t>(k);
  Instruction* elements = ReshapeTo(TransposeBy(Bitcast(move, x.type(), groups), back), out.dims()).get();
  elements->mutable_shape() = out;
  return elements;
}

}  // namespace

absl::StatusOr<bool> SubByteCollectiveNormalization(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [&](const Instruction* i) { return IsWanted(m, i); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> { return OfBytes(i); });
}

}  // namespace kiln
