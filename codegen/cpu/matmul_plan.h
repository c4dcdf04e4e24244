// Plans of the matrix product: its shape, the registers it uses, and the blocks of k that it sums at a time.
//
// Everything here is arithmetic on extents: no LLVM, so that tests read what was decided without emitting code.
// matmul.h emits what a plan says.
#pragma once

#include <optional>
#include <vector>

#include "codegen/cpu/choice_plan.h"
#include "codegen/llvm/cpu_level.h"
#include "compiler/hlo/types.h"

namespace kiln::cpu {

// Stack that copies of A may take. It stays in the second cache, with room for a panel of B.
inline constexpr int64_t kSlabBytes = 256 << 10;
// A that is read in place takes no stack, and a copy of the least that a convolution can work on may take more.
inline constexpr int64_t kLargeSlabBytes = 4 * kSlabBytes;
// Of a B that is found in the second cache, beside A and the result, when it is read again.
inline constexpr int64_t kNearBytes = 512 << 10;
// Rows of a tile register (AMX), the bytes of each, and of a sum.
inline constexpr int64_t kTileExtent = 16, kTileRowBytes = 64, kTileSumBytes = 4;
// Rows and columns that tile products sum together: two tiles share what is loaded of the other operand.
inline constexpr int64_t kTilePair = 2 * kTileExtent;
// Products that are summed as F16 one after the other, and such sums that are added as F16 before they are added as
// F32.
inline constexpr int64_t kChainOfF16 = 16, kChainsOfF16 = 4;

struct Segment {
  int64_t count, a_stride;
};

// Which part of B's elements is multiplied. A float of 11 bits (F16) is the sum of two bf16: its first 8 bits, and the
// rest.
enum class PartOfB { kAll, kHigh, kLow };

struct MatmulShape {
  // What A holds in memory here: F32, F64, or what HeldInGroups and TilesApply say. F16: short sums are F16
  // (SumsInF16Apply), and A holds each element twice, side by side.
  PrimitiveType compute;
  PrimitiveType a_type;  // of A in the program: `compute` may hold another
  PrimitiveType b_type;  // of B in memory; converted while packing
  PrimitiveType c_type;  // of the result in memory
  int64_t n, c_stride;
  int64_t a_stride;
  std::vector<Segment> segments;  // outermost first
  int64_t run;                    // contiguous elements of A innermost
  int64_t b_k_stride, b_n_stride;
  // Where B holds the taps of a convolution apart from its features: rows of one tap, `b_k_stride` apart, and the
  // distance of one tap's from the next one's. 0: rows of all taps are `b_k_stride` apart.
  int64_t b_tap_rows = 0, b_tap_stride = 0;
  // B lies as panels of so many columns (analysis/panels.h); 0: as rows. `b_k_stride` is then between rows of a panel,
  // and `b_n_stride` for each column between the beginnings of panels.
  int64_t panel_columns = 0;
  int64_t panel_group = 1;  // elements of k that they have side by side
  // B holds complex numbers of which `compute` is a part: its row of (re, im) is two rows of the product, that and
  // (-im, re), so that rows of A and of the result are complex numbers as they lie in memory.
  bool complex_b = false;
  bool tiles = false;        // tile products serve it
  bool accumulate = false;   // add to what C holds
  bool past_caches = false;  // whole vectors of the result, which are lines, go to memory past the caches
  bool reverse_b = false;    // segments walk B backwards (a convolution's window reversal)
  PartOfB part_of_b = PartOfB::kAll;
  ProductChoice choice;
  int64_t K() const;
};

// Bytes of an element of A as it is held.
inline int64_t WidthOfA(const MatmulShape& s) {
  return (s.compute == PrimitiveType::F16 ? 2 : 1) * ByteWidth(s.compute);
}

// Elements of k in a row of a tile.
inline int64_t TileDepth(const MatmulShape& s) { return kTileRowBytes / ByteWidth(s.compute); }

// An extent in pieces of one size, the last of which is `tail` long if that is not 0.
struct Pieces {
  int64_t size = 1, count = 1, tail = 0;
  static Pieces Of(int64_t extent, int64_t size) { return {size, (extent + size - 1) / size, extent % size}; }
};

// Units of a product that several threads share well, and the multiply-adds that one is worth. Tile products compute
// more of them in the same time, and each unit makes its panels of B.
inline constexpr int64_t kEnoughUnits = 8, kUnitWork = 1 << 20;
inline constexpr int64_t kEnoughTileUnits = 4, kTileUnitWork = 16 << 20;

// Rows of a block where blocks of `rows` are too few: `units` that there are with it, `work` of each.
int64_t RowsForThreads(int64_t rows, int64_t units, int64_t work, int64_t tile_rows, bool tiles = false);

// Whether B lies as rows of single elements, those of the sum one behind the other.
bool LiesAsRows(const MatmulShape& shape);

// Elements of `segments` with `run` innermost.
int64_t ElementsOf(const std::vector<Segment>& segments, int64_t run);

// The type products of `a` and `b` are summed in for a result of `c`, or nullopt where only the plain loop serves;
// complex numbers are not asked for.
std::optional<PrimitiveType> ComputeType(PrimitiveType a, PrimitiveType b, PrimitiveType c);

// What A is held as where the level's dot instructions serve products of `a` and `b` summed into `c`: BF16 or an 8-bit
// integer, which hold every value of both types; nullopt where they do not serve.
std::optional<PrimitiveType> HeldInGroups(const CpuLevel& level, PrimitiveType a, PrimitiveType b, PrimitiveType c);

// Elements of k that a lane multiplies and adds at a time: 1, 2 of BF16, 4 of bytes.
int64_t Group(PrimitiveType compute);

// What products of elements that are held as `compute` are summed in.
PrimitiveType SumType(PrimitiveType compute);

// What is added to each sum of a row of A for every element of the row: products of bytes take one unsigned and one
// signed operand, so that B may be held 128 above or below its value.
int64_t OffsetOfB(const MatmulShape& shape);

// True if tile products serve this product of `a` and `b` summed into `c` over runs of `run`. `in_one_sum`: no part of
// k can be added to the result later.
bool TilesApply(const CpuLevel& level, PrimitiveType a, PrimitiveType b, PrimitiveType c, int64_t rows, int64_t n,
                int64_t run, bool in_one_sum);

// True if tile products serve this product of `a` and `b`, which are F16, by the parts of both: four products of bf16,
// each of them exact. Where an element is infinite the parts may give a NaN in place of the sum, and nothing else.
bool TilesOfPartsApply(const CpuLevel& level, PrimitiveType a, PrimitiveType b, PrimitiveType c, int64_t rows,
                       int64_t n, int64_t run);

// True if products of `a` and `b`, which are F16, are summed as F16 in chains, whose sums are added as F32: twice as
// many in an instruction. Where a chain overflows the sum is not finite.
bool SumsInF16Apply(const CpuLevel& level, PrimitiveType a, PrimitiveType b, PrimitiveType c, int64_t rows, int64_t n,
                    int64_t run);

// True if lanes are better filled with elements of k than with columns.
bool FewColumnsApply(const CpuLevel& level, const MatmulShape& shape);

// True if the lines of B, which lie along k, are better read as they lie than made into panels for so many rows.
bool FewRowsApply(const CpuLevel& level, const MatmulShape& shape, int64_t rows);
// How many columns are then computed side by side.
int64_t ColumnsTogether(const CpuLevel& level, int64_t rows);

// True if the lines of a large B, which lie along its columns, are better read in long pieces than down its columns.
bool FewLinesApply(const CpuLevel& level, const MatmulShape& shape, int64_t rows);

// Sums in one vector register.
int64_t Lanes(const CpuLevel& level, PrimitiveType t);

// Rows that one register tile holds of `m` for `n` columns and sums over `k`; `panel_columns` as a MatmulShape has it.
int64_t TileRows(const CpuLevel& level, PrimitiveType compute, int64_t n, int64_t m, int64_t k,
                 const ProductChoice& choice, int64_t panel_columns);

// Rows of A, a multiple of what a tile takes, whose copies or elements of `row_bytes` fit into `bytes`; at least a
// tile.
int64_t RowsWithin(int64_t bytes, int64_t row_bytes, int64_t tile_rows);

// Rows of a panel of B that hold `run` rows of B.
inline int64_t PanelRows(const MatmulShape& s, int64_t run) { return (run + Group(s.compute) - 1) / Group(s.compute); }

// A part of k whose products are summed in registers before C is touched.
struct SumBlock {
  std::vector<Segment> segments;
  int64_t run;
  int64_t pieces;  // blocks of the run, `run` apart
  int64_t start;   // in the run, of the first
};

struct MatmulPlan {
  int64_t lanes;               // elements of a vector
  int64_t tile_rows;           // of a register tile
  int64_t tile_columns;        // of a register tile and of a panel of B
  std::vector<Segment> outer;  // segments that are walked around the blocks, outermost first
  int64_t period;              // rows of B between steps of the innermost of them
  int64_t repeat;              // their steps together
  std::vector<SumBlock> blocks;
  int64_t panel_rows;  // of the longest block
  int64_t span;        // columns whose panels are made, and taken by rows of A, together
  bool direct;         // B is read in place: its rows, or its panels
  bool taps_together;  // blocks hold all taps of some features: B has the taps of a feature side by side
};

// The plan of a product of vectors for ranges of `rows` rows; `ranges`: how many, if that is known.
MatmulPlan PlanMatmul(const CpuLevel& level, const MatmulShape& shape, int64_t rows, std::optional<int64_t> ranges);

}  // namespace kiln::cpu
