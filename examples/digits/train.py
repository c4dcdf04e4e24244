"""Trains the digit classifier of this example and writes digits.mlir, heldout.bin and digit_7.pgm beside this file.

Needs jax and scikit-learn (for its 1,797 scanned digits of 8 x 8 pixels). Run again only to change the model: the
results are committed.
"""
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

HERE = pathlib.Path(__file__).parent


def features(pixels):
    """Pixels 0..16, [n, 64] -> [n, 8, 8, 1] in 0..1."""
    return pixels.reshape(-1, 8, 8, 1) / 16.0


def forward(params, pixels):
    x = features(pixels)
    for kernel, bias in params["conv"]:
        x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias
        x = jax.nn.relu(x)
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(x.shape[0], -1)
    w, b = params["dense"]
    return jax.nn.softmax(x @ w + b)


def main():
    rng = np.random.default_rng(0)
    data = load_digits()
    order = rng.permutation(len(data.target))
    x, y = data.data[order].astype(np.float32), data.target[order]
    train_x, train_y, test_x, test_y = x[:1437], y[:1437], x[1437:], y[1437:]
    init = lambda *shape: jnp.asarray(rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[:-1])), jnp.float32)
    params = {
        "conv": [(init(3, 3, 1, 16), jnp.zeros(16)), (init(3, 3, 16, 32), jnp.zeros(32))],
        "dense": (init(512, 10), jnp.zeros(10)),
    }

    def loss(p, bx, by):
        return -jnp.mean(jnp.log(forward(p, bx)[jnp.arange(bx.shape[0]), by] + 1e-9))

    zeros = jax.tree.map(jnp.zeros_like, params)

    @jax.jit
    def step(p, m, v, t, bx, by):
        g = jax.grad(loss)(p, bx, by)
        m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
        v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
        scale = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return jax.tree.map(lambda a, b, c: a - scale * b / (jnp.sqrt(c) + 1e-8), p, m, v), m, v

    m, v, t = zeros, zeros, 0
    for _ in range(40):
        for batch in np.array_split(rng.permutation(len(train_y)), 45):
            t += 1
            params, m, v = step(params, m, v, t, train_x[batch], train_y[batch])
    accuracy = np.mean(np.argmax(forward(params, test_x), -1) == test_y)
    print(f"accuracy on {len(test_y)} held-back images: {accuracy:.4f}")

    def digits(pixels):
        return forward(params, pixels)

    text = jax.jit(digits).lower(jax.ShapeDtypeStruct((1, 64), jnp.float32)).as_text()
    (HERE / "digits.mlir").write_text(text)
    held = np.concatenate([test_x.astype(np.uint8), test_y[:, None].astype(np.uint8)], 1)
    (HERE / "heldout.bin").write_bytes(held.tobytes())
    seven = test_x[int(np.argmax(test_y == 7))].astype(np.uint8)
    (HERE / "digit_7.pgm").write_text("P2\n8 8\n16\n" + "\n".join(" ".join(map(str, row)) for row in seven.reshape(8, 8)) + "\n")


main()
