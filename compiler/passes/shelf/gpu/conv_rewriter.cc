// Convolutions become calls of cuDNN: (result, workspace) by the routine for what they are - forward, the gradient of
// the input (a dilated input under a reversed window) or the gradient of the filter (a dilated window).
//
// Integers go only as s8 x s8 into s32 or f32; other types, windows the library lacks and unequal roles of groups stay.
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool TypesServed(const Instruction* i) {
  using P = PrimitiveType;
  const P a = i->operand(0)->shape().type(), b = i->operand(1)->shape().type(), out = i->shape().type();
  if (a != b) return false;
  if (a == P::S8) return out == P::S32;
  return (a == P::F16 || a == P::BF16 || a == P::F32 || a == P::F64) && out == a;
}

bool Served(const Instruction* i) {
  if (!i->Is(Opcode::Convolution) || !i->attrs().dim_labels || !TypesServed(i) || i->shape().HasDynamic()) return false;
  const int64_t spatial = i->shape().rank() - 2;
  if (spatial < 1 || spatial > 3 || i->shape().ElementCount() == 0 || i->attrs().batch_group_count.value_or(1) != 1)
    return false;
  for (const WindowDim& w : i->attrs().window.value_or(attr::Win()))
    if (w.size == 0 || (w.lhs_dilate > 1 && w.stride > 1)) return false;
  return i->operand(0)->shape().ElementCount() > 0;
}

const char* TargetOf(const Instruction* i) {
  bool reversed = true, input_dilated = false, window_dilated = false;
  for (const WindowDim& w : i->attrs().window.value_or(attr::Win())) {
    reversed = reversed && (w.reversed || w.size == 1);
    input_dilated = input_dilated || w.lhs_dilate > 1;
    window_dilated = window_dilated || w.rhs_dilate > 1;
  }
  const bool plain_groups = i->attrs().feature_group_count.value_or(1) == 1;
  if (reversed && input_dilated && plain_groups) return kConvBackwardInputTarget;
  // The batch of such a call is a feature of the input: its labels say so.
  const ConvDimensionNumbers& d = *i->attrs().dim_labels;
  if (window_dilated && plain_groups && d.input_batch > d.input_feature) return kConvBackwardFilterTarget;
  return kConvForwardTarget;
}

}  // namespace

absl::StatusOr<bool> ConvRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, Served, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    Computation* c = i->parent();
    const Shape none = Shape::Array(PrimitiveType::U8, {0});
    Instruction* call = c->Add(Opcode::CustomCall, Shape::Tuple({i->shape(), none}), i->operands(), "cudnn-conv");
    call->mutable_attrs().window = i->attrs().window;
    call->mutable_attrs().dim_labels = i->attrs().dim_labels;
    call->mutable_attrs().feature_group_count = i->attrs().feature_group_count;
    call->mutable_attrs().custom_call_target = attr::Str(TargetOf(i));
    call->mutable_attrs().backend_config = ToText(ConvConfig{});
    call->set_loc(i->loc());
    Instruction* result = PartOf(call, 0).get();
    return result;
  });
}

}  // namespace kiln
