// Convolutions that are less than they say: without elements, of padded arrays, of each feature alone.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/reducer.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

bool IsPlain(const Instruction* i) {
  return i->Is(Opcode::Convolution) && i->operand_count() == 2 && i->attrs().dim_labels && IsStatic(i) &&
         !i->attrs().sparsity && i->attrs().dim_labels->input_others == 0;
}

attr::Win WindowOf(const Instruction* i) {
  return i->attrs().window.value_or(attr::Win(i->attrs().dim_labels->input_spatial.size()));
}

Instruction* OfNothing(Instruction* i) {
  if (!IsPlain(i)) return nullptr;
  const bool empty = i->operand(0)->shape().ElementCount() == 0 || i->operand(1)->shape().ElementCount() == 0;
  return empty ? Expr(i).Like(0).get() : nullptr;
}

// Zeros around an array, and between its elements, are what a window's padding and base dilation stand for. Whether a
// kernel multiplies by them is open.
Instruction* OfPad(Instruction* i) {
  if (!IsPlain(i) || !i->operand(0)->Is(Opcode::Pad)) return nullptr;
  Instruction* pad = i->operand(0);
  if (!pattern::IsAll(pad->operand(1), 0)) return nullptr;
  const attr::Padding& padding = *pad->attrs().padding;
  const ConvDimensionNumbers& dims = *i->attrs().dim_labels;
  for (int64_t d : {dims.input_batch, dims.input_feature})
    if (!(padding[static_cast<size_t>(d)] == PadDim())) return nullptr;
  attr::Win window = WindowOf(i);
  for (size_t k = 0; k < window.size(); ++k) {
    const PadDim& p = padding[static_cast<size_t>(dims.input_spatial[k])];
    WindowDim& w = window[k];
    if (p == PadDim()) continue;
    // Elements that a pad or a window cuts off stay cut off.
    if (w.lhs_dilate != 1 || p.low < 0 || p.high < 0 || w.pad_low < 0 || w.pad_high < 0) return nullptr;
    if (p.interior != 0 && (w.pad_low != 0 || w.pad_high != 0)) return nullptr;
    w.pad_low += p.low;
    w.pad_high += p.high;
    w.lhs_dilate = p.interior + 1;
  }
  Instruction* folded = i->parent()->AddClone(i, i->shape(), {pad->operand(0), i->operand(1)});
  folded->mutable_attrs().window = window;
  return folded;
}

// Zeros between the elements of a kernel are what the window's dilation stands for.
Instruction* OfKernelPad(Instruction* i) {
  if (!IsPlain(i) || !i->operand(1)->Is(Opcode::Pad)) return nullptr;
  Instruction* pad = i->operand(1);
  if (!pattern::IsAll(pad->operand(1), 0)) return nullptr;
  const attr::Padding& padding = *pad->attrs().padding;
  const ConvDimensionNumbers& dims = *i->attrs().dim_labels;
  for (int64_t d : {dims.kernel_input, dims.kernel_output})
    if (!(padding[static_cast<size_t>(d)] == PadDim())) return nullptr;
  attr::Win window = WindowOf(i);
  for (size_t k = 0; k < window.size(); ++k) {
    const PadDim& p = padding[static_cast<size_t>(dims.kernel_spatial[k])];
    if (p == PadDim()) continue;
    if (p.low != 0 || p.high != 0 || window[k].rhs_dilate != 1) return nullptr;
    window[k].rhs_dilate = p.interior + 1;
    window[k].size = pad->operand(0)->shape().dim(dims.kernel_spatial[k]);
  }
  Instruction* folded = i->parent()->AddClone(i, i->shape(), {i->operand(0), pad->operand(0)});
  folded->mutable_attrs().window = window;
  return folded;
}

// Features that do not mix, under windows that do not move: each dimension has a kernel of one or a result of one.
bool IsOfFeaturesAlone(const Instruction* i) {
  if (!IsPlain(i) || i->attrs().batch_group_count.value_or(1) != 1) return false;
  const ConvDimensionNumbers& dims = *i->attrs().dim_labels;
  const int64_t features = i->operand(0)->shape().dim(dims.input_feature);
  if (i->attrs().feature_group_count.value_or(1) != features || i->shape().dim(dims.output_feature) != features ||
      i->operand(1)->shape().dim(dims.kernel_input) != 1)
    return false;
  const attr::Win window = WindowOf(i);
  for (size_t k = 0; k < window.size(); ++k) {
    WindowDim alone = window[k];
    alone.size = 1;
    if (!(alone == WindowDim())) return false;
    if (window[k].size != 1 && i->shape().dim(dims.output_spatial[k]) != 1) return false;
  }
  return true;
}

// The type in which products of `i` are added.
PrimitiveType SumType(const Instruction* i) {
  const PrimitiveType t = i->shape().type();
  return IsFloat(t) && InfoOf(t).bits < 32 ? PrimitiveType::F32 : t;
}

