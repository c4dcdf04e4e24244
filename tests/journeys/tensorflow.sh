# what: the wheel beside TensorFlow: a tf.function compiled and called, and its library in a C++ program
# packages: g++ python3-venv
# kiln: wheel
# expects: TensorFlow, Python and C++ agree
python3 -m venv env
env/bin/pip install --quiet -r /requirements/tensorflow.txt /kiln_aot-*.whl
cat > net.py <<'END'
import kiln
import numpy as np
import tensorflow as tf


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.filters = tf.Variable(tf.random.stateless_normal([3, 3, 1, 4], [0, 1]))
        self.w = tf.Variable(tf.random.stateless_normal([4 * 4 * 4, 10], [0, 2]) / 8)

    @tf.function
    def __call__(self, images):
        x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(images, self.filters, 1, "SAME")), 2, 2, "VALID")
        return {"scores": tf.nn.softmax(tf.reshape(x, [-1, 4 * 4 * 4]) @ self.w)}


net = Net()
images = tf.random.stateless_normal([8, 8, 8, 1], [0, 3])
scores = net(images)["scores"].numpy()

compiled = kiln.compile(net, tf.TensorSpec([8, 8, 8, 1]), name="net")
np.testing.assert_allclose(compiled(images)["scores"], scores, rtol=1e-5, atol=1e-6)
compiled.write("build")
images.numpy().tofile("images")
scores.tofile("scores")
END
env/bin/python net.py
cat > app.cc <<'END'
#include <cstdio>

#include "net.h"

int main() {
  static float images[8][8][8][1], scores[8][10];
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
echo TensorFlow, Python and C++ agree
