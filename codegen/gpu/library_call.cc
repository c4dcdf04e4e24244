#include "codegen/gpu/library_call.h"

namespace kiln::gpu {

absl::StatusOr<RoutineCall> RoutineOf(const Instruction* call) {
  return ErrorAt(call, "no library routine of that name", absl::StatusCode::kUnimplemented);
}

}  // namespace kiln::gpu
