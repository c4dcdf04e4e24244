// Integers that depend on nothing but the device that computes them.
//
// What: evaluates offsets and predicates that a program computes from replica-id, partition-id, constants, tables of
//   constants and arithmetic, for one device, exactly as that device would.
// Guarantees: a value is what every run computes; whatever depends on anything else, or is nested more than 200 deep,
// has
//   none.
// Cost: each instruction behind the value is visited once for each device.
#pragma once

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

class DeviceValues {
 public:
  DeviceValues(int64_t replica, int64_t partition) : replica_(replica), partition_(partition) {}

  // What every element of `i`, of an integer type or pred, is on the device.
  std::optional<int64_t> Of(const Instruction* i);

 private:
  std::optional<int64_t> Compute(const Instruction* i);
  std::optional<int64_t> Entry(const Instruction* slice);

  int64_t replica_, partition_, depth_ = 0;
  absl::flat_hash_map<const Instruction*, std::optional<int64_t>> known_;
};

// The value of `i` on every device, in order of their numbers; nullopt if some device has none.
std::optional<Ints> ValuesOnDevices(const Instruction* i);

// Where each device's dynamic slice begins along dimension `d`, within bounds as slicing puts it.
std::optional<Ints> SliceStarts(const Instruction* dynamic_slice, int64_t d);

// The only dimension that `slice` does not take whole, or -1.
int64_t SlicedDimension(const Instruction* slice);

// Whether the dynamic slice takes of the equal parts along dimension `d`, on each device, the one at the device's place
// in its group of `groups`.
bool TakesPartsInOrder(const Instruction* dynamic_slice, int64_t d, const std::vector<Ints>& groups);

}  // namespace kiln
