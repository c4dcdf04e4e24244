// Padding between elements, as the gradient of a stride has it: each row is filled, then its elements are placed. A
// test at every element, with a division for its place, takes longer than writing some twice.
#include <algorithm>

#include "codegen/cpu/fusion.h"

namespace kiln::cpu {
namespace {

struct Line {
  int64_t first, end;  // of the operand's places along a dimension, what the result keeps
};

Line KeptOf(const PadDim& p, int64_t extent, int64_t result) {
  const int64_t step = p.interior + 1;
  const auto up = [step](int64_t n) { return n <= 0 ? 0 : (n + step - 1) / step; };
  const int64_t first = std::min(extent, up(-p.low));
  return {first, std::max(first, std::min(extent, up(result - p.low)))};
}

}  // namespace

bool PadsBetween(const Instruction* root) {
  if (!root->Is(Opcode::Pad) || root->operand(0)->shape().ElementCount() == 0) return false;
  const Ints& dims = root->shape().dims();
  const attr::Padding& padding = *root->attrs().padding;
  return std::any_of(padding.begin(), padding.end(), [](const PadDim& p) { return p.interior != 0; }) &&
         std::count_if(dims.begin(), dims.end(), [](int64_t n) { return n != 1; }) > 1;
}

absl::StatusOr<int64_t> EmitPadBetween(FusionBody& fusion, const Instruction* root) {
  Ir& ir = fusion.ir;
  ElementEmitter& elements = fusion.elements;
  const Shape &s = root->shape(), &from = root->operand(0)->shape();
  const attr::Padding& padding = *root->attrs().padding;
  ASSIGN_OR_RETURN(Val fill, elements.Emit(root->operand(1), Index{}));
  fill = ir.Convert(fill, root->operand(1)->shape().type(), s.type());
  const Ints order = UsefulLoops(s), rows(order.begin(), order.end() - 1);
  const int64_t minor = order.back();
  using At = std::vector<llvm::Value*>;
  absl::Status status;
  const auto store = [&](const Val& v, const At& at) {
    ir.Store(s.type(), v, fusion.body.results[0], elements.Offset(s, IndexIn(s, at)));
  };
  RETURN_IF_ERROR(Nest(
      fusion, s.dims(), rows,
      [&](At at) -> absl::Status {
        const size_t along = static_cast<size_t>(minor);
        llvm::Value* inside = ir.b.getTrue();
        At source(at.size());
        for (int64_t d = 0; d < s.rank(); ++d) {
          if (d == minor) continue;
          const PadDim& p = padding[static_cast<size_t>(d)];
          const auto [first, end] = KeptOf(p, from.dim(d), s.dim(d));
          // Counted from the first element that is kept, so that what divides is not negative where it matters.
          const int64_t begin = p.low + first * (p.interior + 1);
          llvm::Value* place = ir.b.CreateSub(at[static_cast<size_t>(d)], ir.I64(begin));
          llvm::Value* step = ir.I64(p.interior + 1);
          llvm::Value* k = ir.b.CreateUDiv(place, step);
          llvm::Value* ok = ir.b.CreateAnd(ir.b.CreateICmpEQ(ir.b.CreateURem(place, step), ir.I64(0)),
                                           ir.b.CreateICmpULT(k, ir.I64(end - first)));
          inside = ir.b.CreateAnd(inside, ok);
          source[static_cast<size_t>(d)] = ir.Add(k, ir.I64(first));
        }
        ir.VectorLoop(
            s.dim(minor),
            [&](llvm::Value* j) {
              at[along] = j;
              store(fill, at);
            },
            true);
        ir.If(inside, [&] {
          const PadDim& p = padding[along];
          const auto [first, end] = KeptOf(p, from.dim(minor), s.dim(minor));
          ir.Loop(
              ir.I64(first), ir.I64(end), 1,
              [&](llvm::Value* k) {
                source[along] = k;
                at[along] = ir.b.CreateNSWAdd(ir.Mul(k, p.interior + 1), ir.I64(p.low));
                const auto v = elements.Emit(root->operand(0), IndexIn(from, source));
                status.Update(v.status());
                if (v.ok()) store(ir.Convert(*v, from.type(), s.type()), at);
              },
              true);
        });
        return status;
      },
      false));
  return Units(s.dims(), order);
}

}  // namespace kiln::cpu
