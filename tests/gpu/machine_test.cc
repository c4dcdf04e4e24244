// Programs that kiln run compiles and runs on the machine's GPU: here the fake driver's, whose kernels the emulator
// runs.
#include "aot/tools/gpu_machine.h"
#include "aot/tools/runner.h"
#include "compiler/eval/evaluator.h"
#include "tests/gpu/gpu_program.h"

namespace kiln {
namespace {

constexpr char kSum[] = R"(HloModule m, input_output_alias={ {1}: (1, {}, may-alias) }
ENTRY e {
  x = f32[300] parameter(0)
  y = f32[300] parameter(1)
  s = f32[300] add(x, y)
  t = f32[300] multiply(y, y)
  ROOT r = (f32[300], f32[300]) tuple(s, t)
})";

constexpr char kExchange[] = R"(HloModule m, replica_count=2
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[64] parameter(0)
  s = f32[64] all-reduce(x), replica_groups={{0,1}}, to_apply=add
  ROOT r = f32[64] multiply(s, x)
})";

RunOptions OnGpu(int repeat) {
  RunOptions o;
  o.backend = "gpu";
  o.repeat = repeat;
  return o;
}

TEST(Machine, RunsAProgramOnItsGpu) {
  const CompileOptions options = GpuOptions({"sm_90"});
  const GpuProgram twin(kSum, options);
  EmulatedDevice device(twin.library());
  auto machine = GpuMachine::Get();
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ((*machine)->count(), 1);
  EXPECT_EQ((*machine)->target(), "sm_90");
  auto module = ParseHlo(kSum, "m.hlo");
  ASSERT_TRUE(module.ok());
  const std::vector<Literal> arguments = SeededArguments(**module, 3);
  auto want = Evaluate(**module, arguments);
  ASSERT_TRUE(want.ok());
  // Runs give the argument that they overwrite back, and a queue of them follows; results are the first run's.
  const int live = device.fake.live;
  auto got = RunModule((*module)->Clone(), arguments, options, OnGpu(5));
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->results.size(), 2u);
  for (size_t k = 0; k < 2; ++k) EXPECT_TRUE(got->results[k] == want->elements()[k]);
  EXPECT_GT(got->median_us, 0);
  EXPECT_GT(got->queued_us, 0);
  EXPECT_EQ(device.fake.live, live) << "the program left something on the device";
  // A failure is told in the driver's words, and the next program runs.
  device.fake.failures["cuLaunchKernel"] = {0, 719};
  auto failed = RunModule((*module)->Clone(), arguments, options, OnGpu(1));
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.status().message().find("a kernel does not start"), std::string::npos) << failed.status();
  auto again = RunModule((*module)->Clone(), arguments, options, OnGpu(1));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->results[0] == want->elements()[0]);
  EXPECT_EQ(again->queued_us, 0);
}

TEST(Machine, OneGpuIsSeveralDevices) {
  CompileOptions twins = GpuOptions({"sm_90"});
  twins.model.name = "m_0";
  twins.gpu.transport = GpuOptions::Transport::kHost;
  const GpuProgram twin(kExchange, twins);
  EmulatedDevice device(twin.library());
  auto module = ParseHlo(kExchange, "m.hlo");
  ASSERT_TRUE(module.ok());
  const std::vector<Literal> arguments = SeededArguments(**module, 5);
  auto got = RunModule((*module)->Clone(), arguments, GpuOptions({"sm_90"}), OnGpu(2));
  ASSERT_TRUE(got.ok()) << got.status();
  for (int64_t k = 0; k < 64; ++k) {
    const double x = arguments[0].Get(k).re;
    EXPECT_FLOAT_EQ(static_cast<float>(got->results[0].Get(k).re), static_cast<float>(2 * x * x));
  }
}

}  // namespace
}  // namespace kiln
