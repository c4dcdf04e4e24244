#include "compiler/passes/loops/stored_whole.h"

#include <algorithm>

#include "compiler/passes/loops/step_arrays.h"

namespace kiln {
namespace {

// Whether the array of element `k` is read by its store alone, and what the store gives by the next iteration alone.
bool IsOnlyStored(const Instruction* loop, int64_t k) {
  const Computation* body = *loop->attrs().body;
  const Instruction* store = body->root()->operand(k);
  if (!ElementReaders((*loop->attrs().condition)->parameter(0), k).empty()) return false;
  const std::vector<Instruction*>& given = body->root()->operands();
  if (store->users() != std::vector<Instruction*>{body->root()} || std::count(given.begin(), given.end(), store) != 1)
    return false;
  for (const Instruction* e : ElementReaders(body->parameter(0), k))
    if (e->users() != std::vector<Instruction*>{const_cast<Instruction*>(store)} || e != store->operand(0) ||
        store->operand(1) == e)
      return false;
  return true;
}

}  // namespace

std::vector<int64_t> ElementsStoredWhole(const Instruction* loop) {
  if (!HasFlatBodies(loop)) return {};
  const std::optional<Induction> count = FindInduction(loop);
  if (!count) return {};
  const StepArrays steps(loop, *count);
  std::vector<int64_t> out;
  for (int64_t k : steps.filled())
    if (IsOnlyStored(loop, k)) out.push_back(k);
  return out;
}

}  // namespace kiln
