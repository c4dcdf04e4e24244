// What the kernels of sorts share: the rows of an array, and the words that keys are compared as.
//
// What: a key is an unsigned word of its own order. Guarantees: equal words are equal keys; KeyIsElement says of which
// keys ElementOfKey gives the element back, if it has a key of its own: of zeros that are equal +0 does, of NaNs one.
// Cost: four instructions a key, and as many back.
#pragma once

#include "codegen/llvm/ir.h"
#include "compiler/hlo/sort_key.h"

namespace kiln {

// Rows along one dimension; elements of a row are `inner` apart.
struct SortRows {
  explicit SortRows(const Instruction* sort);
  int64_t n = 1, outer = 1, inner = 1;
  int64_t count() const { return outer * inner; }
  // The element that begins a row.
  llvm::Value* Begin(Ir& ir, llvm::Value* row) const;
};

// Of what is compared, as an unsigned number.
int KeyBits(const SortKey& key);
// Whether rows with NaNs have an order that the key does not tell.
bool MayBeUnordered(const SortKey& key);

// The key of an element, KeyBits wide. `unordered`: a bit that becomes true at a NaN, of keys that may be.
absl::StatusOr<llvm::Value*> EmitKey(Ir& ir, const SortKey& key, const Val& element, llvm::Value* unordered);

// Whether the key of an element is that element: where nothing else is sorted keys move alone.
bool KeyIsElement(const SortKey& key);
// The bits of the element that has the key `word`, as they lie in memory.
llvm::Value* ElementOfKey(Ir& ir, const SortKey& key, llvm::Value* word);
// Whether several elements may have one key.
bool KeysMayMeet(const SortKey& key);

// Whether operand `k` says of each element where in its row it lies.
bool IsPlaces(const Instruction* sort, size_t k);

// Many short rows, each in a lane of vectors of `level`.
bool SortsSideBySide(const Instruction* sort, const CpuLevel& level);

struct Body;
absl::StatusOr<int64_t> EmitSortSideBySide(Body& body);

}  // namespace kiln
