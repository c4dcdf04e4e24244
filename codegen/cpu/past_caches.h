// Results that are larger than what caches keep, stored past them.
//
// A line that is stored the usual way is read from memory first, and drives out another before anybody reads it. Large
// results are computed in pieces, each in a buffer that stays in the first cache, and go from there to memory line by
// line. That is code of its own: memory that begins between lines is written as ever, and so are results that lie where
// an operand does, whose lines are at hand already. Guarantees: the same results either way.
#pragma once

#include <functional>
#include <vector>

#include "codegen/cpu/cache_plan.h"
#include "codegen/cpu/fusion.h"

namespace kiln::cpu {

class PastCaches {
 public:
  // Elements of a piece, at most.
  static constexpr int64_t kPiece = 256;

  // Of `results`, the fusion's, in rows of `row` elements that lie in one piece.
  PastCaches(FusionBody& fusion, const std::vector<const Instruction*>& results, int64_t row);

  // Whether any result is large enough, and its rows are whole lines.
  bool Apply() const { return apply_; }

  // Emits `loops` twice; in the first (`past`) Piece may be used.
  void Emit(const std::function<void(bool past)>& loops);

  // The `count` elements from `first` on (of all in memory), which are whole lines: `element` computes and stores each.
  void Piece(llvm::Value* first, int64_t count, const std::function<void(llvm::Value* k)>& element);

 private:
  bool IsPast(const Shape& result, int64_t row) const;

  FusionBody& fusion_;
  Ir& ir_;
  std::vector<Shape> shapes_;
  std::vector<llvm::Value*> buffers_;  // of the results; null: it is stored as ever
  bool apply_ = false;
};

// Emits `loops` twice: where all of `results` begin at a line (`past`: whole lines may be stored past the caches), and
// where one does not.
void EmitPastCaches(Ir& ir, const std::vector<llvm::Value*>& results, const std::function<void(bool past)>& loops);
// Stores a line so. The kernel ends with FencePastCaches: other threads may read what it stored as soon as it returns.
// One fence a kernel: each waits until all lines are in memory.
void StorePastCaches(Ir& ir, llvm::Value* line, llvm::Value* to);
// Says that the kernel calls a function that does.
void CallsPastCaches(Ir& ir);
void FencePastCaches(Ir& ir);

}  // namespace kiln::cpu
