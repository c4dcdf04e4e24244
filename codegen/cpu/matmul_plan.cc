#include "codegen/cpu/matmul_plan.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "absl/types/span.h"
#include "codegen/cpu/cache_plan.h"

namespace kiln::cpu {
namespace {

// Accumulators that leave registers for rows of B and an element of A.
int64_t Accumulators(const CpuLevel& l) { return l.vector_registers == 32 ? 24 : 12; }

// Whether so many rows of A, of all ranges, read a B of `bytes` in place: a copy would not pay. Columns of a B beyond
// the second cache come from far away, a few lines of each page at a time, and wide panels take more of them.
bool AreFew(int64_t rows, int64_t bytes) {
  constexpr int64_t kFewRows = 56, kFewRowsOfLarge = 12, kSecondCache = 1 << 20;
  return rows <= (bytes > kSecondCache ? kFewRowsOfLarge : kFewRows);
}

// Vectors of columns in a tile: enough accumulators to hide latency, few enough to stay in registers. Wide tiles of few
// rows read A in place without rows that fight for a cache set, and fill and drain faster than tall ones. Tall ones
// serve few rows (`few`), which so read B less often.
int64_t TileVectors(const CpuLevel& l, PrimitiveType t, int64_t n, int64_t m, bool few, const ProductChoice& choice) {
  const int64_t vectors = (n + Lanes(l, t) - 1) / Lanes(l, t);
  const int64_t budget = Accumulators(l), most = l.vector_registers == 32 ? 6 : 4;
  if (choice.vectors) return std::max<int64_t>(1, std::min({choice.vectors, most, vectors}));
  // One tile takes few rows, so that B is read once; panels of about one width, so that none is left a narrow one.
  if (m <= budget / 2) {
    const int64_t widest = std::max<int64_t>(1, std::min({most, budget / std::max<int64_t>(m, 1), vectors}));
    const int64_t panels = std::max<int64_t>(1, (vectors + widest - 1) / widest);
    return std::max<int64_t>(1, (vectors + panels - 1) / panels);
  }
  if (few) return std::clamp<int64_t>(vectors, 1, 2);
  // The first that leaves no narrow tile at the end, or the one that leaves the widest.
  static constexpr std::array<int64_t, 4> kWide = {4, 6, 3, 5};
  static constexpr std::array<int64_t, 2> kNarrow = {2, 3};
  const absl::Span<const int64_t> widths = l.vector_registers == 32 ? absl::MakeSpan(kWide) : absl::MakeSpan(kNarrow);
  const auto last = [&](int64_t width) { return (vectors - 1) % width + 1; };
  int64_t best = widths.front();
  for (int64_t w : widths)
    if (last(w) * best > last(best) * w) best = w;
  return std::max<int64_t>(1, std::min(best, vectors));
}

// The same where B lies as panels of `panel` vectors, which the tile divides: the widest that leaves accumulators for a
// tile of all rows, or for tall tiles of few rows.
int64_t TileVectorsOfPanel(const CpuLevel& l, int64_t panel, int64_t m, const ProductChoice& choice) {
  const int64_t budget = Accumulators(l), usual = l.vector_registers == 32 ? 6 : 3;
  int64_t most = choice.vectors ? choice.vectors : usual;
  if (m <= budget / 2) most = std::min(most, budget / std::max<int64_t>(m, 1));
  int64_t vectors = std::max<int64_t>(1, std::min(most, panel));
  while (panel % vectors != 0) --vectors;
  return vectors;
}

// Rows of a tile of `vectors` vectors where there are `m`: equal tiles, so that 16 rows are two of 8, not 12 and 4.
int64_t RowsOfTile(const CpuLevel& l, int64_t m, int64_t vectors) {
  const int64_t most = Accumulators(l) / vectors, tiles = std::max<int64_t>(1, (m + most - 1) / most);
  return std::min(most, (m + tiles - 1) / tiles);
}

// Fewer columns than half a vector has take half a vector: some machines run whole ones in two steps.
int64_t LanesFor(const CpuLevel& level, const MatmulShape& s) {
  constexpr int64_t kLeast = 4;
  int64_t lanes = Lanes(level, s.compute);
  if (s.panel_columns) return lanes;
  while (Group(s.compute) == 1 && lanes > kLeast && s.n <= lanes / 2) lanes /= 2;
  return lanes;
}

// Whether a panel's columns of `rows` rows of the result stay in the second cache, with as much beside them. Rows that
// lie a power of two apart share the places of few lines.
bool ResultStays(const MatmulShape& s, int64_t rows) {
  constexpr int64_t kPlaces = 2048, kWays = 16;
  const int64_t lines = std::max<int64_t>(1, s.c_stride * ByteWidth(s.c_type) / kCacheLine);
  return rows <= kPlaces / std::gcd(lines, kPlaces) * kWays / 2;
}

// Whether `rows` rows of A stay there too. Those of a longer A come from far away, in long runs or slowly.
bool OperandStays(const MatmulShape& s, int64_t rows) {
  constexpr int64_t kMostBytes = 1536 << 10;
  return rows * s.a_stride * WidthOfA(s) <= kMostBytes;
}

// A little more at once rather than a short rest: C is read and written once less.
int64_t WithRest(int64_t rows) { return rows + rows / 4; }

// Rows of a panel of B of `columns` columns, for `rows` rows of A: as many as stay in the first cache where A and the
// result are at hand when the next panel comes, else so many that few panels come. Those also serve where one of them
// holds all of k.
int64_t PanelRowsFor(const CpuLevel& l, const MatmulShape& s, int64_t columns, int64_t rows) {
  constexpr int64_t kOfSecondCache = 512, kOfFirstCache = 32 << 10, kStep = 16;
  // Rows of A of which as many as a tile takes stay in the first cache whole.
  constexpr int64_t kShortBytes = 4096;
  const int64_t width = ByteWidth(SumType(s.compute)), a_bytes = s.K() * WidthOfA(s);
  if (s.K() <= kOfSecondCache * Group(s.compute)) return kOfSecondCache;
  if (!ResultStays(s, rows) || !OperandStays(s, rows))
    return !s.panel_columns && a_bytes <= kShortBytes ? kShortBytes / width : kOfSecondCache;
  // B comes from the second cache as fast as these machines multiply: one sum in place of several saves more.
  if (l.multiplies == 1 && s.K() <= WithRest(kOfSecondCache) * Group(s.compute)) return kOfSecondCache;
  const int64_t near = kOfFirstCache / (columns * width);
  return std::clamp<int64_t>(near / kStep * kStep, kStep, kOfSecondCache);
}

// Products that tiles sum at a time: two tiles of rows of A stay in the first cache, while B comes from the second. A
// result that is converted cannot be read back and added to.
int64_t LongestTileSum(const MatmulShape& s) {
  constexpr int64_t kPanelTiles = 16;
  return s.c_type == SumType(s.compute) ? kPanelTiles * TileDepth(s) : s.K();
}

// Products of integers that f32 sums exactly, which it does up to 2^24: 256 of 255 * 255 or of 255 * 128, 1024 of
// 128 * 128. All where sums are not integers in floats.
int64_t MostExact(const MatmulShape& s) {
  constexpr int64_t kUnsigned = 256, kSigned = 1024;
  if (s.compute != PrimitiveType::F32 || !IsIntegral(s.c_type)) return s.K();
  return IsUnsigned(s.a_type) || IsUnsigned(s.b_type) ? kUnsigned : kSigned;
}

// Products that are summed at a time, of panels that have `panel_rows` rows. Short sums round less and keep the panel
// of B in a cache.
int64_t LongestSum(const MatmulShape& s, int64_t panel_rows) {
  if (s.c_type == SumType(s.compute)) {
    const int64_t chosen = s.choice.panel_rows, group = Group(s.compute), most = WithRest(panel_rows);
    return group * (chosen ? chosen : s.K() <= most * group ? most : panel_rows);
  }
  // A converted result cannot be read back and added to: its sums stay in registers over all of k.
  return MostExact(s);
}

// Whether products of floats are added to one sum, each as it is.
bool InOneSum(const MatmulShape& s) { return IsFloat(s.compute) && s.compute != PrimitiveType::F16; }

// How many features a block takes with all their taps, where those lie side by side in B: columns of B are then read in
// long runs, each byte once. 0 where too many would have to be summed at a time.
int64_t FeaturesTogether(const MatmulShape& s, int64_t limit) {
  constexpr int64_t kStep = 16;  // whole vectors of every level
  if (Group(s.compute) != 1 || s.b_tap_rows == 0 || s.b_tap_stride != 1 || s.run != s.b_tap_rows) return 0;
  const int64_t taps = s.K() / s.run, most = limit + limit / 4;
  if (taps * s.run <= most) return s.run;
  return taps * kStep <= most ? most / taps / kStep * kStep : 0;
}

// Blocks of at most `limit` products: one if all of k fits; else outer segments are peeled until one does, and if the
// run alone is too long it is cut into pieces and a rest.
void CutSums(const MatmulShape& s, int64_t limit, MatmulPlan& plan) {
  if (const int64_t features = FeaturesTogether(s, limit)) {
    plan.taps_together = true;
    plan.period = s.run;
    plan.repeat = 1;
    plan.blocks.push_back({s.segments, features, s.run / features, 0});
    if (s.run % features) plan.blocks.push_back({s.segments, s.run % features, 1, s.run / features * features});
    plan.panel_rows = ElementsOf(s.segments, features);
    return;
  }
  std::vector<Segment> inner = s.segments;
  while (!inner.empty() && ElementsOf(inner, s.run) > limit) {
    plan.outer.push_back(inner.front());
    inner.erase(inner.begin());
  }
  plan.period = ElementsOf(inner, s.run);
  plan.repeat = ElementsOf(plan.outer, 1);
  // What does not fill a row of a tile is summed by itself: tiles have one form at a time.
  const int64_t whole = s.tiles ? s.run / TileDepth(s) * TileDepth(s) : s.run;
  if (plan.period <= limit) {
    if (whole > 0) plan.blocks.push_back({inner, whole, 1, 0});
  } else {
    const int64_t pieces = whole / limit;
    plan.blocks.push_back({{}, limit, pieces, 0});
    if (whole % limit) plan.blocks.push_back({{}, whole % limit, 1, pieces * limit});
    inner.clear();
  }
  if (whole < s.run) plan.blocks.push_back({inner, s.run - whole, 1, whole});
  plan.panel_rows = 0;
  for (const SumBlock& k : plan.blocks)
    plan.panel_rows = std::max(plan.panel_rows, ElementsOf(k.segments, PanelRows(s, k.run)));
}

// Columns of B whose panels are made together. Where B, A and the result do not share the second cache, lines of B's
// rows that lie side by side are read at once, and each page of A and of the result is looked up once for all panels.
int64_t SpanFor(const MatmulShape& s, const MatmulPlan& plan, int64_t rows) {
  constexpr int64_t kLeastRows = 192, kPanelBytes = 512 << 10, kMostPanels = 4;
  const int64_t width = plan.tile_columns, element = ByteWidth(s.compute);
  if (!LiesAsRows(s) || !s.segments.empty() || rows < kLeastRows || s.compute == PrimitiveType::F16 ||
      s.b_k_stride * ByteWidth(s.b_type) * s.K() <= kNearBytes)
    return width;
  return width *
         std::clamp<int64_t>(kPanelBytes / (plan.panel_rows * width * element), 1, std::min(kMostPanels, s.n / width));
}

}  // namespace

int64_t ElementsOf(const std::vector<Segment>& segments, int64_t run) {
  int64_t k = run;
  for (const Segment& s : segments) k *= s.count;
  return k;
}

int64_t MatmulShape::K() const { return ElementsOf(segments, run); }

std::optional<PrimitiveType> ComputeType(PrimitiveType a, PrimitiveType b, PrimitiveType c) {
  using P = PrimitiveType;
  auto small_int = [](P t) { return IsIntegral(t) && InfoOf(t).bits <= 8; };
  if (IsFloat(c)) {
    if (c == P::F64) return P::F64;
    if ((IsFloat(a) || small_int(a)) && (IsFloat(b) || small_int(b)) && a != P::F64 && b != P::F64) return P::F32;
    return std::nullopt;
  }
  if (c == P::S32 && small_int(a) && small_int(b)) return P::F32;  // exact in blocks of k
  // Sums wrap around, in a wider type too.
  if (IsIntegral(a) && IsIntegral(b) && IsIntegral(c)) return InfoOf(c).bits >= 32 ? c : P::S32;
  return std::nullopt;
}

std::optional<PrimitiveType> HeldInGroups(const CpuLevel& l, PrimitiveType a, PrimitiveType b, PrimitiveType c) {
  using P = PrimitiveType;
  auto byte = [](P t) { return IsIntegral(t) && InfoOf(t).bits <= 8; };
  if (l.dot_bytes && c == P::S32 && byte(a) && byte(b)) return IsUnsigned(a) ? P::U8 : P::S8;
  // Eight bits of precision and the exponents of f32 hold these as they are.
  auto fits = [&](P t) { return t == P::BF16 || byte(t) || (IsFloat(t) && InfoOf(t).bits == 8 && t != P::F8E8M0FNU); };
  // Where there are tiles, what they do not take is faster as f32: vectors of those machines multiply bf16 at half
  // speed.
  if (l.dot_bf16 && !l.amx && (c == P::F32 || c == P::BF16) && fits(a) && fits(b)) return P::BF16;
  return std::nullopt;
}

int64_t Group(PrimitiveType compute) {
  constexpr int64_t kWordBytes = 4;
  const bool grouped = compute == PrimitiveType::BF16 || ByteWidth(compute) == 1;
  return grouped ? kWordBytes / ByteWidth(compute) : 1;
}

bool LiesAsRows(const MatmulShape& s) {
  return Group(s.compute) == 1 && !s.complex_b && s.b_n_stride == 1 && !s.b_tap_rows && !s.reverse_b &&
         s.part_of_b == PartOfB::kAll;
}

PrimitiveType SumType(PrimitiveType compute) {
  if (compute == PrimitiveType::F16) return PrimitiveType::F32;
  if (Group(compute) == 1) return compute;
  return IsIntegral(compute) ? PrimitiveType::S32 : PrimitiveType::F32;
}

int64_t OffsetOfB(const MatmulShape& s) {
  if (s.tiles || !IsIntegral(s.compute) || Group(s.compute) == 1 || IsUnsigned(s.compute) != IsUnsigned(s.b_type))
    return 0;
  return IsUnsigned(s.compute) ? 128 : -128;
}

bool TilesApply(const CpuLevel& l, PrimitiveType a, PrimitiveType b, PrimitiveType c, int64_t rows, int64_t n,
                int64_t run, bool in_one_sum) {
  using P = PrimitiveType;
  constexpr int64_t kLeastRows = 4, kLeastColumns = 16;
  const auto byte = [](P t) { return t == P::S8 || t == P::U8; };
  const bool types = (l.dot_bf16 && a == P::BF16 && b == P::BF16 && (c == P::F32 || c == P::BF16)) ||
                     (byte(a) && byte(b) && c == P::S32);
  if (!l.amx || !types || rows < kLeastRows || n < kLeastColumns) return false;
  const int64_t bytes = run * ByteWidth(a);
  return bytes >= kTileRowBytes && bytes % (in_one_sum ? kTileRowBytes : kTileSumBytes) == 0;
}

bool TilesOfPartsApply(const CpuLevel& l, PrimitiveType a, PrimitiveType b, PrimitiveType c, int64_t rows, int64_t n,
                       int64_t run) {
  using P = PrimitiveType;
  constexpr int64_t kLeast = 64;  // of each extent: below, parts take longer to make than they save
  return l.amx && l.dot_bf16 && a == P::F16 && b == P::F16 && (c == P::F16 || c == P::F32) && rows >= kLeast &&
         n >= kLeast && run >= kLeast && run % 2 == 0;
}

bool SumsInF16Apply(const CpuLevel& l, PrimitiveType a, PrimitiveType b, PrimitiveType c, int64_t rows, int64_t n,
                    int64_t run) {
  using P = PrimitiveType;
  // Below, elements take longer to come than to be multiplied.
  constexpr int64_t kLeastRows = 16, kLeastColumns = 64;
  return l.fp16 && a == P::F16 && b == P::F16 && c == P::F16 && rows >= kLeastRows && n >= kLeastColumns &&
         run >= kChainOfF16 * kChainsOfF16;
}

bool FewColumnsApply(const CpuLevel& l, const MatmulShape& s) {
  // Adding lanes up at the end costs more the more columns there are. Of the vectors that k makes.
  constexpr int64_t kMostColumns = 12, kFewest = 4, kLeastVectors = 2;
  const int64_t lanes = Lanes(l, s.compute), runs = ElementsOf(s.segments, 1);
  const int64_t least = s.n <= kFewest ? kLeastVectors : kLeastVectors * s.n;
  return InOneSum(s) && Group(s.compute) == 1 && !s.tiles && !s.complex_b && s.n <= kMostColumns &&
         s.panel_columns == 0 && s.run >= least * lanes && !s.choice.vectors && s.K() <= MostExact(s) &&
         s.n * runs * (s.run + lanes) * ByteWidth(s.compute) <= kSlabBytes;
}

int64_t ColumnsTogether(const CpuLevel& l, int64_t rows) {
  constexpr int64_t kMost = 8;  // lines of B that are read at once
  return std::clamp<int64_t>(Accumulators(l) / rows, 1, kMost);
}

bool FewRowsApply(const CpuLevel& l, const MatmulShape& s, int64_t rows) {
  constexpr int64_t kMostRows = 12, kLeastVectors = 8;  // of k
  // Rows beyond the first cache come again for each few columns.
  constexpr int64_t kFirstCache = 32 << 10, kEnoughColumns = 3;
  if (rows * s.run * ByteWidth(s.compute) > kFirstCache && ColumnsTogether(l, rows) < kEnoughColumns) return false;
  const bool as_it_lies = s.b_type == s.compute || (s.b_type == PrimitiveType::BF16 && s.compute == PrimitiveType::F32);
  return InOneSum(s) && Group(s.compute) == 1 && as_it_lies && !s.tiles && !s.complex_b && !s.reverse_b &&
         s.segments.empty() && s.b_tap_rows == 0 && s.panel_columns == 0 && s.part_of_b == PartOfB::kAll &&
         s.b_k_stride == 1 && s.b_n_stride != 1 && rows <= kMostRows && s.run >= kLeastVectors * Lanes(l, s.compute) &&
         !s.choice.vectors && s.choice.packing == ProductChoice::kPlanned && s.K() <= MostExact(s);
}

bool FewLinesApply(const CpuLevel& l, const MatmulShape& s, int64_t rows) {
  // Fewer rows take tiles of more columns, which are read about as well where lines are short.
  constexpr int64_t kMostRows = 12, kEnoughRows = 8, kFarBytes = 1024, kLongLine = 16 << 10, kSecondCache = 1 << 20;
  const bool as_it_lies = s.b_type == s.compute || (s.b_type == PrimitiveType::BF16 && s.compute == PrimitiveType::F32);
  const int64_t line = s.b_k_stride * ByteWidth(s.b_type);
  return InOneSum(s) && as_it_lies && s.c_type == s.compute && !s.tiles && LiesAsRows(s) && s.segments.empty() &&
         s.panel_columns == 0 && s.n % Lanes(l, s.compute) == 0 && rows <= kMostRows &&
         line >= (rows < kEnoughRows ? kLongLine : kFarBytes) && line * s.run > kSecondCache && !s.choice.vectors &&
         s.choice.packing == ProductChoice::kPlanned;
}

int64_t Lanes(const CpuLevel& l, PrimitiveType t) {
  return l.vector_bytes / ByteWidth(t == PrimitiveType::F16 ? t : SumType(t));
}

int64_t TileRows(const CpuLevel& l, PrimitiveType t, int64_t n, int64_t m, int64_t k, const ProductChoice& choice,
                 int64_t panel_columns) {
  if (panel_columns) return RowsOfTile(l, m, TileVectorsOfPanel(l, panel_columns / Lanes(l, t), m, choice));
  return RowsOfTile(l, m, TileVectors(l, t, n, m, AreFew(m, n * k * ByteWidth(t)), choice));
}

int64_t RowsWithin(int64_t bytes, int64_t row_bytes, int64_t tile_rows) {
  return std::max<int64_t>(1, bytes / row_bytes / tile_rows) * tile_rows;
}

int64_t RowsForThreads(int64_t rows, int64_t units, int64_t work, int64_t tile_rows, bool tiles) {
  constexpr int64_t kLeast = 48;  // rows that pay for a panel of B
  const int64_t wanted = std::min((tiles ? kEnoughTileUnits : kEnoughUnits) / std::max<int64_t>(units, 1),
                                  work / (tiles ? kTileUnitWork : kUnitWork));
  if (wanted < 2) return rows;
  const int64_t fewer = std::max(kLeast, (rows + wanted - 1) / wanted);
  return std::min(rows, (fewer + tile_rows - 1) / tile_rows * tile_rows);
}

MatmulPlan PlanMatmul(const CpuLevel& level, const MatmulShape& s, int64_t rows, std::optional<int64_t> ranges) {
  MatmulPlan plan{};
  plan.lanes = LanesFor(level, s);
  const bool same_type = s.b_type == s.compute && LiesAsRows(s);
  const int64_t b_bytes = s.K() * (s.b_n_stride == 1 ? s.b_k_stride : s.n) * ByteWidth(s.compute);
  const bool few = ranges && AreFew(*ranges * rows, b_bytes), in_place = s.choice.packing == ProductChoice::kInPlace;
  const int64_t panel = s.panel_columns / plan.lanes;
  if (s.tiles) {
    plan.direct = panel && s.panel_group == Group(s.compute);
    plan.tile_columns = plan.tile_rows = kTilePair;
    CutSums(s, LongestTileSum(s), plan);
    constexpr int64_t kPanelBytes = 512 << 10;
    const int64_t width = plan.direct ? s.panel_columns : plan.tile_columns;
    plan.span = std::max<int64_t>(1, kPanelBytes / (plan.panel_rows * width * kTileSumBytes)) * width;
    return plan;
  }
  const int64_t vectors = panel ? TileVectorsOfPanel(level, panel, rows, s.choice)
                                : TileVectors(level, s.compute, s.n, rows, few, s.choice);
  plan.tile_columns = vectors * plan.lanes;
  if (panel) {
    plan.direct = s.panel_group == Group(s.compute) && (Group(s.compute) > 1 || s.b_type == s.compute);
  } else {
    const bool is_panel = s.b_k_stride == plan.tile_columns;  // as it lies
    const bool wanted = in_place || ((few || is_panel) && s.choice.packing != ProductChoice::kPacked);
    plan.direct = same_type && s.n % plan.lanes == 0 && wanted;
  }
  plan.tile_rows = RowsOfTile(level, rows, vectors);
  CutSums(s, LongestSum(s, PanelRowsFor(level, s, plan.tile_columns, ranges.value_or(1) * rows)), plan);
  plan.span = plan.direct || panel ? plan.tile_columns : SpanFor(s, plan, ranges.value_or(1) * rows);
  return plan;
}

}  // namespace kiln::cpu
