// Grouped convolutions as plain ones: groups of features by a kernel that is zero between groups, groups of the batch
// as groups of features first. For targets whose convolutions have no groups; the products with zeros cost time.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// Batch group k is feature group k: the groups move from the batch into the features, outermost.
Instruction* BatchToFeatureGroups(Instruction* i) {
  const ConvDimensionNumbers& d = *i->attrs().dim_labels;
  const int64_t g = *i->attrs().batch_group_count;
  Expr x = i->operand(0);
  Ints dims = x.shape().dims(), split = dims, order;
  split[d.input_batch] /= g;
  split.insert(split.begin() + d.input_batch, g);
  const int64_t feature = d.input_feature + (d.input_feature > d.input_batch ? 1 : 0);
  for (int64_t k = 0; k < static_cast<int64_t>(split.size()); ++k) {
    if (k == d.input_batch) continue;
    if (k == feature) order.push_back(d.input_batch);
    order.push_back(k);
  }
  dims[d.input_batch] /= g;
  dims[d.input_feature] *= g;
  Expr moved = ReshapeTo(TransposeBy(ReshapeTo(x, split), order), dims);
  Instruction* n = i->parent()->AddClone(i, i->shape(), {moved.get(), i->operand(1)});
  n->mutable_attrs().batch_group_count.reset();
  n->mutable_attrs().feature_group_count = g;
  return n;
}

Instruction* WithoutFeatureGroups(Instruction* i) {
  const ConvDimensionNumbers& d = *i->attrs().dim_labels;
  const int64_t g = *i->attrs().feature_group_count;
  Expr w = i->operand(1);
  Computation* c = i->parent();
  const int64_t in = w.shape().dim(d.kernel_input), out = w.shape().dim(d.kernel_output);
  Expr tiled = ConcatOf(std::vector<Expr>(static_cast<size_t>(g), w), d.kernel_input);
  const Ints dims = tiled.shape().dims();
  Expr from = IotaOf(c, PrimitiveType::S32, dims, d.kernel_input) / static_cast<double>(in);
  Expr to = IotaOf(c, PrimitiveType::S32, dims, d.kernel_output) / static_cast<double>(out / g);
  Expr kernel = SelectExpr(from == to, tiled, tiled.Like(0));
  Instruction* n = c->AddClone(i, i->shape(), {i->operand(0), kernel.get()});
  n->mutable_attrs().feature_group_count.reset();
  return n;
}

}  // namespace

absl::StatusOr<bool> ConvolutionGroupConverter(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return i->Is(Opcode::Convolution) &&
               (i->attrs().feature_group_count.value_or(1) > 1 || i->attrs().batch_group_count.value_or(1) > 1);
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        if (i->attrs().batch_group_count.value_or(1) <= 1) return WithoutFeatureGroups(i);
        Instruction* features = BatchToFeatureGroups(i);
        Instruction* plain = WithoutFeatureGroups(features);
        i->parent()->Remove(features);
        return plain;
      });
}

}  // namespace kiln
