# What the page shows of programs, in whole ones.
cat > cpp.cc <<'END_OF_FILE'
#include <cstdio>
#include <vector>

#include "mlp.h"

int main() {
  std::vector<float> w0(16, 0.5f), w1(16, 0.25f);
  float b0[4] = {}, b1[4] = {0, 0, 0, 1};
  const float pixels[2][4] = {{1, 2, 3, 4}, {0, 1, 0, 1}};
#include "run.inc"
}
END_OF_FILE
cat > c.c <<'END_OF_FILE'
#include <stdio.h>

#include "mlp_c.h"

int main(void) {
  static _Alignas(MLP_ALIGNMENT) unsigned char memory[MLP_ARENA_BYTES + 1];
  static float w0[16] = {1}, w1[16] = {1}, b0[4], b1[4], pixels[8] = {1}, scores[8];
#include "run_in_c.inc"
  mlp_pool_destroy(pool);
  printf("%.4f\n", scores[0]);
  return status;
}
END_OF_FILE
cat > gpu.cc <<'END_OF_FILE'
#include <cstdio>

#include "mlp.h"

int main() {
  float pixels[2][4] = {}, scores[2][4] = {{1}}, d_pixels[8] = {}, d_scores[8] = {}, d_next[8] = {};
  const std::size_t bytes = sizeof pixels;
  mlp::Context context;
#include "gpu.inc"
  return s.code != 0 || scores[0][0] != 0;
}
END_OF_FILE
c++ -std=c++17 -Wall -Wextra -Werror -Ibuild cpp.cc build/libmlp.a -lm -lpthread -o cpp
./cpp | grep -q '^0.9640'
cc -std=c11 -Wall -Wextra -Werror -Ibuild c.c build/libmlp.a -lm -lpthread -o c
test "$(./c)" = 0.6420
kiln compile constant.mlir --name mlp --out gpu --target v3 --target sm_90
c++ -std=c++17 -Wall -Wextra -Werror -Igpu gpu.cc gpu/libmlp.a -lm -lpthread -ldl -o gpu_app
./gpu_app
