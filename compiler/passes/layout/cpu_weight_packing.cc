// Constant weights of products and convolutions lie as panels, which kernels read where they are (analysis/panels.h).
//
// Why: a kernel copies its second operand panel by panel, in every run. What a constant holds can lie so from the
//   start: no copy, and memory is read in one stream.
//   Where one row is multiplied by a matrix and several threads each take some of its columns, a thread's part is then
//   one piece of memory. In rows, a part is a piece of each row, all of which fall into the same few sets of the
//   thread's second cache: the matrix does not stay there from run to run.
// Left alone: what others read too, which would be there twice; products by a vector, of a vector and a matrix that one
//   thread reads or in types that not all levels multiply as they are, of few columns, and depthwise convolutions,
//   whose kernels read rows; small operands; types that kernels convert. Weights that are arguments, of files among
//   them, have the order that the program gives them. Of several programs in one library none packs (aot/compile.cc):
//   they share their constants.
// Behind all fusions. Keeps: what is computed, but for the order in which a convolution's sums are taken.
#include <algorithm>

#include "compiler/analysis/panels.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

// The second operand of a product as matrices: where its elements lie in the constant.
struct Matrix {
  int64_t batch = 1, n = 0;
  int64_t batch_stride = 0, n_stride = 1;
  Ints rows;  // of each k
};

bool IsMatrixProduct(const Instruction* dot) {
  const Shape &a = dot->operand(0)->shape(), &b = dot->operand(1)->shape(), &c = dot->shape();
  const auto& contracted = dot->attrs().rhs_contracting_dims;
  return a.rank() == 3 && b.rank() == 3 && c.rank() == 3 && contracted && contracted->size() == 1 &&
         dot->attrs().rhs_batch_dims == Ints{0} && c.dim(2) > 1;
}

Matrix MatrixOf(const Instruction* product) {
  const Shape& b = product->operand(1)->shape();
  const Ints strides = Shape::Array(b.type(), b.dims()).Strides();
  Matrix m;
  if (product->Is(Opcode::Dot)) {
    const int64_t k = (*product->attrs().rhs_contracting_dims)[0], n = 3 - k;
    m.batch = b.dim(0);
    m.batch_stride = strides[0];
    m.n = b.dim(n);
    m.n_stride = strides[n];
    for (int64_t row = 0; row < b.dim(k); ++row) m.rows.push_back(row * strides[k]);
    return m;
  }
  const ConvDimensionNumbers& d = *product->attrs().dim_labels;
  m.n = b.dim(d.kernel_output);
  m.n_stride = strides[d.kernel_output];
  m.rows = {0};
  const auto inner = [&](int64_t count, int64_t stride, bool reversed) {
    Ints rows;
    for (const int64_t row : m.rows)
      for (int64_t x = 0; x < count; ++x) rows.push_back(row + (reversed ? count - 1 - x : x) * stride);
    m.rows = std::move(rows);
  };
  for (size_t s = 0; s < d.kernel_spatial.size(); ++s)
    inner(b.dim(d.kernel_spatial[s]), strides[d.kernel_spatial[s]], (*product->attrs().window)[s].reversed);
  inner(b.dim(d.kernel_input), strides[d.kernel_input], false);
  return m;
}

// Elements of k that panels for a product of `a` and `b` summed into `c` have side by side: as many as a level's dot
// instructions take. 0: kernels convert what they copy.
int64_t GroupOf(PrimitiveType a, PrimitiveType b, PrimitiveType c) {
  using P = PrimitiveType;
  const auto byte = [](P t) { return t == P::S8 || t == P::U8; };
  if (a == b && b == c && (b == P::F32 || b == P::F64)) return 1;
  if (a == P::BF16 && b == P::BF16 && (c == P::F32 || c == P::BF16)) return 2;
  return byte(a) && byte(b) && c == P::S32 ? 4 : 0;
}

struct PanelForm {
  int64_t width, group;
};

