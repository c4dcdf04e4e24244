#include "aot/tools/evaluate_devices.h"

#include <thread>

#include "compiler/eval/evaluator.h"
#include "compiler/eval/world.h"

namespace kiln {

absl::StatusOr<std::vector<std::vector<Literal>>> EvaluateDevices(const std::vector<DeviceProgram>& devices,
                                                                  int64_t replicas, int64_t partitions,
                                                                  const std::vector<Literal>& infeed) {
  World world(replicas, partitions);
  for (const Literal& l : infeed) world.Send(World::kInfeed, l);
  std::vector<std::vector<Literal>> results(devices.size());
  std::vector<absl::Status> status(devices.size());
  std::vector<std::thread> threads;
  for (size_t d = 0; d < devices.size(); ++d)
    threads.emplace_back([&, d] {
      Participant self(&world, static_cast<int64_t>(d));
      std::vector<Literal> args;
      size_t next = 0;
      for (const Instruction* p : devices[d].module->entry()->parameters())
        args.push_back(UnflattenLiteral(p->shape(), devices[d].arguments, &next));
      auto r = Evaluate(*devices[d].module, args);
      status[d] = r.status();
      if (r.ok())
        FlattenLiteral(*r, &results[d]);
      else
        world.Abort();
    });
  for (std::thread& t : threads) t.join();
  // The first cause, not the waits that it ended.
  for (const absl::Status& s : status)
    if (!s.ok() && !absl::IsDeadlineExceeded(s)) return s;
  for (const absl::Status& s : status) RETURN_IF_ERROR(s);
  return results;
}

}  // namespace kiln
