# what: the wheel beside PyTorch: a module compiled and called, and its library in a C++ program
# packages: g++ python3-venv
# kiln: wheel
# expects: PyTorch, Python and C++ agree
python3 -m venv env
env/bin/pip install --quiet -r /requirements/torch.txt /kiln_aot-*.whl
cat > net.py <<'END'
import kiln
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                    nn.Linear(4 * 4 * 4, 10), nn.Softmax(-1)).eval()
images = torch.randn(8, 1, 8, 8)
with torch.no_grad():
    scores = net(images).numpy()

compiled = kiln.compile(net, images, name="net")
np.testing.assert_allclose(compiled(images), scores, rtol=1e-5, atol=1e-6)
compiled.write("build")
images.numpy().tofile("images")
scores.tofile("scores")
END
env/bin/python net.py
cat > app.cc <<'END'
#include <cstdio>

#include "net.h"

int main() {
  static float images[8][1][8][8], scores[8][10];
  if (std::fread(images, sizeof images, 1, stdin) != 1) return 2;
  net::Context context;
  const net::Status status = net::run(context, images, scores);
  if (!status) return std::fputs(status.text(), stderr), 1;
  return std::fwrite(scores, sizeof scores, 1, stdout) == 1 ? 0 : 1;
}
END
g++ -std=c++17 -O2 -Wall -Wextra -Werror -Ibuild app.cc build/libnet.a -lm -lpthread -o app
./app < images > scores_of_app
env/bin/python -c '
import numpy as np
np.testing.assert_allclose(np.fromfile("scores_of_app", "f4"), np.fromfile("scores", "f4"), rtol=1e-5, atol=1e-6)'
echo PyTorch, Python and C++ agree