// The form in which kernels of every level take the product's second operand; nullopt: only as it is.
std::optional<PanelForm> FormFor(const Instruction* product) {
  constexpr int64_t kFewElements = 1024, kMostTaps = 1024, kTile = 16;
  // Elements of a matrix that a row is multiplied by, from which on several threads take parts of it (ColumnParts in
  // codegen/cpu/dot_plan.cc).
  constexpr int64_t kForThreads = 1 << 18;
  // Convolutions to another type sum all of k at once, if it is not longer than this.
  constexpr int64_t kLongestConvertedSum = 2048;
  const Shape &b = product->operand(1)->shape(), &c = product->shape();
  const int64_t group = GroupOf(product->operand(0)->shape().type(), b.type(), c.type());
  if (group == 0 || b.ElementCount() < kFewElements || c.ElementCount() == 0) return std::nullopt;
  int64_t columns = c.dim(c.rank() - 1), run = 0;
  if (product->Is(Opcode::Dot)) {
    if (!IsMatrixProduct(product)) return std::nullopt;
    if (c.dim(1) == 1 && (group > 1 || b.ElementCount() < kForThreads)) return std::nullopt;
    run = b.dim((*product->attrs().rhs_contracting_dims)[0]);
  } else {
    const ConvDimensionNumbers& d = *product->attrs().dim_labels;
    const int64_t groups = product->attrs().feature_group_count.value_or(1);
    int64_t taps = 1;
    for (const int64_t s : d.kernel_spatial) taps *= b.dim(s);
    run = b.dim(d.kernel_input);
    columns = b.dim(d.kernel_output) / groups;
    if (d.kernel_spatial.empty() || !product->attrs().window || columns < 2 || taps > kMostTaps ||
        product->attrs().batch_group_count.value_or(1) != 1)
      return std::nullopt;
    if (c.type() == PrimitiveType::BF16 && run * taps > kLongestConvertedSum) return std::nullopt;
    // Panels of groups follow one another.
    if (groups > 1 && columns % PanelWidth(columns, group * ByteWidth(b.type())) != 0) return std::nullopt;
  }
  // Few columns have kernels of their own: vectors along k, or half vectors.
  constexpr int64_t kVectorBytes = 64;
  if (2 * columns * group * ByteWidth(b.type()) <= kVectorBytes) return std::nullopt;
  // Tile products take sixteen columns at a time.
  if (group > 1 && (run % group != 0 || columns % kTile != 0)) return std::nullopt;
  return PanelForm{PanelWidth(columns, group * ByteWidth(b.type())), group};
}

// The elements of `m`, which lie in `from`, as panels in `to`.
template <typename Word>
void Pack(const Word* from, const Matrix& m, const PanelForm& f, Word* to) {
  const int64_t k = static_cast<int64_t>(m.rows.size()), count = (m.n + f.width - 1) / f.width;
  // Rows whose columns lie apart are read some at a time, so that a cache line of the constant serves all of them.
  constexpr int64_t kTogether = 16;
  for (int64_t panel = 0; panel < m.batch * count; ++panel) {
    const int64_t first = panel % count * f.width, columns = std::min(f.width, m.n - first);
    const Word* base = from + panel / count * m.batch_stride + first * m.n_stride;
    const auto copy = [&](int64_t row, int64_t j) {
      to[((panel * k + row) / f.group * f.width + j) * f.group + row % f.group] = base[m.rows[row] + j * m.n_stride];
    };
    for (int64_t k0 = 0; k0 < k; k0 += kTogether) {
      const int64_t k1 = std::min(k, k0 + kTogether);
      if (m.n_stride != 1) {
        for (int64_t j = 0; j < columns; ++j)
          for (int64_t row = k0; row < k1; ++row) copy(row, j);
      } else if (f.group == 1) {
        for (int64_t row = k0; row < k1; ++row)
          std::copy_n(base + m.rows[row], columns, to + (panel * k + row) * f.width);
      } else {
        for (int64_t row = k0; row < k1; ++row)
          for (int64_t j = 0; j < columns; ++j) copy(row, j);
      }
    }
  }
}

Literal Packed(const Literal& weights, const Matrix& m, const PanelForm& f) {
  Ints dims = {m.batch, (m.n + f.width - 1) / f.width, static_cast<int64_t>(m.rows.size()) / f.group, f.width};
  if (f.group > 1) dims.push_back(f.group);
  Literal out(Shape::Array(weights.type(), dims));
  const auto pack = [&](auto word) {
    using Word = decltype(word);
    Pack(reinterpret_cast<const Word*>(weights.data()), m, f, reinterpret_cast<Word*>(out.mutable_data()));
  };
  switch (ByteWidth(weights.type())) {
    case 1:
      pack(uint8_t{});
      break;
    case 2:
      pack(uint16_t{});
      break;
    case 4:
      pack(uint32_t{});
      break;
    default:
      pack(uint64_t{});
  }
  return out;
}

