// What a GPU program's collectives are, as constants that its runtime reads (runtime_min/gpu/nccl/exchange.h).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/host/kernel_plan.h"
#include "codegen/llvm/tables.h"
#include "compiler/hlo/nccl_call.h"

namespace kiln::gpu {

class ExchangeRecords {
 public:
  // Of one program. `name`: of the constants.
  ExchangeRecords(Ir& ir, const std::string& name, int64_t replicas, int64_t partitions)
      : tables_(ir, name), replicas_(replicas), partitions_(partitions) {}

  // The kiln_gpu_exchange of a collective. NCCL has a call for it, or the program was not brought into form: Internal.
  absl::StatusOr<llvm::Constant*> Of(const Thunk& t);
  // The kiln_gpu_groups of all of them so far; null: there were none.
  llvm::Constant* Groups();

 private:
  int64_t GroupingOf(const std::vector<Ints>& groups);
  absl::StatusOr<llvm::Constant*> RaggedOf(const Thunk& t);

  Tables tables_;
  const int64_t replicas_, partitions_;
  std::vector<std::vector<Ints>> groupings_;
  std::map<const Instruction*, llvm::Constant*> known_;
};

}  // namespace kiln::gpu
