// Large sorts of plain numbers become radix sorts, as CUB's DeviceRadixSort does them: by digits, not by comparing.
//
// What qualifies: rows along the last dimension, keys and at most one value of the same extents, and a comparator that
// is "less" or "greater" of two keys; keys of floats only by total order, which is the order of their bits. Below
// kFewest elements a row the network that compares is faster.
#include "absl/strings/str_cat.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

constexpr int64_t kFewest = 16384;

bool KeyServed(PrimitiveType t) {
  const int bits = InfoOf(t).bits;
  if (t == PrimitiveType::F16 || t == PrimitiveType::BF16 || t == PrimitiveType::F32 || t == PrimitiveType::F64)
    return true;
  return IsIntegral(t) && bits >= 8;
}

// Whether the comparator asks for the larger key first; nothing if it asks anything but the keys' order.
std::optional<bool> Descending(const Instruction* sort) {
  const Instruction* test = (*sort->attrs().to_apply)->root();
  if (!test->Is(Opcode::Compare)) return std::nullopt;
  const Direction direction = *test->attrs().direction;
  if (direction != Direction::LT && direction != Direction::GT) return std::nullopt;
  for (const Instruction* o : test->operands())
    if (!o->Is(Opcode::Parameter)) return std::nullopt;
  const int64_t first = *test->operand(0)->attrs().parameter_number,
                second = *test->operand(1)->attrs().parameter_number;
  if (first + second != 1) return std::nullopt;
  const bool total = test->attrs().compare_type == CompareType::TOTALORDER;
  if (IsFloat(sort->operand(0)->shape().type()) && !total) return std::nullopt;
  return (direction == Direction::GT) != (first == 1);
}

bool Qualifies(const Instruction* i) {
  if (!i->Is(Opcode::Sort) || i->operand_count() > 2) return false;
  const Shape& keys = i->operand(0)->shape();
  if (keys.rank() == 0 || (*i->attrs().dimensions)[0] != keys.rank() - 1 || keys.dims().back() < kFewest) return false;
  if (i->operand_count() == 2 && IsComplex(i->operand(1)->shape().type())) return false;
  return KeyServed(keys.type()) && Descending(i).has_value();
}

}  // namespace

absl::StatusOr<bool> SortRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, Qualifies, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    std::vector<Shape> parts;
    for (const Instruction* o : i->operands()) parts.push_back(o->shape());
    parts.push_back(Shape::Array(PrimitiveType::U8, {0}));
    Instruction* call = i->parent()->Add(Opcode::CustomCall, Shape::Tuple(parts), i->operands(), "radix-sort");
    call->mutable_attrs().custom_call_target = attr::Str(kRadixSortTarget);
    call->mutable_attrs().backend_config = absl::StrCat("{\"descending\":", *Descending(i) ? "true" : "false", "}");
    if (i->operand_count() == 1) return PartOf(call, 0).get();
    return TupleOf({PartOf(call, 0), PartOf(call, 1)});
  });
}

}  // namespace kiln
