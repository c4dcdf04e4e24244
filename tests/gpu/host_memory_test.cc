// Programs that place values in the host's memory, by the GPU runtime over the fake driver: what they compute is right,
// recorded or not, arrays of the host are reached, and all memory is given back.
#include <cmath>
#include <vector>

#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "tests/gpu/gpu_program.h"

namespace kiln {
namespace {

// A loop that stacks rows on the host, another that reads them back, and arguments and results that lie there.
constexpr char kHost[] =
    R"(HloModule m, entry_computation_layout={(f32[256]{0:S(5)}, f32[256]{0})->(f32[256]{0}, f32[256]{0:S(5)})}
more {
  s = (s32[], f32[8,256], f32[256]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  end = s32[] constant(8)
  ROOT less = pred[] compare(n, end), direction=LT
}
store {
  s = (s32[], f32[8,256], f32[256]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  all = f32[8,256] get-tuple-element(s), index=1
  x = f32[256] get-tuple-element(s), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(n, one)
  y = f32[256] cosine(x)
  h = f32[256] custom-call(y), custom_call_target="MoveToHost"
  row = f32[1,256] reshape(h)
  d = f32[8,256] dynamic-update-slice(all, row, n, zero)
  ROOT t = (s32[], f32[8,256], f32[256]) tuple(next, d, y)
}
still {
  s = (s32[], f32[8,256], f32[256]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  end = s32[] constant(8)
  ROOT less = pred[] compare(n, end), direction=LT
}
read {
  s = (s32[], f32[8,256], f32[256]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  all = f32[8,256] get-tuple-element(s), index=1
  sum = f32[256] get-tuple-element(s), index=2
  one = s32[] constant(1)
  most = s32[] constant(7)
  zero = s32[] constant(0)
  next = s32[] add(n, one)
  last = s32[] subtract(most, n)
  row = f32[1,256] dynamic-slice(all, last, zero), dynamic_slice_sizes={1,256}
  h = f32[256] reshape(row)
  y = f32[256] custom-call(h), custom_call_target="MoveToDevice"
  sine = f32[256] sine(y)
  added = f32[256] add(sum, sine)
  ROOT t = (s32[], f32[8,256], f32[256]) tuple(next, all, added)
}
ENTRY e {
  hx = f32[256] parameter(0)
  w = f32[256] parameter(1)
  x = f32[256] custom-call(hx), custom_call_target="MoveToDevice"
  none = f32[] constant(0)
  zero = s32[] constant(0)
  empty = f32[8,256] broadcast(none), dimensions={}
  begin = (s32[], f32[8,256], f32[256]) tuple(zero, empty, x)
  first = (s32[], f32[8,256], f32[256]) while(begin), condition=more, body=store
  all = f32[8,256] get-tuple-element(first), index=1
  again = (s32[], f32[8,256], f32[256]) tuple(zero, all, w)
  second = (s32[], f32[8,256], f32[256]) while(again), condition=still, body=read
  sum = f32[256] get-tuple-element(second), index=2
  product = f32[256] multiply(x, w)
  hp = f32[256] custom-call(product), custom_call_target="MoveToHost"
  ROOT r = (f32[256], f32[256]) tuple(sum, hp)
})";

class HostMemory : public testing::Test {
 protected:
  HostMemory() : program_(kHost, GpuOptions({"sm_90"})), device_(program_.library()) {
    for (size_t k = 0; k < kCount; ++k) {
      x_[k] = static_cast<float>(k % 11) / 10;
      w_[k] = 1 + static_cast<float>(k % 5);
    }
    const auto module = ParseHlo(kHost, "m.hlo");
    KILN_CHECK(module.ok());
    Literal x(Shape::Array(PrimitiveType::F32, {kCount})), w = x;
    std::copy(x_.begin(), x_.end(), reinterpret_cast<float*>(x.mutable_data()));
    std::copy(w_.begin(), w_.end(), reinterpret_cast<float*>(w.mutable_data()));
    auto want = Evaluate(**module, {x, w});
    KILN_CHECK(want.ok());
    want_ = *std::move(want);
  }

  void ExpectRight(const float* sum, const float* product) const {
    for (int64_t k = 0; k < static_cast<int64_t>(kCount); ++k) {
      EXPECT_NEAR(sum[k], want_.elements()[0].Get(k).re, 1e-5);
      EXPECT_EQ(product[k], want_.elements()[1].Get(k).re);
    }
  }

  static constexpr size_t kCount = 256, kBytes = kCount * sizeof(float);
  const GpuProgram program_;
  EmulatedDevice device_;
  std::vector<float> x_ = std::vector<float>(kCount), w_ = x_;
  Literal want_;
};

TEST_F(HostMemory, ComputesTheSameRecordedOrNot) {
  for (const bool graphs : {false, true}) {
    Gpu gpu(program_);
    ASSERT_EQ(gpu.status(), 0) << gpu.problem();
    gpu.set_graphs(graphs);
    for (int run = 0; run < 3; ++run) {
      std::vector<float> sum(kCount), product(kCount);
      ASSERT_EQ(gpu.run_host({x_.data(), w_.data()}, {sum.data(), product.data()}), 0) << gpu.error();
      ExpectRight(sum.data(), product.data());
    }
  }
  EXPECT_EQ(device_.fake.live, 0);
}

// An array for the host may lie in either memory: its address says which.
TEST_F(HostMemory, TakesArraysOfEitherMemory) {
  Gpu gpu(program_);
  ASSERT_EQ(gpu.status(), 0) << gpu.problem();
  auto* w = static_cast<float*>(gpu.malloc(kBytes));
  auto* sum = static_cast<float*>(gpu.malloc(kBytes));
  ASSERT_EQ(gpu.to_device(w, w_.data(), kBytes), 0);
  for (const bool on_host : {true, false}) {
    const auto room = [&] { return static_cast<float*>(on_host ? gpu.malloc_host(kBytes) : gpu.malloc(kBytes)); };
    float *x = room(), *product = room();
    ASSERT_TRUE(x && product);
    std::copy(x_.begin(), x_.end(), x);  // the fake device's memory is the host's
    ASSERT_EQ(gpu.run({x, w}, {sum, product}), 0) << gpu.error();
    ASSERT_EQ(gpu.wait(), 0);
    ExpectRight(sum, product);
    for (float* array : {x, product}) on_host ? gpu.free_host(array) : gpu.free(array);
  }
  gpu.free(w);
  gpu.free(sum);
}

TEST_F(HostMemory, SaysWhatItCannotHave) {
  device_.fake.failures["cuMemHostAlloc"] = {0, 2, true};
  const Gpu gpu(program_);
  EXPECT_NE(gpu.status(), 0);
  EXPECT_NE(gpu.problem().find("no page-locked memory"), std::string::npos) << gpu.problem();
}

}  // namespace
}  // namespace kiln