// A product of each element with its feature's number, added up along what the window covers.
Instruction* OfFeaturesAlone(Instruction* i) {
  if (!IsOfFeaturesAlone(i)) return nullptr;
  const ConvDimensionNumbers& dims = *i->attrs().dim_labels;
  const Shape &x = i->operand(0)->shape(), &w = i->operand(1)->shape();
  Ints order(static_cast<size_t>(x.rank())), wide = i->shape().dims(), ones{dims.kernel_input}, reduced;
  std::vector<std::pair<int64_t, int64_t>> placed{{dims.output_feature, dims.kernel_output}};  // result's, kernel's
  order[static_cast<size_t>(dims.output_batch)] = dims.input_batch;
  order[static_cast<size_t>(dims.output_feature)] = dims.input_feature;
  for (size_t k = 0; k < dims.input_spatial.size(); ++k) {
    const int64_t out = dims.output_spatial[k];
    order[static_cast<size_t>(out)] = dims.input_spatial[k];
    wide[static_cast<size_t>(out)] = x.dim(dims.input_spatial[k]);
    if (w.dim(dims.kernel_spatial[k]) == 1) {
      ones.push_back(dims.kernel_spatial[k]);
    } else {
      placed.push_back({out, dims.kernel_spatial[k]});
      reduced.push_back(out);
    }
  }
  std::sort(placed.begin(), placed.end());
  Ints kernel_order, kernel_map, kernel_dims;
  for (const auto& [out, kernel] : placed) {
    kernel_map.push_back(out);
    kernel_order.push_back(kernel);
    kernel_dims.push_back(w.dim(kernel));
  }
  kernel_order.insert(kernel_order.end(), ones.begin(), ones.end());
  const Expr numbers = ReshapeTo(TransposeBy(i->operand(1), kernel_order), kernel_dims);
  const PrimitiveType t = SumType(i);
  Expr products =
      ConvertTo(t, TransposeBy(i->operand(0), order)) * BroadcastTo(ConvertTo(t, numbers), wide, kernel_map);
  if (!reduced.empty()) {
    std::sort(reduced.begin(), reduced.end());
    Instruction* zero = i->parent()->AddConstant(Literal::Of(t, 0));
    products = ReduceOf(products, zero, reduced, ScalarFunction(i->parent()->module(), Opcode::Add, t));
  }
  return ReshapeTo(ConvertTo(i->shape().type(), products), i->shape().dims()).get();
}

constexpr const char* kPlain =
    "ENTRY e { x = $T[2,5,3] parameter(0)\n w = $T[2,3,4] parameter(1)\n"
    " ROOT r = $T[2,4,4] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f }";

const Rule kRules[] = {
    {"convolution-of-nothing",
     {Opcode::Convolution},
     kInts | kFloats | kComplex,
     Numerics::Exact,
     "ENTRY e { x = $T[2,5,0] parameter(0)\n w = $T[2,0,4] parameter(1)\n"
     " ROOT r = $T[2,4,4] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f }",
     kPlain,
     OfNothing,
     true},
    {"convolution-of-pad",
     {Opcode::Convolution},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { x = $T[2,5,3] parameter(0)\n w = $T[2,3,4] parameter(1)\n z = $T[] constant(0)\n"
     " p = $T[2,12,3] pad(x, z), padding=0_0x1_2_1x0_0\n"
     " ROOT r = $T[2,11,4] convolution(p, w), window={size=2}, dim_labels=b0f_0io->b0f }",
     "ENTRY e { x = $T[2,5,3] parameter(0)\n w = $T[2,3,4] parameter(1)\n z = $T[] constant(0)\n"
     " p = $T[2,12,3] pad(x, z), padding=0_0x1_2_1x0_0\n"
     " ROOT r = $T[2,12,4] convolution(p, w), window={size=2 pad=1_0}, dim_labels=b0f_0io->b0f }",
     OfPad,
     true},
    {"convolution-of-kernel-pad",
     {Opcode::Convolution},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { x = $T[2,5,3] parameter(0)\n w = $T[2,3,4] parameter(1)\n z = $T[] constant(0)\n"
     " p = $T[3,3,4] pad(w, z), padding=0_0_1x0_0x0_0\n"
     " ROOT r = $T[2,3,4] convolution(x, p), window={size=3}, dim_labels=b0f_0io->b0f }",
     "ENTRY e { x = $T[2,5,3] parameter(0)\n w = $T[2,3,4] parameter(1)\n z = $T[] constant(0)\n"
     " p = $T[3,3,4] pad(w, z), padding=0_1x0_0x0_0\n"
     " ROOT r = $T[2,3,4] convolution(x, p), window={size=3}, dim_labels=b0f_0io->b0f }",
     OfKernelPad,
     true},
    {"convolution-of-features-alone",
     {Opcode::Convolution},
     kInts | kFloats,
     Numerics::Order,
     "ENTRY e { x = $T[2,3,5,4] parameter(0)\n w = $T[3,1,1,4] parameter(1)\n"
     " ROOT r = $T[4,2,1,5] convolution(x, w), window={size=3x1}, dim_labels=b01f_01io->fb01, feature_group_count=4 }",
     "ENTRY e { x = $T[2,3,5,4] parameter(0)\n w = $T[2,1,1,4] parameter(1)\n"
     " ROOT r = $T[2,2,5,4] convolution(x, w), window={size=2x1}, dim_labels=b01f_01io->b01f, feature_group_count=4 }",
     OfFeaturesAlone,
     true},
};

}  // namespace

absl::Span<const Rule> ConvolutionRules() { return kRules; }

}  // namespace kiln
