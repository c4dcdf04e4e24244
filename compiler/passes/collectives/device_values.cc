#include "compiler/passes/collectives/device_values.h"

#include <algorithm>

namespace kiln {
namespace {

// Unsigned 64-bit numbers above the largest signed one are not told from negative ones.
bool Comparable(const Instruction* i, int64_t v) {
  return v >= 0 || IsSigned(i->shape().type()) || BitWidth(i->shape().type()) < 64;
}

std::optional<int64_t> Wrapped(const Instruction* i, uint64_t v) {
  if (i->shape().type() == PrimitiveType::Pred) return v != 0;
  return WrapInt(i->shape().type(), static_cast<int64_t>(v));
}

std::optional<int64_t> Compared(Direction direction, int64_t a, int64_t b) {
  if (direction == Direction::EQ) return a == b;
  if (direction == Direction::NE) return a != b;
  if (direction == Direction::LT) return a < b;
  if (direction == Direction::LE) return a <= b;
  if (direction == Direction::GT) return a > b;
  if (direction == Direction::GE) return a >= b;
  return std::nullopt;
}

std::optional<int64_t> Binary(const Instruction* i, int64_t a, int64_t b) {
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  const bool pred = i->operand(0)->shape().type() == PrimitiveType::Pred;
  switch (i->opcode()) {
    case Opcode::And:
      return Wrapped(i, x & y);
    case Opcode::Or:
      return Wrapped(i, x | y);
    case Opcode::Xor:
      return Wrapped(i, x ^ y);
    default:
      break;
  }
  if (!Comparable(i->operand(0), a) || !Comparable(i->operand(1), b)) return std::nullopt;
  if (i->Is(Opcode::Compare)) return Compared(*i->attrs().direction, a, b);
  if (pred) return std::nullopt;
  switch (i->opcode()) {
    case Opcode::Add:
      return Wrapped(i, x + y);
    case Opcode::Subtract:
      return Wrapped(i, x - y);
    case Opcode::Multiply:
      return Wrapped(i, x * y);
    case Opcode::Maximum:
      return std::max(a, b);
    case Opcode::Minimum:
      return std::min(a, b);
    case Opcode::Divide:
      return b > 0 ? std::optional(a / b) : std::nullopt;
    case Opcode::Remainder:
      return b > 0 ? std::optional(a % b) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<int64_t> DeviceValues::Of(const Instruction* i) {
  if (const auto it = known_.find(i); it != known_.end()) return it->second;
  constexpr int64_t kMostNested = 200;
  if (depth_ == kMostNested) return std::nullopt;
  ++depth_;
  const std::optional<int64_t> v = Compute(i);
  --depth_;
  known_[i] = v;
  return v;
}

std::optional<int64_t> DeviceValues::Entry(const Instruction* slice) {
  const Instruction* table = slice->operand(0);
  if (!table->Is(Opcode::Constant) || slice->shape().ElementCount() != 1 ||
      slice->operand_count() != 1 + table->shape().rank())
    return std::nullopt;
  int64_t linear = 0;
  for (int64_t d = 0; d < table->shape().rank(); ++d) {
    const std::optional<int64_t> at = Of(slice->operand(1 + d));
    if (!at || !Comparable(slice->operand(1 + d), *at)) return std::nullopt;
    linear = linear * table->shape().dim(d) + std::clamp<int64_t>(*at, 0, table->shape().dim(d) - 1);
  }
  return table->literal().Get(linear).i;
}

std::optional<int64_t> DeviceValues::Compute(const Instruction* i) {
  const PrimitiveType t = i->shape().type();
  if (!i->shape().IsArray() || (!IsIntegral(t) && t != PrimitiveType::Pred)) return std::nullopt;
  switch (i->opcode()) {
    case Opcode::ReplicaId:
      return replica_;
    case Opcode::PartitionId:
      return partition_;
    case Opcode::Constant:
      if (i->shape().ElementCount() == 0 || !i->literal().IsSplat()) return std::nullopt;
      return i->literal().Get(0).i;
    case Opcode::Broadcast:
    case Opcode::Copy:
    case Opcode::Reshape:
      return Of(i->operand(0));
    case Opcode::DynamicSlice:
      return Entry(i);
    case Opcode::Convert: {
      const std::optional<int64_t> v = Of(i->operand(0));
      return v ? Wrapped(i, static_cast<uint64_t>(*v)) : v;
    }
    case Opcode::Not: {
      const std::optional<int64_t> v = Of(i->operand(0));
      if (!v) return v;
      return t == PrimitiveType::Pred ? std::optional<int64_t>(*v == 0) : Wrapped(i, ~static_cast<uint64_t>(*v));
    }
    case Opcode::Clamp: {
      const std::optional<int64_t> low = Of(i->operand(0)), v = Of(i->operand(1)), high = Of(i->operand(2));
      if (!low || !v || !high || !Comparable(i, *low) || !Comparable(i, *v) || !Comparable(i, *high))
        return std::nullopt;
      return std::min(std::max(*low, *v), *high);
    }
    case Opcode::Select: {
      const std::optional<int64_t> p = Of(i->operand(0));
      return p ? Of(i->operand(*p ? 1 : 2)) : p;
    }
    default:
      break;
  }
  if (!i->IsElementwise() || i->operand_count() != 2) return std::nullopt;
  const std::optional<int64_t> a = Of(i->operand(0)), b = Of(i->operand(1));
  return a && b ? Binary(i, *a, *b) : std::nullopt;
}

std::optional<Ints> ValuesOnDevices(const Instruction* i) {
  const Module* m = i->parent()->module();
  Ints out;
  for (int64_t r = 0; r < m->replica_count; ++r)
    for (int64_t p = 0; p < m->partition_count; ++p) {
      const std::optional<int64_t> v = DeviceValues(r, p).Of(i);
      if (!v) return std::nullopt;
      out.push_back(*v);
    }
  return out;
}

std::optional<Ints> SliceStarts(const Instruction* slice, int64_t d) {
  std::optional<Ints> starts = ValuesOnDevices(slice->operand(1 + d));
  if (!starts) return starts;
  for (int64_t& s : *starts) {
    if (!Comparable(slice->operand(1 + d), s)) return std::nullopt;
    s = std::clamp<int64_t>(s, 0, slice->operand(0)->shape().dim(d) - slice->shape().dim(d));
  }
  return starts;
}

int64_t SlicedDimension(const Instruction* slice) {
  int64_t found = -1;
  for (int64_t d = 0; d < slice->shape().rank(); ++d) {
    if (slice->shape().dim(d) == slice->operand(0)->shape().dim(d)) continue;
    if (found >= 0) return -1;
    found = d;
  }
  return found;
}

bool TakesPartsInOrder(const Instruction* slice, int64_t d, const std::vector<Ints>& groups) {
  const std::optional<Ints> starts = SliceStarts(slice, d);
  if (!starts) return false;
  const int64_t part = slice->shape().dim(d), whole = slice->operand(0)->shape().dim(d);
  size_t devices = 0;
  for (const Ints& g : groups) {
    if (part * static_cast<int64_t>(g.size()) != whole) return false;
    for (size_t k = 0; k < g.size(); ++k)
      if ((*starts)[static_cast<size_t>(g[k])] != static_cast<int64_t>(k) * part) return false;
    devices += g.size();
  }
  return devices == starts->size();
}

}  // namespace kiln
