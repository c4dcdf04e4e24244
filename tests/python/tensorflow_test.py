"""kiln.compile of TensorFlow's functions: results against TensorFlow's own."""

import tempfile
import unittest

import numpy as np
import tensorflow as tf

import kiln


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(0)
        self.kernel = tf.Variable(rng.normal(size=(3, 3, 3, 8)).astype(np.float32) / 5)
        self.dense = tf.Variable(rng.normal(size=(8 * 16, 10)).astype(np.float32) / 11)

    def __call__(self, images):
        x = tf.nn.relu(tf.nn.conv2d(images, self.kernel, 1, "SAME"))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        return tf.nn.softmax(tf.reshape(x, [x.shape[0], -1]) @ self.dense)


class TensorFlowTest(unittest.TestCase):
    def compare(self, fn, *args, tolerance=1e-5, **options):
        compiled = kiln.compile(fn, *args, **options)
        want, got = fn(*args), compiled(*args)
        tf.nest.assert_same_structure(want, got)
        for w, g in zip(tf.nest.flatten(want), tf.nest.flatten(got)):
            np.testing.assert_allclose(g, w.numpy(), rtol=tolerance, atol=tolerance)
        return compiled

    def test_module(self):
        images = tf.random.stateless_normal([2, 8, 8, 3], [1, 2])
        compiled = self.compare(Net(), images, name="net")
        self.assertEqual(compiled.model.arguments[0].name, "images")
        self.assertGreater(compiled.manifest["constant_bytes"], 5000)  # the variables
        np.testing.assert_allclose(compiled(images.numpy()), Net()(images).numpy(), atol=1e-5)

    def test_structures(self):
        scale = tf.Variable(3.0)

        @tf.function
        def f(x, extra, twice):
            y = x * scale + extra["b"]
            return {"y": y * 2 if twice else y, "sums": [tf.reduce_sum(x), (tf.reduce_max(x),)]}

        x = tf.reshape(tf.range(12.0), [3, 4])
        compiled = self.compare(f, x, {"b": tf.ones([4])}, True)
        self.assertEqual([a.name for a in compiled.model.arguments], ["x", "extra_b"])
        self.assertEqual([r.name for r in compiled.model.results], ["sums_0", "sums_1_0", "y"])
        with self.assertRaisesRegex(TypeError, "takes arguments of the structure"):
            compiled(x)
        with tempfile.TemporaryDirectory() as folder:
            compiled.write(folder)
            loaded = kiln.load(f"{folder}/lib{compiled.name}.so")
        got = loaded(x.numpy(), {"b": np.ones(4, np.float32)}, True)
        self.assertEqual(got["sums"][0], 66)

    def test_control_flow(self):
        @tf.function
        def f(n, x):
            i = tf.constant(0)
            while i < n:
                x = tf.sin(x) + 0.5
                i += 1
            return x, tf.sort(x), tf.cumsum(x), tf.where(x > 0.5, x, -x)

        self.compare(f, tf.constant(5), tf.linspace(-1.0, 1.0, 17))

    def test_types(self):
        for dtype in (tf.float64, tf.float16, tf.int32, tf.int64, tf.uint8):
            with self.subTest(dtype.name):
                self.compare(tf.function(lambda x: x + x), tf.cast([0, 1, 2, 3], dtype), targets=["v3"])
        bf16 = kiln.compile(tf.function(lambda x: x + x), tf.cast([0, 1, 2], tf.bfloat16), name="bf16")
        self.assertEqual(bf16(tf.cast([0, 1, 2], tf.bfloat16)).astype(np.float32).tolist(), [0, 2, 4])

    def test_sizes_that_values_decide(self):
        x = tf.constant([3.0, -1.0, 2.0, -5.0])
        compiled = self.compare(tf.function(lambda x: (tf.boolean_mask(x, x > 0), tf.where(x < 0), x)), x, name="chosen")
        self.assertEqual([r.name for r in compiled.model.results][3:], ["result_0_size0", "result_1_size0"])
        self.compare(tf.function(lambda x: tf.image.rot90(x)), tf.random.stateless_normal([2, 5, 4, 3], [1, 2]), name="turned")

    def test_linear_algebra(self):
        a = tf.random.stateless_normal([2, 4, 4], [1, 2])
        b = tf.random.stateless_normal([2, 4, 3], [3, 4])
        self.compare(tf.function(lambda a, b: (tf.linalg.inv(a), tf.linalg.solve(a, b))), a, b, tolerance=1e-3, name="solve")
        self.compare(tf.function(lambda a: tf.linalg.eigvalsh(a + tf.linalg.adjoint(a))), a, tolerance=1e-4, name="eigh")

    def test_constant_results(self):
        x = tf.constant([1.0, 2.0])
        self.compare(tf.function(lambda x: (x, tf.constant(7.0), x + 1)), x, name="constants")


if __name__ == "__main__":
    unittest.main()
