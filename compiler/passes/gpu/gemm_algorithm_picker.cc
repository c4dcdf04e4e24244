// Products get the algorithm that was fastest when they were measured (kiln tune): one of the library's, or a tile of
// kiln's own kernel. Without a result the library's or kiln's own choice stays.
#include "compiler/pass/pass.h"
#include "compiler/passes/gpu/pick_algorithm.h"

namespace kiln {

absl::StatusOr<bool> GemmAlgorithmPicker(Module& m, PassContext& ctx) {
  return PickAlgorithms(m, ctx, IsTunableProduct);
}

}  // namespace kiln
