// Blocked, vectorised matrix product: the engine under dot and convolution.
//
// Computes C[m, n] = sum over k of A[m, k] * B[k, n] for one block of rows. A is read in place, row by row: element
// (m, k) lies at a + m * a_stride + position(k), where k runs over nested segments (the taps of a convolution) with a
// contiguous run innermost. B is packed panel by panel into stack memory, or read in place where that is as good.
// All extents are constants of the program, so tails are kernels of their own and addresses fold.
#pragma once

#include <vector>

#include "codegen/llvm/ir.h"

namespace kiln::cpu {

struct Segment {
  int64_t count, a_stride;
};

struct MatmulShape {
  PrimitiveType compute;  // what A holds in memory here: F32 or F64, or BF16 or an 8-bit integer for tile products
  PrimitiveType b_type;   // of B in memory; converted while packing
  PrimitiveType c_type;   // of the result in memory
  int64_t n, c_stride;
  int64_t a_stride;
  std::vector<Segment> segments;  // outermost first
  int64_t run;                    // contiguous elements of A innermost
  int64_t b_k_stride, b_n_stride;
  bool accumulate = false;  // add to what C holds
  bool reverse_b = false;   // segments walk B backwards (a convolution's window reversal)
  int64_t K() const {
    int64_t k = run;
    for (const Segment& s : segments) k *= s.count;
    return k;
  }
};

// True if tile products serve this product of `a` and `b` summed into `c` over runs of `run`.
bool TilesApply(const CpuLevel& level, PrimitiveType a, PrimitiveType b, PrimitiveType c, int64_t rows, int64_t n,
                int64_t run);

// Rows that one register tile holds for `n` columns.
int64_t TileRows(const CpuLevel& level, PrimitiveType compute, int64_t n, int64_t m);

// A group of row ranges that share one pass over B: `a` and `c` point at the first row of each range.
struct RowRange {
  llvm::Value *a, *c;
};

class Matmul {
 public:
  Matmul(Ir& ir, const MatmulShape& shape, int64_t rows) : ir_(ir), s_(shape), rows_(rows) {}
  // `ranges` yields the i-th of `count` row ranges, each of `rows` rows (a constant).
  void Emit(llvm::Value* b, llvm::Value* count, const std::function<RowRange(llvm::Value*)>& ranges);

 private:
  // What a product is for C: its new value, something added to it, or what the caller says.
  enum class Sum { kNew, kAdded, kEither };
  // C tile of mr rows x `cols` columns: (a, b, c, new) -> void. Emitted once per variant.
  llvm::Function* Micro(int64_t mr, int64_t nv, int64_t cols, const std::vector<Segment>& segments, int64_t run,
                        int64_t b_stride, Sum sum);
  // The same by tile products: 16 x 16 results at a time, rows and columns of the last tile overlapping the one before.
  void EmitTiles(llvm::Value* b, llvm::Value* count, const std::function<RowRange(llvm::Value*)>& ranges);
  void PackPanel(llvm::Value* b, llvm::Value* k0, const std::vector<Segment>& segments, int64_t run,
                 llvm::Value* col_value, int64_t cols, int64_t width, llvm::Value* panel);

  Ir& ir_;
  MatmulShape s_;
  int64_t rows_;
};

}  // namespace kiln::cpu
