// What is decided about a dot before its kernel is emitted: the algorithm, how the work is split, what lies on the
// stack.
//
// Arithmetic on shapes and a CPU level only, so that tests can read it; dot.cc emits what a plan says.
#pragma once

#include "absl/status/statusor.h"
#include "codegen/cpu/matmul_plan.h"
#include "compiler/hlo/instruction.h"

namespace kiln::cpu {

// [batch, m, k] by [batch, k, n], as dot-decomposer leaves every dot; strides are in elements.
struct DotShape {
  PrimitiveType a, b, c;
  int64_t batch, m, n, k;
  int64_t a_m, a_k, b_k, b_n, b_batch;
  int64_t panel = 0;  // columns of B's panels (analysis/panels.h), which b_k and b_n then are strides of; 0: no panels
  int64_t panel_group = 1;
  bool precise = false;  // the program asks for more than the default precision
};

enum class DotAlgorithm {
  kPlainLoops,        // types that no other serves, and k of 0
  kDotsWithVector,    // m or n is 1, and lines of the matrix are contiguous along k
  kMultiplesOfLines,  // m or n is 1, and they are contiguous along the other dimension
  kProducts,          // by blocks of rows through EmitMatmul
};

// Of a dot of a matrix and a vector: a line is what gives one result, a piece is what a unit computes.
struct VectorDotPlan {
  bool matrix_is_a;
  int64_t lines, line_stride, k_stride;  // of the matrix
  Pieces pieces;                         // of the lines
  bool together;                         // lines of a piece read the vector together
};

struct BlockedDotPlan {
  MatmulShape product;  // of one piece of k; of complex numbers: of their parts
  PrimitiveType held;   // what A holds while it is multiplied
  bool parts_of_f16;  // rows of the slab are the high parts of A's elements, and `depth.size` elements on the low ones
  bool pairs_of_f16;  // rows of the slab have each of A's elements twice, side by side
  bool pack_a;        // blocks of A are copied to the stack first, rows `slab_stride` apart
  int64_t slab_stride;
  bool past_caches;  // the result may go past the caches: EmitPastCaches
  bool via_tile;     // sums lie on the stack until they are whole, as `tile_type`
  PrimitiveType tile_type;
  Pieces rows;     // of A
  Pieces parts;    // of B's columns: a unit computes one piece of rows and one part
  Pieces columns;  // of a whole part, that are finished before the next ones begin; `count` counts whole ones only
  Pieces depth;    // of k; `count` counts whole ones only
};

struct DotPlan {
  DotShape shape;
  DotAlgorithm algorithm;
  PrimitiveType sum;  // what products are summed in
  int64_t units;
  VectorDotPlan vector;    // of the two algorithms with a vector
  BlockedDotPlan blocked;  // of kProducts
};

// `stored`: the type of what an epilogue stores, if there is one. `alike`: so many products of the same A are computed
// together; the units are one's. `rows`: of A that a unit has, with all columns of its results, where that is decided
// elsewhere. Fails where `dot` is not of the form that dot-decomposer gives, or where plain sums would have to be
// stored as another type first.
absl::StatusOr<DotPlan> PlanDot(const CpuLevel& level, const Instruction* dot,
                                std::optional<PrimitiveType> stored = std::nullopt, int64_t alike = 1,
                                std::optional<int64_t> rows = std::nullopt);

}  // namespace kiln::cpu
