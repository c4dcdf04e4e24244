// Constant weights of products and convolutions lie as panels, which kernels read where they are (analysis/panels.h).
//
// Why: a kernel copies its second operand panel by panel, in every run. What a constant holds can lie so from the
//   start: no copy, and memory is read in one stream.
// Left alone: what others read too, which would be there twice; products of vectors and depthwise convolutions, whose
//   kernels read rows; small operands; types that kernels convert; products whose choice was measured. Weights that are
//   arguments, of files among them, have the order that the program gives them. Of several programs in one library none
//   packs (aot/planning.cc): they share their constants.
// Behind all fusions. Keeps: what is computed, but for the order in which a convolution's sums are taken.
#include <algorithm>
#include <cstring>

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

bool IsMeasured(const Instruction* product) {
  const auto& config = product->attrs().backend_config;
  return config && ConfigField(config->text, "selected_algorithm");
}

bool IsMatrixProduct(const Instruction* dot) {
  const Shape &a = dot->operand(0)->shape(), &b = dot->operand(1)->shape(), &c = dot->shape();
  const auto& contracted = dot->attrs().rhs_contracting_dims;
  return a.rank() == 3 && b.rank() == 3 && c.rank() == 3 && contracted && contracted->size() == 1 &&
         dot->attrs().rhs_batch_dims == Ints{0} && c.dim(1) > 1 && c.dim(2) > 1;
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

// Whether kernels of every level take the product by panels.
bool TakesPanels(const Instruction* product) {
  constexpr int64_t kFewElements = 1024;
  constexpr size_t kMostTaps = 1024;
  const Shape &b = product->operand(1)->shape(), &c = product->shape();
  const bool types = b.type() == c.type() && product->operand(0)->shape().type() == b.type() &&
                     (b.type() == PrimitiveType::F32 || b.type() == PrimitiveType::F64);
  if (!types || b.ElementCount() < kFewElements || c.ElementCount() == 0 || IsMeasured(product)) return false;
  if (product->Is(Opcode::Dot)) return IsMatrixProduct(product);
  const ConvDimensionNumbers& d = *product->attrs().dim_labels;
  const int64_t groups = product->attrs().feature_group_count.value_or(1);
  const int64_t columns = b.dim(d.kernel_output) / groups;
  // Panels of groups follow one another.
  const bool whole = groups == 1 || columns % PanelWidth(columns, ByteWidth(b.type())) == 0;
  int64_t taps = 1;
  for (const int64_t s : d.kernel_spatial) taps *= b.dim(s);
  return whole && !d.kernel_spatial.empty() && product->attrs().window && columns > 1 &&
         taps <= static_cast<int64_t>(kMostTaps) && product->attrs().batch_group_count.value_or(1) == 1;
}

// Columns of one group.
int64_t ColumnsOf(const Instruction* product, const Matrix& m) {
  return m.n / product->attrs().feature_group_count.value_or(1);
}

// The elements of `m` in panels of `width` columns, each of `bytes` bytes.
Literal Packed(const Literal& weights, const Matrix& m, int64_t width, int64_t bytes) {
  const int64_t k = static_cast<int64_t>(m.rows.size()), count = (m.n + width - 1) / width;
  Literal out(Shape::Array(weights.type(), {m.batch, count, k, width}));
  const uint8_t* from = weights.data();
  uint8_t* to = out.mutable_data();
  // Rows whose columns lie apart are read some at a time, so that a cache line of the constant serves all of them.
  constexpr int64_t kTogether = 16;
  for (int64_t panel = 0; panel < m.batch * count; ++panel) {
    const int64_t first = panel % count * width, columns = std::min(width, m.n - first);
    const uint8_t* base = from + (panel / count * m.batch_stride + first * m.n_stride) * bytes;
    for (int64_t k0 = 0; k0 < k; k0 += kTogether)
      if (m.n_stride == 1) {
        for (int64_t row = k0; row < std::min(k, k0 + kTogether); ++row)
          std::memcpy(to + (panel * k + row) * width * bytes, base + m.rows[row] * bytes,
                      static_cast<size_t>(columns * bytes));
      } else {
        for (int64_t j = 0; j < columns; ++j)
          for (int64_t row = k0; row < std::min(k, k0 + kTogether); ++row)
            std::memcpy(to + ((panel * k + row) * width + j) * bytes, base + (j * m.n_stride + m.rows[row]) * bytes,
                        static_cast<size_t>(bytes));
      }
  }
  return out;
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
      if (!product || !TakesPanels(product)) continue;
      Instruction* weights = WeightsOf(i, product);
      if (!weights || !ctx.Take()) continue;
      const Matrix matrix = MatrixOf(product);
      const int64_t bytes = ByteWidth(weights->shape().type());
      const int64_t width = PanelWidth(ColumnsOf(product, matrix), bytes);
      Instruction* panels =
          c->AddConstant(Packed(weights->literal(), matrix, width, bytes), weights->name() + ".panels");
      panels->mutable_shape().SetDefaultLayouts();
      panels->set_loc(weights->loc());
      if (i == product) {
        i = WrapInFusion(i);
        i->mutable_attrs().fusion_kind = FusionKind::kOutput;
        product = (*i->attrs().calls)->root();
      }
      Computation* f = *i->attrs().calls;
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