// What was measured (kiln tune) says how rows are copied: the plan decides again.
void DropChoice(Instruction* product) {
  const auto& config = product->attrs().backend_config;
  if (config && ConfigField(config->text, "selected_algorithm")) SetAlgorithm(product, "0");
}

// Makes `product`, in its fusion, read `panels`, the parameter that was its second operand.
void ReadPanels(Instruction* product, Instruction* panels) {
  const Matrix m = MatrixOf(product);
  Instruction* b = UnpackPanels(panels, m.n);
  if (product->Is(Opcode::Dot)) {
    product->mutable_attrs().rhs_contracting_dims = Ints{1};
  } else {
    const Shape& kernel = product->operand(1)->shape();
    ConvDimensionNumbers d = *product->attrs().dim_labels;
    Ints dims;
    for (const int64_t s : d.kernel_spatial) dims.push_back(kernel.dim(s));
    dims.push_back(kernel.dim(d.kernel_input));
    dims.push_back(m.n);
    for (size_t s = 0; s < d.kernel_spatial.size(); ++s) {
      d.kernel_spatial[s] = static_cast<int64_t>(s);
      (*product->mutable_attrs().window)[s].reversed = false;
    }
    d.kernel_input = static_cast<int64_t>(d.kernel_spatial.size());
    d.kernel_output = d.kernel_input + 1;
    product->mutable_attrs().dim_labels = d;
    Shape shape = Shape::Array(kernel.type(), dims);
    shape.SetDefaultLayouts();
    b = product->parent()->Add(Opcode::Bitcast, shape, {b});
  }
  product->ReplaceOperand(1, b);
}

// The dot or convolution that `i` is, or that is in it as its kernel.
Instruction* ProductIn(Instruction* i) {
  if (i->Is(Opcode::Dot) || i->Is(Opcode::Convolution)) return i;
  if (!i->Is(Opcode::Fusion) || i->attrs().fusion_kind != FusionKind::kOutput) return nullptr;
  for (const auto& inner : (*i->attrs().calls)->instructions())
    if (inner->Is(Opcode::Dot) || inner->Is(Opcode::Convolution)) return inner.get();
  return nullptr;
}

// The constant that alone `i` reads as the second operand of its product; null if there is none.
Instruction* WeightsOf(Instruction* i, const Instruction* product) {
  const Instruction* b = product->operand(1);
  if (i != product) {
    if (!b->Is(Opcode::Parameter) || b->users().size() != 1) return nullptr;
    b = i->operand(*b->attrs().parameter_number);
  }
  const bool alone = b->Is(Opcode::Constant) && !b->IsRoot() && b->users().size() == 1 &&
                     std::count(i->operands().begin(), i->operands().end(), b) == 1;
  return alone && b->shape().HasDefaultLayout() ? i->operand(i->OperandIndex(b)) : nullptr;
}

}  // namespace

absl::StatusOr<bool> CpuWeightPacking(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* i : c->PostOrder()) {
      Instruction* product = ProductIn(i);
      const auto form = product ? FormFor(product) : std::nullopt;
      Instruction* weights = form ? WeightsOf(i, product) : nullptr;
      if (!weights || !ctx.Take()) continue;
      Instruction* panels =
          c->AddConstant(Packed(weights->literal(), MatrixOf(product), *form), weights->name() + ".panels");
      panels->mutable_shape().SetDefaultLayouts();
      panels->set_loc(weights->loc());
      if (i == product) {
        i = WrapInFusion(i);
        i->mutable_attrs().fusion_kind = FusionKind::kOutput;
        product = (*i->attrs().calls)->root();
      }
      Computation* f = *i->attrs().calls;
      DropChoice(product);
      ReadPanels(product, f->AddParameter(i->operand_count(), panels->shape(), "panels"));
      i->AppendOperand(panels);
      const int64_t k = i->OperandIndex(weights);
      f->RemoveParameter(k);
      i->RemoveOperand(k);
      c->Remove(weights);
      changed = true;
    }
  return changed;
}

}  // namespace kiln
