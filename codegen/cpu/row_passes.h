// What kernels of rows and of columns share: the loops over a row that its reductions need, and their accumulators.
//
// A row's elements follow one another (fusion_rows.cc) or lie `inner` elements apart (fusion_columns.cc). There is a
// loop over the row for its reductions, one after the other or as many at once as do not wait for each other, and one
// more for the results.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "codegen/cpu/extremes.h"
#include "codegen/cpu/fusion.h"

namespace kiln::cpu {

// A loop over the row: of reductions, or the last one (none).
struct RowPass {
  std::vector<const Instruction*> reduces;
  // What is computed in it, and the values of the row that it reads.
  absl::flat_hash_set<const Instruction*> needed;
};

// Where the loops are in an array of a shape.
using PlaceIn = std::function<Index(const Shape&)>;

struct RowPasses {
  // `together`: reductions that do not wait for each other share a loop.
  static absl::StatusOr<RowPasses> Of(const FusionBody& fusion, bool together);

  int64_t rows = 0, length = 0;
  std::vector<const Instruction*> outputs;
  std::vector<RowPass> passes;
  std::vector<const Instruction*> of_row;  // computed once a row, from its reductions
  std::vector<std::pair<const Instruction*, Slots>> kept;

  bool IsWhole(const Shape& s) const { return s.IsArray() && s.ElementCount() == rows * length; }
  static constexpr int64_t kMostKeptBytes = 128 << 10;
  // Transcendental values that several loops read.
  std::vector<const Instruction*> WorthKeeping(const Computation& f) const;
  // From now on they are kept, those of which `count` elements fit the buffers.
  void KeepInBuffers(FusionBody& fusion, int64_t count);
  // In the loop of pass `p`: kept values are read from their `slot`, or else computed and put there for loops behind.
  absl::Status UseKept(FusionBody& fusion, size_t p, const PlaceIn& at, llvm::Value* slot) const;
  // The results of whole rows, or those that are a value a row. All are computed before any is stored: a result may lie
  // where an operand lay.
  bool HasOutputs(bool whole) const;
  absl::Status StoreOutputs(FusionBody& fusion, bool whole, const PlaceIn& at) const;
};

// Indices of position `linear` in an array of `dims`.
std::vector<llvm::Value*> Delinearize(Ir& ir, llvm::Value* linear, const Ints& dims);

// Accumulators of a reduction of one array. A plain sum in a narrow float is accumulated unrounded in f32.
class RowSums {
 public:
  RowSums(Ir& ir, ElementEmitter& elements, const Instruction* reduce, int64_t count);
  absl::Status Begin(llvm::Value* slot) const;
  // Adds the element at `at` of what is reduced.
  absl::Status Add(llvm::Value* slot, const Index& at) const;
  // Adds the sum of another slot, of accumulators of the same reduction. Not of extremes.
  absl::Status AddSum(llvm::Value* slot, const RowSums& from, llvm::Value* of) const;
  Val Result(llvm::Value* slot) const;

 private:
  absl::Status Add(llvm::Value* slot, Val v) const;
  ExtremeKeys::Pair SoFar(llvm::Value* slot) const { return {highest_.Get(slot).re, least_.Get(slot).re}; }
  void Put(llvm::Value* slot, const ExtremeKeys::Pair& p) const {
    highest_.Put(slot, {p.highest});
    least_.Put(slot, {p.least});
  }

  Ir& ir_;
  ElementEmitter& elements_;
  const Instruction* reduce_;
  ExtremeKeys keys_;
  Slots sum_, highest_, least_;
};

}  // namespace kiln::cpu
