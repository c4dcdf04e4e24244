// Operations that take elements of an array by their place: windows, padding, slices, joins, reversals.
//
// What: their rules (op_rule.h), and which stretch of an operand one device's part of the work takes.
// Why: along a dimension of kind kWindow or kWindowSum a part of the operation needs more than the part of the operand,
//   and what is more lies with neighbours.
// Guarantees: the operation over a stretch, with the stretch's padding in the place of its own, is the part.
#pragma once

#include <optional>
#include <vector>

#include "compiler/sharding/op_rule.h"

namespace kiln {

// The device at place i takes `count` elements from first + (shift + i * step) / over on; those outside of the array
// stand for what the operation pads with. `low` and `high`: the padding that is left to the operation. Where elements
// stand `over` apart and parts begin between them, the operation gives over - 1 results more, and the part begins
// behind (shift + i * step) % over of them.
struct Stretch {
  int64_t first = 0, step = 0, count = 0, low = 0, high = 0, over = 1, shift = 0;
};

// concatenate(x[k..], x[..k]): element j is element j + `by` of `of`, around the end.
struct Rotation {
  const Instruction* of = nullptr;
  size_t dim = 0;
  int64_t by = 0;
};
std::optional<Rotation> RotationOf(const Instruction& i);

// A pad, or a slice of a pad, as one padding, which may be negative.
struct Padded {
  const Instruction *of = nullptr, *value = nullptr;
  std::vector<PadDim> padding;
};
std::optional<Padded> PaddedOf(const Instruction& i);

// A reduction of windows over a padded array, which is padded with what windows are: one window with holes.
struct Pooled {
  const Instruction* of = nullptr;
  std::vector<WindowDim> window;
};
std::optional<Pooled> PooledOf(const Instruction& i);

// The gradient of a maximum over windows of an array, whose padding is part of the windows.
struct Unpooled {
  const Instruction *by = nullptr, *of = nullptr;
  std::vector<WindowDim> window;
};
std::optional<Unpooled> UnpooledOf(const Instruction& i);

// An update of most of an array where it is known to lie: elements from `starts` on become those of `update`, or the
// two are combined.
struct Placed {
  const Instruction *into = nullptr, *update = nullptr;
  Ints starts;
  std::optional<Opcode> combiner;
};
std::optional<Placed> PlacedOf(const Instruction& i);

// What the operands of the operation's rule are: its own, or those of the view that it is.
std::vector<const Instruction*> RuleOperands(const Instruction& i);

// The rule of an operation of this page; absent for one that has to be computed whole.
std::optional<OpRule> WindowRuleOf(const Instruction& i);
// Whether a part takes more of operand `k` than its part: a convolution's kernel is just cut.
bool TakesStretch(const Instruction& i, size_t k);
// Along dimension `d` of the rule's operand `k`, where `parts` devices share the work; absent where their parts are not
// alike.
std::optional<Stretch> StretchOf(const Instruction& i, size_t k, size_t d, int64_t parts);

}  // namespace kiln
