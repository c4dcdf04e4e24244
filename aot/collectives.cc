#include "aot/collectives.h"

#include <algorithm>

#include "compiler/hlo/nccl_call.h"
#include "compiler/hlo/replica_groups.h"

namespace kiln {
namespace {

int64_t SliceBytes(const std::vector<Slice>& slices) {
  int64_t bytes = 0;
  for (const Slice& s : slices) bytes += s.size;
  return bytes;
}

const char* TextOf(NcclReduction::Op op) {
  switch (op) {
    case NcclReduction::Op::kSum:
      return "sum";
    case NcclReduction::Op::kProduct:
      return "product";
    case NcclReduction::Op::kMinimum:
      return "minimum";
    case NcclReduction::Op::kMaximum:
      return "maximum";
  }
  return "";
}

// The functions of NCCL that it becomes.
std::string AlgorithmOf(const NcclCall& call) {
  using Kind = NcclCall::Kind;
  const bool reduces = call.kind == Kind::kAllReduce || call.kind == Kind::kReduceScatter;
  const char* function = call.kind == Kind::kAllReduce       ? "ncclAllReduce"
                         : call.kind == Kind::kReduceScatter ? "ncclReduceScatter"
                         : call.kind == Kind::kAllGather     ? "ncclAllGather"
                         : call.kind == Kind::kBroadcast     ? "ncclBroadcast"
                                                             : "ncclSend and ncclRecv in a group";
  if (!reduces) return function;
  return absl::StrCat(function, ", ", TextOf(call.reduction->op), " of ", TextOf(call.reduction->type));
}

struct Collector {
  const Module& module;
  const bool on_gpu, nccl;
  std::vector<CollectiveUse> out;

  absl::Status Add(const ThunkSequence& thunks) {
    for (const Thunk& t : thunks) {
      for (const ThunkSequence& n : t.nested) RETURN_IF_ERROR(Add(n));
      if (t.kind == ThunkKind::AllGather || t.kind == ThunkKind::Exchange) RETURN_IF_ERROR(Add(t));
    }
    return absl::OkStatus();
  }

  absl::Status Add(const Thunk& t) {
    const Instruction& i = *t.instruction;
    CollectiveUse use;
    use.name = i.name();
    use.kind = std::string(TextOf(i.opcode()));
    use.bytes = std::max(SliceBytes(t.reads), SliceBytes(t.writes));
    std::vector<Ints> groups;
    if (nccl && i.Is(Opcode::RaggedAllToAll)) {
      use.transport = "nccl";
      use.algorithm = "ncclSend and ncclRecv in a group, of sizes that the host reads";
      ASSIGN_OR_RETURN(groups, DeviceGroups(i, module.replica_count, module.partition_count));
    } else if (nccl) {
      ASSIGN_OR_RETURN(const auto call, NcclCallOf(i, module.replica_count, module.partition_count));
      if (!call) return ErrorAt(&i, "has not the form of a call of NCCL", absl::StatusCode::kInternal);
      use.transport = "nccl";
      use.algorithm = AlgorithmOf(*call);
      groups = call->groups;
    } else {
      ASSIGN_OR_RETURN(const auto exchange, ExchangeOf(i, module.replica_count, module.partition_count));
      use.transport = on_gpu ? "host" : "kiln_comm";
      use.algorithm = exchange && !on_gpu ? "exchange" : "gather";
      if (exchange) {
        groups = exchange->groups;
      } else {
        ASSIGN_OR_RETURN(groups, DeviceGroups(i, module.replica_count, module.partition_count));
      }
    }
    for (const Ints& g : groups) use.group_size = std::max(use.group_size, static_cast<int64_t>(g.size()));
    use.groups = static_cast<int64_t>(groups.size());
    out.push_back(std::move(use));
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::vector<CollectiveUse>> CollectivesOf(const PlannedProgram& program, ProgramTarget target,
                                                         const GpuOptions& gpu) {
  const bool on_gpu = target == ProgramTarget::kGpu;
  Collector c = {*program.module, on_gpu, on_gpu && gpu.transport == GpuOptions::Transport::kNccl, {}};
  RETURN_IF_ERROR(c.Add(program.thunks));
  return std::move(c.out);
}

}  // namespace kiln
