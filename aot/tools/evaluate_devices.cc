#include "aot/tools/evaluate_devices.h"

#include "compiler/eval/world.h"

namespace kiln {

absl::StatusOr<std::vector<std::vector<Literal>>> EvaluateDevices(const std::vector<DeviceProgram>& devices,
                                                                  int64_t replicas, int64_t partitions,
                                                                  const std::vector<Literal>& infeed) {
  World world(replicas, partitions);
  for (const Literal& l : infeed) world.Send(World::kInfeed, l);
  std::vector<const Module*> programs;
  std::vector<std::vector<Literal>> arguments;
  for (const DeviceProgram& device : devices) {
    programs.push_back(device.module);
    arguments.emplace_back();
    size_t next = 0;
    for (const Instruction* p : device.module->entry()->parameters())
      arguments.back().push_back(UnflattenLiteral(p->shape(), device.arguments, &next));
  }
  ASSIGN_OR_RETURN(const std::vector<Literal> whole, EvaluateOnDevices(programs, arguments, &world));
  std::vector<std::vector<Literal>> results(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) FlattenLiteral(whole[d], &results[d]);
  return results;
}

}  // namespace kiln
