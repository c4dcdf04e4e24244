// Register tiles: the functions that a matrix product spends its time in, one for each form of a tile.
//
// A tile's sums stay in vector registers over a block of k. The code is written as the machine should run it, and
// LLVM's optional passes leave it alone.
#pragma once

#include <functional>
#include <vector>

#include "codegen/cpu/matmul_plan.h"
#include "codegen/llvm/ir.h"

namespace kiln::cpu {

// What a product is for C: its new value, something added to it, or what the caller says.
enum class Sum { kNew, kAdded, kEither };

struct MicroTile {
  int64_t rows, vectors, lanes, columns;  // the last vector may be partly beyond the columns
  std::vector<Segment> segments;          // of k, outermost first
  int64_t run;
  int64_t b_stride;  // words between rows of B: elements, or groups of them
  int64_t b_run;     // rows of B between steps of the innermost segment
  Sum sum;
  int64_t ahead = 0;        // bytes between rows of B that are fetched for the next panel meanwhile; 0: none
  int64_t sharing = 1;      // tiles that fetch them together, each as many rows as that
  int64_t fetchers = 0;     // tiles that together fetch as much from one place as each of them reads of B; 0: none
  int64_t copies = 0;       // words between rows of the panel that the tile makes of what it reads of B; 0: none
  bool far_result = false;  // what sums are added to lies beyond the second cache
  bool far_rows = false;    // so does A: the tile fetches the rows behind its own
};

// What turns four bytes of B into those with the offset that OffsetOfB says, by exclusive or.
inline constexpr uint32_t kOffsetOfBytes = 0x80808080;

// Where a step of a block of k begins in a row of A, and which row of B it begins with.
struct BlockStart {
  llvm::Value *a, *k;
};

// A step over k, whose products are summed in registers, and what its sums are for C.
struct SumStep {
  const SumBlock& block;
  llvm::Value* step;  // of the block
  BlockStart start;
  Sum sum;
  llvm::Value* is_first;  // i1: the sums are C's new value
};

// Emits `body` for all steps over k. Those of a block count the pieces of the run fastest, then the peeled segments
// from the innermost out.
void ForSumSteps(Ir& ir, const MatmulShape& shape, const MatmulPlan& plan,
                 const std::function<void(const SumStep&)>& body);

// What an element of A is in memory.
llvm::Type* ElementOfA(Ir& ir, const MatmulShape& shape);

// Where row `row` of B begins, in elements.
llvm::Value* OffsetOfRow(Ir& ir, const MatmulShape& shape, llvm::Value* row);

// Gives the tile registers the form in which the MicroKernels of tile products take `rows` rows of A, `columns` columns
// and `run` elements of k at a time, at most as many as a row of a tile has.
void ConfigureTiles(Ir& ir, const MatmulShape& shape, int64_t rows, int64_t columns, int64_t run);

// Gives the tile registers back.
void ReleaseTiles(Ir& ir);

// The body of the function below where tile products serve `shape`.
void EmitTileKernel(Ir& ir, const MatmulShape& shape, const MicroTile& tile, llvm::Function* f);

// The same where short sums are F16.
void EmitF16Kernel(Ir& ir, const MatmulShape& shape, const MicroTile& tile, llvm::Function* f);

// `sum`, a vector of f32, as bf16 to nearest even.
llvm::Value* RoundedToBf16(Ir& ir, llvm::Value* sum);

// The function  void(ptr a, ptr b, ptr c, i1 new)  for `tile` of a product of `shape`, emitted at its first use. Where
// B is held with an offset, `ptr first` follows: what the sums of each row begin with (s32). With `copies`, which has
// no offset, `ptr panel` does. With `ahead` or `fetchers`, `ptr next` follows: what is fetched first.
llvm::Function* MicroKernel(Ir& ir, const MatmulShape& shape, const MicroTile& tile);

}  // namespace kiln::cpu
