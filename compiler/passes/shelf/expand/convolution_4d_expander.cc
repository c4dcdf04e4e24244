// Convolutions over more than three spatial dimensions lose those of extent 1 in input, kernel and result, where
// there is nothing to slide over.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

std::vector<size_t> Trivial(const Instruction* i) {
  const ConvDimensionNumbers& d = *i->attrs().dim_labels;
  std::vector<size_t> out;
  for (size_t k = 0; k < d.input_spatial.size(); ++k) {
    const WindowDim& w = (*i->attrs().window)[k];
    if (i->operand(0)->shape().dim(d.input_spatial[k]) == 1 && w.size == 1 && w.pad_low == 0 && w.pad_high == 0 &&
        i->shape().dim(d.output_spatial[k]) == 1)
      out.push_back(k);
  }
  return out;
}

void Drop(int64_t gone, std::vector<int64_t*> places) {
  for (int64_t* p : places)
    if (*p > gone) --*p;
}

}  // namespace

absl::StatusOr<bool> Convolution4dExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return i->Is(Opcode::Convolution) && i->attrs().dim_labels->input_spatial.size() > 3 && !Trivial(i).empty();
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        std::vector<size_t> gone = Trivial(i);
        Attributes a = i->attrs();
        ConvDimensionNumbers& d = *a.dim_labels;
        Ints x = i->operand(0)->shape().dims(), w = i->operand(1)->shape().dims(), y = i->shape().dims();
        for (size_t n = gone.size(); n-- > 0;) {
          const auto take = [&](Ints* dims, Ints* spatial, int64_t* first, int64_t* second) {
            const int64_t at = (*spatial)[gone[n]];
            dims->erase(dims->begin() + at);
            spatial->erase(spatial->begin() + static_cast<std::ptrdiff_t>(gone[n]));
            std::vector<int64_t*> places = {first, second};
            for (int64_t& s : *spatial) places.push_back(&s);
            Drop(at, places);
          };
          take(&x, &d.input_spatial, &d.input_batch, &d.input_feature);
          take(&w, &d.kernel_spatial, &d.kernel_input, &d.kernel_output);
          take(&y, &d.output_spatial, &d.output_batch, &d.output_feature);
          a.window->erase(a.window->begin() + static_cast<std::ptrdiff_t>(gone[n]));
        }
        Instruction* conv = i->parent()->Add(Opcode::Convolution, Shape::Array(i->shape().type(), y),
                                             {ReshapeTo(i->operand(0), x).get(), ReshapeTo(i->operand(1), w).get()});
        conv->mutable_attrs() = std::move(a);
        return ReshapeTo(conv, i->shape().dims()).get();
      });
}

}  // namespace kiln
