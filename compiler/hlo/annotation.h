// Custom calls that are notes of a front end on a value: how it is sharded, where it lies, how it is laid out.
//
// Guarantees: in a verified module each has one operand and gives it back.
// Source: the targets that XLA's Sharding, host-offloading and layout passes know.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// "Sharding", "xla.sdy.FuncResultSharding".
bool IsShardingAnnotation(const Instruction& i);
// These, "annotate_device_placement", "MoveToDevice", "MoveToHost", "PinToDevice", "PinToDeviceSram",
// "LayoutConstraint".
bool IsAnnotation(const Instruction& i);
// Of these, that the value shall lie in the host's memory.
bool PutsOnHost(const Instruction& i);

// Not notes, but known by their targets too: where a region that is written for each partition begins or ends. The
// operands are whole arrays or tiles of them (compiler/hlo/sharding.h reads which).
enum class Boundary { kNone, kInwards, kOutwards };
Boundary BoundaryOf(const Instruction& i);

}  // namespace kiln
