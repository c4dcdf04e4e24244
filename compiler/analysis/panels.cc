#include "compiler/analysis/panels.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "compiler/hlo/graph_builder.h"

namespace kiln {
namespace {

const Ints kByRows = {0, 2, 1, 3}, kByGroups = {0, 2, 4, 1, 3};

Instruction* RowMajor(Expr x) {
  x.get()->mutable_shape().SetDefaultLayouts();
  return x.get();
}

}  // namespace

std::optional<Panels> PanelsOf(const Instruction* product) {
  if (!product->Is(Opcode::Dot) && !product->Is(Opcode::Convolution)) return std::nullopt;
  const Instruction* i = product->operand(1);
  while (i->Is(Opcode::Bitcast) || i->Is(Opcode::Slice)) i = i->operand(0);
  if (!i->Is(Opcode::Transpose) || !i->operand(0)->Is(Opcode::Parameter)) return std::nullopt;
  const Ints& order = *i->attrs().dimensions;
  const Shape& s = i->operand(0)->shape();
  if (order == kByRows) return Panels{i->operand(0), s.dim(3), s.dim(1), s.dim(2), 1};
  if (order == kByGroups) return Panels{i->operand(0), s.dim(3), s.dim(1), s.dim(2) * s.dim(4), s.dim(4)};
  return std::nullopt;
}

int64_t PanelWidth(int64_t n, int64_t bytes) {
  constexpr int64_t kVectorBytes = 64;
  const int64_t lanes = kVectorBytes / bytes, vectors = (n + lanes - 1) / lanes;
  int64_t best = 0, best_last = 0;
  for (const int64_t width : {4, 6, 3, 5}) {
    const int64_t last = (vectors - 1) % width + 1;
    if (best == 0 || last * best > best_last * width) std::tie(best, best_last) = std::pair(width, last);
  }
  return std::min(best, vectors) * lanes;
}

Instruction* UnpackPanels(Instruction* panels, int64_t n) {
  const Shape& s = panels->shape();
  const bool groups = s.rank() == 5;
  Instruction* rows = RowMajor(TransposeBy(panels, groups ? kByGroups : kByRows));
  const int64_t k = groups ? s.dim(2) * s.dim(4) : s.dim(2), width = s.dim(1) * s.dim(3);
  Shape whole = Shape::Array(s.type(), {s.dim(0), k, width});
  whole.SetDefaultLayouts();
  Instruction* operand = panels->parent()->Add(Opcode::Bitcast, whole, {rows});
  return RowMajor(SliceOf(operand, {0, 0, 0}, {s.dim(0), k, n}));
}

}  // namespace kiln
