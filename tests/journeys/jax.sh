# what: the wheel beside JAX: a function compiled and called, and its library in a C++ program
# packages: g++ python3-venv
# kiln: wheel
# expects: JAX, Python and C++ agree
# within: 120
python3 -m venv env
env/bin/pip install --quiet -r /requirements/jax.txt /kiln_aot-*.whl
cat > mlp.py <<'END'
import jax
import jax.numpy as jnp
import kiln
import numpy as np


def mlp(params, x):
    for layer in params["layers"]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return {"scores": jax.nn.softmax(x)}


rng = np.random.default_rng(0)
numbers = rng.normal(size=(2 * (1 + 16) + 8, 16)).astype(np.float32) / 4
b0, b1, w0, w1, x = np.split(numbers, [1, 2, 18, 34])
params = {"layers": [{"w": w0, "b": b0[0]}, {"w": w1, "b": b1[0]}]}
scores = mlp(params, x)["scores"]

compiled = kiln.compile(mlp, params, x)
np.testing.assert_allclose(compiled(params, x)["scores"], scores, rtol=1e-5, atol=1e-6)
compiled.write("build")
numbers.tofile("numbers")
np.asarray(scores).tofile("scores")
END
env/bin/python mlp.py
cat > app.cc <<'END'
#include <cstdio>
#include <utility>

#include "mlp.h"

int main() {
  static float b[2][16], w[2][16][16], x[8][16], scores[8][16];
  for (auto [data, bytes] : {std::pair<void*, size_t>(b, sizeof b), {w, sizeof w}, {x, sizeof x}})
    if (std::fread(data, bytes, 1, stdin) != 1) return 2;
  mlp::Arguments args;
  for (int k = 0; k < 2; ++k) {
    args.params.layers[k].b = b[k];
    args.params.layers[k].w = w[k];
  }
  args.x = x;
  mlp::Context context;
  const mlp::Status status = mlp::run(context, args, {scores});
  if (!status) return std::fputs(status.text(), stderr), 1;
  return std::fwrite(scores, sizeof scores, 1, stdout) == 1 ? 0 : 1;
}
END
g++ -std=c++17 -O2 -Wall -Wextra -Werror -Ibuild app.cc build/libmlp.a -lm -lpthread -o app
./app < numbers > scores_of_app
env/bin/python -c '
import numpy as np
np.testing.assert_allclose(np.fromfile("scores_of_app", "f4"), np.fromfile("scores", "f4"), rtol=1e-5, atol=1e-6)'
echo JAX, Python and C++ agree
