#include "codegen/cpu/dot_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/cpu/cache_plan.h"
#include "compiler/analysis/panels.h"
#include "compiler/hlo/library_calls.h"

namespace kiln::cpu {
namespace {

absl::StatusOr<DotShape> ShapeOf(const Instruction* i) {
  const Shape &l = i->operand(0)->shape(), &r = i->operand(1)->shape(), &o = i->shape();
  const auto contracts_one = [](const std::optional<Ints>& dims) { return dims && dims->size() == 1; };
  if (l.rank() != 3 || r.rank() != 3 || o.rank() != 3 || !contracts_one(i->attrs().lhs_contracting_dims) ||
      !contracts_one(i->attrs().rhs_contracting_dims))
    return ErrorAt(i, "is not a product of two batched matrices, which dot-decomposer makes of every dot",
                   absl::StatusCode::kInternal);
  const bool a_kfirst = (*i->attrs().lhs_contracting_dims)[0] == 1,
             b_kfirst = (*i->attrs().rhs_contracting_dims)[0] == 1;
  DotShape s{l.type(), r.type(), o.type(), o.dim(0), o.dim(1), o.dim(2), l.dim(a_kfirst ? 1 : 2)};
  s.a_m = a_kfirst ? 1 : s.k;
  s.a_k = a_kfirst ? s.m : 1;
  s.b_k = b_kfirst ? s.n : 1;
  s.b_n = b_kfirst ? 1 : s.k;
  s.b_batch = s.n * s.k;
  const auto& algorithm = i->attrs().algorithm;
  s.precise = AsksForPrecision(i) || (algorithm && algorithm->text != "dot_f16_f16_f16");
  if (const auto panels = PanelsOf(i)) {
    s.panel = s.b_k = panels->width;
    s.b_n = s.k;
    s.panel_group = panels->group;
    s.b_batch = panels->batch_elements();
  }
  return s;
}

// Results of a unit that adds multiples of lines up: at most `strip`, and fewer where that leaves too few units for
// several threads. Of a matrix that fits the second caches of a few cores each thread then has its part in its own; of
// a larger one long lines count for more, and there are as many units as two threads share evenly.
int64_t StripForThreads(const DotShape& s, int64_t strip) {
  constexpr int64_t kWork = 1 << 17;         // that pays for waking a thread that waits for it
  constexpr int64_t kMatrixBytes = 2 << 20;  // the second caches of two cores
  constexpr int64_t kShortest = 256;         // results: shorter pieces of lines are read more slowly
  constexpr int64_t kStep = 64;              // whole vectors, and cache lines that no other thread writes
  const int64_t lines = s.m * s.n, bytes = lines * s.k * ByteWidth(s.m == 1 ? s.b : s.a);
  int64_t units = Pieces::Of(lines, strip).count;
  const int64_t affordable = lines * s.k / kWork;
  if (s.batch * units >= kEnoughUnits || affordable < 2) return strip;
  units = bytes <= kMatrixBytes ? std::max(units, std::min({kEnoughUnits / s.batch, affordable, lines / kShortest}))
                                : (units + 1) / 2 * 2;
  units = std::max<int64_t>(1, units);
  return std::min(strip, (lines + units * kStep - 1) / (units * kStep) * kStep);
}

VectorDotPlan PlanVectorDot(const DotShape& s) {
  // Lines of a unit. They read the vector together where they are short: enough sums to hide the latency of an
  // addition. Longer ones are one stream one after the other, which the machine foresees in a matrix beyond the caches.
  constexpr int64_t kLines = 4, kShortBytes = 1024;
  // Results that stay in the first cache while multiples of lines are added to them: 8 KiB of f32.
  constexpr int64_t kStrip = 2048;
  VectorDotPlan p{};
  p.matrix_is_a = s.n == 1;
  p.lines = p.matrix_is_a ? s.m : s.n;
  p.line_stride = p.matrix_is_a ? s.a_m : s.b_n;
  p.k_stride = p.matrix_is_a ? s.a_k : s.b_k;
  p.together = s.k * ByteWidth(p.matrix_is_a ? s.a : s.b) <= kShortBytes;
  p.pieces = Pieces::Of(p.lines, p.k_stride == 1 ? kLines : StripForThreads(s, std::min<int64_t>(p.lines, kStrip)));
  return p;
}

// Columns that parts of B are multiples of: of the widest tiles, or of B's panels.
int64_t ColumnStep(const DotShape& s) {
  constexpr int64_t kColumns = 64;
  return s.panel ? (kColumns + s.panel - 1) / s.panel * s.panel : kColumns;
}

// Parts of B's columns, where blocks of rows are too few for several threads. `blocks`: of all batches; `alike`: as
// many products beside this one have such parts too.
Pieces ColumnParts(const DotShape& s, int64_t blocks, int64_t alike, bool tiles) {
  // Of few rows B's elements take longer to come than to be multiplied.
  constexpr int64_t kFewRows = 8;
  const int64_t step = ColumnStep(s), work = s.batch * std::max(s.m, s.panel ? kFewRows : 1) * s.k * s.n;
  // Blocks that threads cannot share evenly are cut into parts, which the program's panels make free of cost: thirteen
  // blocks on two threads are seven and six, and twenty-six parts thirteen each.
  constexpr int64_t kSomeBlocks = 4, kEvenUnits = 32;
  const int64_t units = tiles ? kEnoughTileUnits : s.panel && blocks >= kSomeBlocks ? kEvenUnits : kEnoughUnits;
  const int64_t enough = (units / std::max<int64_t>(blocks, 1) + alike - 1) / alike;
  int64_t wanted = std::min(enough, work / (tiles ? kTileUnitWork : kUnitWork));
  if (wanted < 2 || s.n < 2 * step) return {s.n, 1, 0};
  if (s.panel) wanted = enough;  // no part has to make them
  // No last part of a few columns.
  int64_t width = (s.n + wanted * step - 1) / (wanted * step) * step;
  while (s.n % width != 0 && s.n % width < step / 2 && width < s.n) width += step;
  return width < s.n ? Pieces::Of(s.n, width) : Pieces{s.n, 1, 0};
}

// What a product is summed into: integers of few bits are what is left of sums of 32.
PrimitiveType SummedInto(PrimitiveType c) { return IsIntegral(c) && InfoOf(c).bits < 32 ? PrimitiveType::S32 : c; }

// Rows of an A that is read in place, `piece` of its k at a time. So many share a panel of B that making it does not
// count, and all share those of a B that lies far away, if threads have columns enough.
int64_t RowsInPlace(const DotShape& s, int64_t piece, int64_t group, bool tiles, int64_t tile_rows) {
  constexpr int64_t kRows = 768, kTileRows = 4096;
  // Tile products make more panels before they read A, and read it once for all.
  if (tiles) return (s.k <= piece ? kTileRows : kRows) / tile_rows * tile_rows;
  // The program's panels are there: as much of A goes together as stays in the second cache beside one.
  if (s.panel) return RowsWithin(kSlabBytes, piece * ByteWidth(s.a), tile_rows);
  const bool far = group == 1 && s.b_n == 1 && s.k * s.n * ByteWidth(s.b) > kNearBytes;
  return far && s.n >= kEnoughUnits * 2 * ColumnStep(s) ? s.m : kRows / tile_rows * tile_rows;
}

BlockedDotPlan PlanBlockedDot(const CpuLevel& level, const DotShape& s, PrimitiveType sum,
                              std::optional<PrimitiveType> stored, const ProductChoice& choice, int64_t alike,
                              std::optional<int64_t> rows) {
  // Long sums go in pieces of k, so that a block of rows stays in cache.
  constexpr int64_t kWholeSum = 1024, kPieceOfSum = 512;
  constexpr int64_t kSlabPadding = 16;  // elements between rows of a slab, which so begin in different cache sets
  // Results that wait for an epilogue or a conversion: rows of them together, and columns in steps of whole panels.
  constexpr int64_t kMostRows = 512;
  const int64_t step = ColumnStep(s);
  BlockedDotPlan p{};
  // A result of another type cannot be accumulated in place over blocks of k: sums go to a tile of the compute type.
  const PrimitiveType c = SummedInto(s.c);
  const bool exact = sum == PrimitiveType::F32 && IsIntegral(c);  // stored as integers
  p.via_tile = c != s.c || (c != sum && !exact) || (stored && ByteWidth(*stored) != ByteWidth(s.c));
  p.tile_type = exact ? c : sum;
  // Sums are kept in `sum`; A is read as that, or as it is where tile products take it. Those convert a sum over all of
  // k on its way to the result.
  const bool whole_tiles =
      (!s.panel || s.panel_group == Group(s.a)) && TilesApply(level, s.a, s.b, c, s.m, s.n, s.k, false);
  if (whole_tiles && !stored && c == s.c && s.k <= kWholeSum * Group(s.a) &&
      TilesApply(level, s.a, s.b, s.c, s.m, s.n, s.k, true))
    p.via_tile = false;
  p.parts_of_f16 = !s.panel && !choice.vectors && TilesOfPartsApply(level, s.a, s.b, s.c, s.m, s.n, s.k);
  p.pairs_of_f16 = !s.panel && !s.precise && SumsInF16Apply(level, s.a, s.b, s.c, s.m, s.n, s.k);
  p.via_tile = p.via_tile || p.parts_of_f16 || p.pairs_of_f16;
  const bool waits = p.via_tile || stored;
  const bool tiles = whole_tiles || p.parts_of_f16;
  p.held = whole_tiles ? s.a : p.parts_of_f16 ? PrimitiveType::BF16 : HeldInGroups(level, s.a, s.b, c).value_or(sum);
  const PrimitiveType part = p.pairs_of_f16 ? PrimitiveType::F16 : ComponentType(p.held);
  const int64_t group = Group(part), parts = IsComplex(p.held) ? 2 : 1;
  const int64_t held_per_element = p.parts_of_f16 ? 2 : 1;  // in the slab
  const int64_t scale = group / held_per_element, piece = s.k <= kWholeSum * scale ? s.k : kPieceOfSum * scale;
  p.depth = {piece, s.k / piece, s.k % piece};
  p.pack_a = s.a != p.held || s.a_k != 1;
  p.slab_stride = piece * held_per_element + kSlabPadding * group;
  const int64_t tile_rows = tiles ? kTilePair : TileRows(level, part, parts * s.n, s.m, parts * s.k, choice, s.panel);
  constexpr int64_t kSlabOfParts = kLargeSlabBytes + kLargeSlabBytes / 16;  // 512 rows of 512 elements
  int64_t block = p.pack_a ? RowsWithin(p.parts_of_f16 || p.pairs_of_f16 ? kSlabOfParts : kSlabBytes,
                                        p.slab_stride * ByteWidth(p.held), tile_rows)
                           : RowsInPlace(s, piece, group, tiles, tile_rows);
  if (waits) block = std::min(block, std::max<int64_t>(tile_rows, kMostRows / tile_rows * tile_rows));
  if (choice.rows) block = std::min(block, RowsWithin(choice.rows, 1, tile_rows));
  block = std::min(block, s.m);
  // Blocks of about one size, so that threads share them evenly.
  const int64_t blocks = (s.m + block - 1) / block, even = (s.m + blocks - 1) / blocks;
  block = std::min(block, (even + tile_rows - 1) / tile_rows * tile_rows);
  p.parts = rows ? Pieces{s.n, 1, 0} : ColumnParts(s, s.batch * Pieces::Of(s.m, block).count, alike, tiles);
  const int64_t units = alike * s.batch * Pieces::Of(s.m, block).count * p.parts.count;
  block = rows.value_or(RowsForThreads(block, units, alike * s.batch * s.m * s.k * s.n / units, tile_rows, tiles));
  p.rows = Pieces::Of(s.m, block);
  const int64_t width = p.parts.size;
  int64_t columns = width;
  if (waits) {
    const int64_t most = RowsWithin(whole_tiles ? 2 * kSlabBytes
                                    : tiles     ? kSlabBytes * 3 / 2
                                                : kSlabBytes,
                                    block * ByteWidth(sum), step);
    const int64_t pieces = (width + most - 1) / most;
    columns = std::min(width, ((width + pieces - 1) / pieces + step - 1) / step * step);
  }
  p.columns = {columns, width / columns, width % columns};
  p.product.choice = choice;
  p.product.compute = part;
  p.product.tiles = tiles;
  p.product.a_type = ComponentType(s.a);
  p.product.b_type = s.b;
  p.product.c_type = ComponentType(p.via_tile ? p.tile_type : s.c);
  p.product.n = parts * columns;
  p.product.c_stride = parts * (p.via_tile ? columns : s.n);
  p.product.a_stride = parts * (p.pack_a ? p.slab_stride : s.a_m);
  p.product.run = parts * s.k;
  p.product.complex_b = IsComplex(s.b);
  p.product.b_k_stride = s.b_k;
  p.product.b_n_stride = s.b_n;
  p.product.panel_columns = s.panel;
  p.product.panel_group = s.panel_group;
  // Of short sums a result is stored as fast as it is computed. Vectors of other levels are parts of a line.
  constexpr int64_t kShortSum = 32;
  const int64_t bytes = ByteWidth(s.c);
  p.past_caches = s.k <= kShortSum && !waits && !rows && !tiles && !IsComplex(s.c) && s.c == sum &&
                  level.vector_bytes == kCacheLine && s.n * bytes % kCacheLine == 0 &&
                  s.batch * s.m * s.n * bytes >= kLargeResult;
  return p;
}

}  // namespace

absl::StatusOr<DotPlan> PlanDot(const CpuLevel& level, const Instruction* dot, std::optional<PrimitiveType> stored,
                                int64_t alike, std::optional<int64_t> rows) {
  DotPlan plan{};
  ASSIGN_OR_RETURN(plan.shape, ShapeOf(dot));
  const DotShape& s = plan.shape;
  const auto compute = IsComplex(s.c) ? std::optional(s.c) : ComputeType(s.a, s.b, SummedInto(s.c));
  plan.sum = compute.value_or(s.c);
  // Of complex numbers a product of their parts loses digits where a part's terms cancel, as every long sum does; short
  // ones are summed number by number.
  constexpr int64_t kLittleWork = 4096;
  const bool little = IsComplex(s.c) && s.m * s.n * s.k < kLittleWork;
  // Sums of a vector's products may be converted on their way to a narrower float, if what an epilogue stores lies
  // there.
  const bool converted = IsFloat(s.c) && IsFloat(plan.sum) && (!stored || ByteWidth(*stored) == ByteWidth(s.c));
  if (s.k == 0 || !compute || little) {
    plan.algorithm = DotAlgorithm::kPlainLoops;
    plan.sum = s.c;
    plan.units = s.batch;
  } else if (!s.panel && (s.m == 1 || s.n == 1) && !IsComplex(s.c) && (s.c == plan.sum || converted)) {
    plan.vector = PlanVectorDot(s);
    plan.algorithm = plan.vector.k_stride == 1 ? DotAlgorithm::kDotsWithVector : DotAlgorithm::kMultiplesOfLines;
    plan.units = s.batch * plan.vector.pieces.count;
  } else {
    plan.algorithm = DotAlgorithm::kProducts;
    plan.blocked = PlanBlockedDot(level, s, plan.sum, stored, ChoiceOf(level, dot), alike, rows);
    plan.units = s.batch * plan.blocked.rows.count * plan.blocked.parts.count;
  }
  if (s.panel && plan.algorithm != DotAlgorithm::kProducts)
    return ErrorAt(dot, "has panels that no kernel reads", absl::StatusCode::kInternal);
  if (stored && plan.algorithm != DotAlgorithm::kProducts && ByteWidth(*stored) != ByteWidth(s.c))
    return ErrorAt(dot, "has an epilogue of another width", absl::StatusCode::kInternal);
  return plan;
}

}  // namespace kiln::cpu
