#include "codegen/cpu/convolution_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/analysis/panels.h"

namespace kiln::cpu {
namespace {

// What the window does in any of its dimensions.
struct WindowTraits {
  bool reversed = false, mixed = false;  // reversed in some dimension, and not in another
  bool dilated = false, padded = false, strided = false;
  int64_t taps = 1;
};

WindowTraits TraitsOf(const ConvolutionShape& s) {
  WindowTraits t;
  bool forward = false;
  for (int64_t d = 0; d < s.spatial(); ++d) {
    const WindowDim& w = s.window[d];
    t.reversed = t.reversed || (w.reversed && w.size > 1);
    forward = forward || (!w.reversed && w.size > 1);
    t.dilated = t.dilated || w.lhs_dilate > 1;
    t.padded = t.padded || w.pad_low || w.pad_high;
    t.strided = t.strided || w.stride != 1;
    t.taps *= w.size;
  }
  t.mixed = t.reversed && forward;
  return t;
}

// Windows of one element see the pixels of an image in a row, wherever lines begin: longer rows are faster products. Of
// an input with its features last, PlanPointwise does that over images too.
void JoinPixels(ConvolutionShape& s) {
  const WindowTraits window = TraitsOf(s);
  if (s.spatial() == 0 || window.taps != 1 || window.dilated || window.padded || window.strided || s.FeaturesLast())
    return;
  const int64_t step = s.position_stride.back();
  int64_t pixels = 1;
  for (int64_t d = s.spatial() - 1; d >= 0; --d) {
    if (s.position_stride[d] != pixels * step) return;
    pixels *= s.in[d];
  }
  constexpr int64_t kElementBytes = 4;
  int64_t row = std::min(pixels, kSlabBytes / (kElementBytes * std::max<int64_t>(1, s.in_features())));
  while (row > s.in.back() && pixels % row != 0) --row;
  if (row <= s.in.back()) return;
  s.in = s.out = {pixels / row, row};
  s.position_stride = {row * step, step};
  s.window.assign(2, WindowDim{});
}

ConvolutionShape ShapeOf(const Instruction* i) {
  const Shape &x = i->operand(0)->shape(), &kernel = i->operand(1)->shape(), &o = i->shape();
  const int64_t spatial = x.rank() - 2;
  ConvolutionShape s;
  s.a = x.type();
  s.b = kernel.type();
  s.c = o.type();
  s.groups = i->attrs().feature_group_count.value_or(1);
  const ConvDimensionNumbers& d = *i->attrs().dim_labels;
  const Ints input_strides = x.Strides();
  s.batch = x.dim(d.input_batch);
  s.image_stride = input_strides[d.input_batch];
  s.feature_stride = input_strides[d.input_feature];
  s.cin = kernel.dim(d.kernel_input);
  s.cout = kernel.dim(d.kernel_output) / s.groups;
  const Ints strides = kernel.Strides();
  s.in_stride = strides[d.kernel_input];
  s.out_stride = strides[d.kernel_output];
  s.tap_stride = spatial == 0 ? 0 : strides[d.kernel_spatial.back()];
  if (const auto panels = PanelsOf(i)) {
    s.panel = s.in_stride = panels->width;
    s.out_stride = panels->rows;
    s.panel_group = panels->group;
    s.tap_stride = s.cin * s.in_stride;
  }
  s.window = i->attrs().window.value_or(attr::Win());
  for (int64_t k = 0; k < spatial; ++k) {
    s.in.push_back(x.dim(d.input_spatial[k]));
    s.out.push_back(o.dim(k + 1));
    s.position_stride.push_back(input_strides[d.input_spatial[k]]);
  }
  JoinPixels(s);
  return s;
}

// Whether the taps of the innermost dimension lie side by side in the input and so are one run of the product.
bool MergesLast(const ConvolutionShape& s) { return s.groups == 1 && s.window[s.spatial() - 1].rhs_dilate == 1; }

bool ProductsApply(const Instruction* i, const ConvolutionShape& s, const WindowTraits& w,
                   std::optional<PrimitiveType> compute) {
  // A run for each tap that does not merge with its neighbour. Gradients of strided convolutions have as many taps as
  // the convolution has results.
  constexpr int64_t kMostRuns = 1 << 16;
  // Results of another type are summed in registers over all of k, with all of a panel of B on the stack.
  constexpr int64_t kLongestConvertedSum = 2048;
  const bool depthwise = s.cin == 1 && s.cout == 1 && s.groups > 1;
  if (!compute || depthwise || w.mixed || s.spatial() < 1) return false;
  if (i->shape().ElementCount() == 0 || i->operand(1)->shape().ElementCount() == 0) return false;
  const int64_t last = s.window[s.spatial() - 1].size;
  const int64_t runs = MergesLast(s) && last > 0 ? w.taps / last : w.taps;
  const bool exact = *compute == PrimitiveType::F32 && IsIntegral(s.c);
  return runs <= kMostRuns && (s.c == *compute || exact || s.cin * w.taps <= kLongestConvertedSum);
}

// Output positions of the outermost dimension that one slab serves, and the bytes that it takes with padding, holes and
// elements of `element_bytes`.
struct SlabSize {
  int64_t rows, bytes;
};

SlabSize SizeOfSlab(const ConvolutionShape& s, int64_t element_bytes, int64_t most_bytes = kSlabBytes) {
  const attr::Win& w = s.window;
  int64_t inner = s.in_features();
  for (int64_t d = 1; d < s.spatial(); ++d) inner *= (s.out[d] - 1) * w[d].stride + w[d].DilatedSize();
  auto bytes = [&](int64_t rows) {
    const int64_t outputs = s.spatial() == 1 ? s.out[0] : rows;
    return ((outputs - 1) * w[0].stride + w[0].DilatedSize()) * inner * element_bytes;
  };
  // Where not even one window's lines fit on the stack, up to twice as many read the kernel less often.
  const int64_t least = bytes(1), most = least > kLargeSlabBytes ? 2 * least : most_bytes;
  int64_t rows = s.spatial() == 1 ? 1 : s.out[0];
  while (rows > 1 && bytes(rows) > most) rows = (rows + 1) / 2;
  return {rows, bytes(rows)};
}

// Images of few positions of which each would read a larger kernel again: several are one slab, as positions of a
// dimension outside of the others, along which windows are one element.
void JoinImages(ConvolutionShape& s, int64_t kernel_bytes, int64_t element_bytes, int64_t most_bytes) {
  constexpr int64_t kFewPositions = 128, kKernelOfImage = 2;  // times
  const SlabSize image = SizeOfSlab(s, element_bytes, most_bytes / 2);
  const bool whole = s.spatial() == 1 || image.rows == s.out[0];
  if (s.batch < 2 || s.positions() > s.batch * kFewPositions || !whole || image.bytes > most_bytes / 2 ||
      kernel_bytes < kKernelOfImage * image.bytes)
    return;
  s.in.insert(s.in.begin(), s.batch);
  s.out.insert(s.out.begin(), s.batch);
  s.window.insert(s.window.begin(), WindowDim{});
  s.position_stride.insert(s.position_stride.begin(), s.image_stride);
  s.image_stride *= s.batch;
  s.batch = 1;
}

// Parts of the output features, where pieces of the input are too few for several threads: the last layers of networks
// have many features of few pixels. `units`: the pieces.
int64_t ColumnParts(const ConvolutionShape& s, int64_t units) {
  constexpr int64_t kColumns = 64;  // of the widest tiles
  const int64_t step = s.panel ? (kColumns + s.panel - 1) / s.panel * s.panel : kColumns;
  int64_t work = s.positions() * s.cout * s.cin, parts = 1;
  for (const WindowDim& w : s.window) work *= w.size;
  while (s.groups == 1 && units * parts < kEnoughUnits && s.cout % (2 * parts * step) == 0 &&
         work / (2 * parts) >= kUnitWork)
    parts *= 2;
  return parts;
}

// A kernel that takes longer to read than a slab.
constexpr int64_t kLargeKernelBytes = 1 << 20;

// Results that wait in the second cache for what is made of them, and the tiles of rows that pay for packing a panel.
constexpr int64_t kResultBytes = 512 << 10, kRowsForPanels = 8;

// Rows of a block of about `block` of `extent`, whole tiles, so that two threads get as much work.
int64_t EvenBlock(int64_t extent, int64_t block, int64_t tile_rows) {
  constexpr int64_t kTries = 4;  // numbers of pieces
  const int64_t pieces = Pieces::Of(extent, block).count, most = block + block / 4;
  if (pieces == 1) return block;
  int64_t best = block, least = extent;
  for (int64_t half = std::max<int64_t>(1, pieces / 2 - 1), k = 0; k < kTries; ++half, ++k) {
    const int64_t rows = Pieces::Of(Pieces::Of(extent, 2 * half).count, tile_rows).count * tile_rows;
    if (rows > most || Pieces::Of(extent, rows).count != 2 * half || half * rows >= least) continue;
    best = rows;
    least = half * rows;
  }
  return best;
}

// The cut of a product by panels, which cost nothing to read again but for the time that memory takes: a large kernel
// is cut into parts of its columns, all pixels of which wait in the second cache, a small one's pixels into even
// blocks.
void CutPixelsByPanels(const ConvolutionShape& s, int64_t rows, int64_t tile_rows, bool epilogue, ConvolutionPlan& p) {
  constexpr int64_t kResultBytesOfPanels = 128 << 10;
  const int64_t pixels = s.positions(), width = ByteWidth(s.c);
  const bool large = s.cin * s.cout * ByteWidth(s.b) >= kLargeKernelBytes;
  p.column_parts = large ? ColumnParts(s, Pieces::Of(pixels, rows).count) : 1;
  if (epilogue && !p.product.choice.rows)
    rows = std::min(rows, RowsWithin(kResultBytesOfPanels, s.cout / p.column_parts * width, tile_rows));
  if (!large) p.column_parts = ColumnParts(s, Pieces::Of(pixels, rows).count);
  const int64_t units = Pieces::Of(pixels, rows).count * p.column_parts;
  rows = RowsForThreads(rows, units, pixels * s.cin * s.cout / units, tile_rows, p.product.tiles);
  p.pieces = Pieces::Of(pixels, EvenBlock(pixels, rows, tile_rows));
}

void PlanPointwise(const CpuLevel& level, bool tiles, bool epilogue, ConvolutionPlan& p) {
  const ConvolutionShape& s = p.shape;
  const int64_t pixels = s.positions();
  p.algorithm = ConvolutionAlgorithm::kPointwise;
  p.product.a_stride = s.in_features();
  p.product.run = s.in_features();
  const int64_t tile_rows =
      tiles ? kTilePair : TileRows(level, p.held, p.product.n, pixels, p.product.run, p.product.choice, s.panel);
  // What sums of rows begin with lies on the stack.
  const int64_t bytes = OffsetOfB(p.product) ? kSlabBytes : kLargeSlabBytes;
  int64_t block = std::min(RowsWithin(bytes, s.in_features() * ByteWidth(p.held), tile_rows), pixels);
  if (p.product.choice.rows) block = std::min(block, RowsWithin(p.product.choice.rows, 1, tile_rows));
  if (s.panel) {
    CutPixelsByPanels(s, block, tile_rows, epilogue, p);
  } else {
    if (epilogue)
      block = std::min(block, RowsWithin(kResultBytes, s.out_features() * ByteWidth(s.c), kRowsForPanels * tile_rows));
    p.column_parts = ColumnParts(s, Pieces::Of(pixels, block).count);
    const int64_t units = Pieces::Of(pixels, block).count * p.column_parts;
    block = RowsForThreads(block, units, pixels * s.cin * s.cout / units, tile_rows, p.product.tiles);
    p.pieces = Pieces::Of(pixels, block);
  }
  p.product.n /= p.column_parts;
  p.units = p.pieces.count * p.column_parts;
}

void PlanProducts(const WindowTraits& traits, bool pack, PrimitiveType compute, ConvolutionPlan& p) {
  const ConvolutionShape& s = p.shape;
  // Each slab reads the kernel again: of a large one fewer slabs, and of one that lies the other way, which takes
  // longer to pack. The input is read in the order of memory, which the machine foresees from the third cache too.
  const int64_t kernel_bytes = s.cin * traits.taps * s.out_features() * ByteWidth(compute);
  const int64_t most = p.product.choice.slab_bytes             ? p.product.choice.slab_bytes
                       : kernel_bytes >= kLargeKernelBytes     ? kLargeSlabBytes
                       : p.product.b_n_stride != 1 && !s.panel ? 2 * kSlabBytes
                                                               : kSlabBytes;
  JoinImages(p.shape, kernel_bytes, ByteWidth(compute), most);
  const int64_t spatial = s.spatial();
  const WindowDim& last = s.window[spatial - 1];
  p.algorithm = ConvolutionAlgorithm::kProducts;
  SlabPlan& slab = p.slab;
  slab.pack = pack;
  for (int64_t d = 0; d < spatial; ++d)
    slab.extent.push_back((s.out[d] - 1) * s.window[d].stride + s.window[d].DilatedSize());
  slab.window_lines = s.window[0].DilatedSize();
  slab.stride.resize(spatial);
  slab.stride[spatial - 1] = s.in_features();
  for (int64_t d = spatial - 2; d >= 0; --d)
    slab.stride[d] = slab.stride[d + 1] * (pack ? slab.extent[d + 1] : s.in[d + 1]);
  const SlabSize size = SizeOfSlab(s, ByteWidth(compute), most);
  slab.in_arena = pack && size.bytes > kLargeSlabBytes;
  slab.elements = size.bytes / ByteWidth(compute);
  // With one spatial dimension there is no row beside it to cut.
  p.pieces = spatial == 1 ? Pieces{1, 1, 0} : Pieces::Of(s.out[0], size.rows);
  p.column_parts = slab.in_arena ? 1 : ColumnParts(s, s.batch * p.pieces.count);
  p.product.n /= p.column_parts;
  p.units = slab.in_arena ? 1 : s.batch * p.pieces.count * p.column_parts;
  // Taps read backwards, or apart from the features, are segments of their own.
  const bool merged = MergesLast(s) && !traits.reversed && !p.product.b_tap_rows;
  p.product.a_stride = last.stride * s.in_features();
  for (int64_t d = 0; d < (merged ? spatial - 1 : spatial); ++d)
    if (s.window[d].size != 1)
      p.product.segments.push_back({s.window[d].size, s.window[d].rhs_dilate * slab.stride[d]});
  p.product.run = merged ? last.size * s.in_features() : s.cin;
}

}  // namespace

int64_t ConvolutionShape::positions() const {
  int64_t n = batch;
  for (int64_t e : out) n *= e;
  return n;
}

bool ConvolutionShape::FeaturesLast() const {
  int64_t stride = in_features();
  for (int64_t d = spatial() - 1; d >= 0; --d) {
    if (position_stride[d] != stride) return false;
    stride *= in[d];
  }
  return feature_stride == 1 && image_stride == stride;
}

absl::StatusOr<ConvolutionPlan> PlanConvolution(const CpuLevel& level, const Instruction* convolution, bool epilogue) {
  ConvolutionPlan p{};
  p.shape = ShapeOf(convolution);
  const ConvolutionShape& s = p.shape;
  const WindowTraits window = TraitsOf(s);
  const auto compute = ComputeType(s.a, s.b, s.c);
  constexpr int64_t kMostFeatures = 65536;  // sums of one position lie on the stack: 512 KiB of f64
  p.product.choice = ChoiceOf(level, convolution);
  const bool loops = p.product.choice.loops == ProductChoice::kLoops && s.out_features() <= kMostFeatures;
  if (loops || !ProductsApply(convolution, s, window, compute)) {
    if (s.panel) return ErrorAt(convolution, "has panels that no kernel reads", absl::StatusCode::kInternal);
    if (s.out_features() > kMostFeatures)
      return ErrorAt(convolution, absl::StrCat(s.out_features(), " output features are not supported here"),
                     absl::StatusCode::kUnimplemented);
    p.algorithm = ConvolutionAlgorithm::kDirect;
    p.held = compute && !IsIntegral(s.c) ? *compute : s.c;
    p.units = s.positions();
    return p;
  }
  const int64_t innermost = s.spatial() - 1;
  const bool merged = MergesLast(s) && !window.reversed && s.tap_stride == s.cin * s.in_stride;
  const bool tiles =
      TilesApply(level, s.a, s.b, s.c, s.out[innermost], s.cout,
                 merged ? s.window[innermost].size * s.in_features() : s.cin, s.c == PrimitiveType::BF16);
  p.held = tiles ? s.a : HeldInGroups(level, s.a, s.b, s.c).value_or(*compute);
  p.product.compute = p.held;
  p.product.tiles = tiles;
  p.product.a_type = s.a;
  p.product.b_type = s.b;
  p.product.c_type = s.c;
  p.product.n = s.cout;
  p.product.c_stride = s.out_features();
  p.product.b_k_stride = s.in_stride;
  p.product.b_n_stride = s.out_stride;
  p.product.panel_columns = s.panel;
  p.product.panel_group = s.panel_group;
  if (window.taps > 1 && s.tap_stride != s.cin * s.in_stride) {
    p.product.b_tap_rows = s.cin;
    p.product.b_tap_stride = s.tap_stride;
  }
  p.product.reverse_b = window.reversed;
  const bool pack = window.padded || window.dilated || s.a != p.held || !s.FeaturesLast();
  if (window.taps == 1 && !pack && !window.strided && s.groups == 1)
    PlanPointwise(level, tiles, epilogue, p);
  else
    PlanProducts(window, pack, *compute, p);
  return p;
}

int64_t ConvolutionScratchBytes(const Instruction* convolution) {
  if (convolution->operand(0)->shape().rank() < 3 || convolution->shape().ElementCount() == 0) return 0;
  const ConvolutionShape s = ShapeOf(convolution);
  const auto compute = ComputeType(s.a, s.b, s.c);
  if (!compute) return 0;
  const int64_t bytes = SizeOfSlab(s, ByteWidth(*compute)).bytes;
  return bytes > kLargeSlabBytes ? bytes : 0;
}

}  // namespace kiln::cpu
