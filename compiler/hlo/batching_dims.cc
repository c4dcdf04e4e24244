#include "compiler/hlo/batching_dims.h"

#include <algorithm>

namespace kiln {

Ints BatchingDims(const Instruction& i) {
  return (i.Is(Opcode::Gather) ? i.attrs().operand_batching_dims : i.attrs().input_batching_dims).value_or(Ints());
}

bool IndexesBatchingDims(const Instruction& i) {
  const Ints& indexed = i.Is(Opcode::Gather) ? *i.attrs().start_index_map : *i.attrs().scatter_dims_to_operand_dims;
  const Ints batching = BatchingDims(i);
  return std::any_of(batching.begin(), batching.end(),
                     [&](int64_t d) { return std::find(indexed.begin(), indexed.end(), d) != indexed.end(); });
}

}  // namespace kiln
