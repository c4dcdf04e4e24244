# what: weights in a file of the safetensors library, swapped while threads run the model
# packages: g++ python3-venv
# kiln: deb
# expects: no run saw parts of two files
cat > mlp.mlir <<'END'
func.func @main(%a: tensor<256x256xf32> loc("params['a']"), %b: tensor<256x256xf32> loc("params['b']"),
                %x: tensor<1x256xf32> loc("x")) -> tensor<1x256xf32> {
  %0 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0]
     : (tensor<1x256xf32>, tensor<256x256xf32>) -> tensor<1x256xf32>
  %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0]
     : (tensor<1x256xf32>, tensor<256x256xf32>) -> tensor<1x256xf32>
  return %1 : tensor<1x256xf32>
}
END
echo 'weights { arguments: "params.*" }' > mlp.config
kiln compile mlp.mlir --name mlp --config mlp.config -o build
python3 -m venv env
env/bin/pip install --quiet numpy safetensors
cat > save.py <<'END'
import numpy as np
from safetensors.numpy import save_file

for v in (1, 2):
    all_v = np.full((256, 256), v, np.float32)
    save_file({"params.a": all_v, "params.b": all_v}, f"{v}.safetensors")
END
env/bin/python save.py
cat > app.cc <<'END'
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "mlp.h"

int main() {
  // A result is 256 * 256 * a * b: parts of both files would give twice that of the first.
  const std::vector<float> x(256, 1), first(256, 65536), second(256, 4 * 65536);
  mlp::Weights weights("1.safetensors");
  if (!weights.ok()) return std::puts(weights.error()), 1;
  std::atomic<bool> stop{false};
  std::atomic<int> of_first{0}, of_second{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      mlp::Context context;
      std::vector<float> y(256);
      while (!stop) {
        const bool ok = mlp::run(context, weights, x, y).ok();
        if (ok && y == first)
          ++of_first;
        else if (ok && y == second)
          ++of_second;
        else
          ++wrong;
      }
    });
  for (int k = 0; !wrong && (k < 1000 || of_first < 1000 || of_second < 1000); ++k)
    if (!weights.Swap(mlp::Weights(k % 2 ? "1.safetensors" : "2.safetensors"))) ++wrong;
  stop = true;
  for (std::thread& t : threads) t.join();
  if (wrong) return std::printf("%d runs are wrong\n", wrong.load()), 1;
  std::puts("no run saw parts of two files");
}
END
g++ -std=c++17 -O2 -Wall -Wextra -Werror -Ibuild app.cc build/libmlp.a -lm -lpthread -o app
./app
