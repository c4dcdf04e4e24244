// Which values share storage by their meaning, and where each value is used.
//
// A leaf (instruction, tuple index) either defines a value or passes one on: tuples, elements of tuples, bitcasts, loop
// state that the body hands through, branch arguments. Uses() follows a value through all of these.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

struct Leaf {
  Instruction* instruction;
  ShapeIndex index;
  bool operator==(const Leaf& o) const { return instruction == o.instruction && index == o.index; }
  template <typename H>
  friend H AbslHashValue(H h, const Leaf& l) {
    return H::combine(std::move(h), l.instruction->id(), l.index);
  }
};

// True for what only names values that others make: tuples, their elements, bitcasts.
inline bool PassesThrough(const Instruction* i) {
  return i->Is(Opcode::Tuple) || i->Is(Opcode::GetTupleElement) || i->Is(Opcode::Bitcast);
}

// The leaf that `l` takes its storage from inside the same computation, or `l` itself if it defines its value there.
// A loop's result is its own definition unless the body hands the element through unchanged.
Leaf SourceOf(const Leaf& l);
// True if the loop body returns element `index` of its parameter unchanged.
bool IsLoopInvariant(const Instruction* loop, const ShapeIndex& index);
// Instructions of the computation that read the value of `l` (not tuples, elements or bitcasts), plus loops and
// branches that receive it. `reaches_root`: the value is (part of) the computation's result.
std::vector<Instruction*> UsesOf(const Leaf& l, bool* reaches_root = nullptr);

// Operand that the instruction's kernel overwrites with its result: the array of a dynamic-update-slice or scatter.
// -1 if there is none.
int64_t InPlaceOperand(const Instruction* i, int64_t output = 0);
// True if the kernel of fusion `i`, an update, copies what it reads of the updated array before it overwrites that
// (cpu-row-stencil-fusion).
bool KeepsOldRows(const Instruction* i);
// True if any of its results lies in an operand that it overwrites.
bool UpdatesInPlace(const Instruction* i);
// True if fusion `i`, a loop whose results all have one shape, reads operand `k` only at the element it writes.
bool ReadsAtOwnElement(const Instruction* i, int64_t k);
// True if fusion `i` computes row by row (row fusions and triton-softmax-rewriter) and reads operand `k`, which has the
// rows of the results, in the row that it writes and in no other: what is written of a row is written after its
// reductions.
bool ReadsInOwnRow(const Instruction* i, int64_t k);
// True if the operand is read in one of these ways and takes the bytes of result `output`, so that both may be one
// buffer.
bool MayShareWithOperand(const Instruction* i, int64_t k, int64_t output = 0);

}  // namespace kiln
