// Panels: the order in which the constant second operand of a product lies so that CPU kernels read it where it is.
//
// A panel has some columns of the operand, row by row: [batch, panel, k, column], or [batch, panel, k / group, column,
// group] where instructions multiply groups of neighbours along k. The program says so by what a fusion of kind kOutput
// makes of its parameter before it multiplies: a transpose, a bitcast and, where columns do not fill the last panel, a
// slice. That is what the values mean; kernels read the parameter. Of a convolution's kernel k runs over the taps, and
// in each of them over the input's features.
// One width serves every CPU level, since the constant exists once: the tiles of narrower vectors divide it.
#pragma once

#include <optional>

#include "compiler/hlo/instruction.h"

namespace kiln {

struct Panels {
  const Instruction* source;  // the parameter that has the panels
  int64_t width;              // columns of a panel
  int64_t count;              // panels of a batch
  int64_t rows;               // of k
  int64_t group;              // elements of k side by side
  int64_t batch_elements() const { return count * rows * width; }
};

// The panels that `product`, a dot or a convolution, reads its second operand from; nullopt where it reads it as it is.
std::optional<Panels> PanelsOf(const Instruction* product);

// Columns of a panel for `n` columns whose groups take `bytes` each: whole vectors of 64 bytes, as many as a tile has,
// so that the last panel is the fullest.
int64_t PanelWidth(int64_t n, int64_t bytes);

// `panels`, of the shape above, as the operand [batch, k, n], in the computation of `panels`.
Instruction* UnpackPanels(Instruction* panels, int64_t n);

}  // namespace kiln
