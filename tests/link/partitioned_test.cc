// Arguments cut and a result joined by the generated functions: four devices give what one computes, with extents that
// do not divide and copies of a part on several devices.
#include "partitioned.h"

#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kDevices = PARTITIONED_DEVICES, kRows = 10, kDepth = 6, kColumns = 8;

}  // namespace

int main() {
  static float x[kRows * kDepth], w[kDepth * kColumns], b[kColumns], y[kRows * kColumns];
  for (int k = 0; k < kRows * kDepth; ++k) x[k] = static_cast<float>(k % 7 - 3);
  for (int k = 0; k < kDepth * kColumns; ++k) w[k] = static_cast<float>(k % 5 - 2);
  for (int k = 0; k < kColumns; ++k) b[k] = static_cast<float>(k);
  kiln_world* world = partitioned_world_create(kDevices);
  if (!world) return std::puts("no world"), 1;
  std::vector<std::thread> threads;
  std::vector<int> failed(kDevices);
  static float parts[kDevices][PARTITIONED_RESULT_RESULT0_COUNT];
  for (int device = 0; device < kDevices; ++device)
    threads.emplace_back([&, device] {
      float part_x[PARTITIONED_ARGUMENT_X_COUNT], part_w[PARTITIONED_ARGUMENT_W_COUNT],
          part_b[PARTITIONED_ARGUMENT_B_COUNT];
      partitioned::cut_x(device, x, part_x);
      partitioned::cut_w(device, w, part_w);
      partitioned::cut_b(device, b, part_b);
      partitioned::Context context;
      context.set_comm(partitioned_world_comm(world, device));
      failed[static_cast<size_t>(device)] = !partitioned::run(context, part_x, part_w, part_b, parts[device]);
    });
  for (std::thread& t : threads) t.join();
  partitioned_world_destroy(world);
  int wrong = 0;
  for (int device = 0; device < kDevices; ++device) {
    wrong += failed[static_cast<size_t>(device)];
    partitioned::join_result0(device, parts[device], y);
  }
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) {
      float want = b[c];
      for (int k = 0; k < kDepth; ++k) want += x[r * kDepth + k] * w[k * kColumns + c];
      if (std::fabs(y[r * kColumns + c] - want) > 1e-5f && wrong++ < 5)
        std::printf("y[%d][%d] is %g, not %g\n", r, c, y[r * kColumns + c], want);
    }
  return wrong != 0;
}
