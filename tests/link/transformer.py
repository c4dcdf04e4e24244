"""transformer.mlir, and the numbers of transformer_test.cc: a transformer of JAX with 29 arguments.

python3 transformer.py > transformer.mlir, with jax 0.10; the numbers go to stderr.
"""

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np

WIDTH, HEADS, WORDS, LENGTH = 8, 2, 16, 4


def norm(p, x):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p["scale"] + p["bias"]


def transformer(params, tokens):
    x = params["embed"][tokens] + params["positions"]
    for layer in params["layers"]:
        h = norm(layer["norm1"], x)
        q, k, v = ((h @ layer["attention"][n]).reshape(LENGTH, HEADS, -1).swapaxes(0, 1) for n in "qkv")
        weights = jax.nn.softmax(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]).astype("f4"))
        x = x + (weights @ v).swapaxes(0, 1).reshape(LENGTH, WIDTH) @ layer["attention"]["out"]
        h = norm(layer["norm2"], x)
        x = x + jnp.tanh(h @ layer["mlp"]["up"]["w"] + layer["mlp"]["up"]["b"]) @ layer["mlp"]["down"]["w"]
        x = x + layer["mlp"]["down"]["b"]
    return {"logits": norm(params["final"], x) @ params["embed"].T, "hidden": x}


def arguments():
    def shapes(*widths):
        return {"w": widths, "b": widths[1:]}

    normed = {"scale": (WIDTH,), "bias": (WIDTH,)}
    layer = {
        "attention": {n: (WIDTH, WIDTH) for n in ("q", "k", "v", "out")},
        "mlp": {"up": shapes(WIDTH, 2 * WIDTH), "down": shapes(2 * WIDTH, WIDTH)},
        "norm1": normed,
        "norm2": normed,
    }
    params = {"embed": (WORDS, WIDTH), "final": normed, "layers": [layer, layer], "positions": (LENGTH, WIDTH)}
    leaves, tree = jax.tree.flatten(params, is_leaf=lambda x: isinstance(x, tuple))
    values = [
        (((np.arange(np.prod(shape)) * 37 + k * 11) % 101 - 50) / np.float32(100)).astype("f4").reshape(shape)
        for k, shape in enumerate(leaves)
    ]
    return jax.tree.unflatten(tree, values), np.array([3, 1, 4, 1], "i4")


params, tokens = arguments()
text = jax.jit(transformer).lower(params, tokens).as_text(debug_info=True)
# Without the places of operations: what the test needs is what arguments are called.
text = re.sub(r"^#loc.*\n", "", text, flags=re.MULTILINE)
print(re.sub(r" loc\(#?\w+\)", "", text))
result = transformer(params, tokens)
print(np.asarray(result["logits"])[[0, 3], [1, 15]], np.asarray(result["hidden"])[2, 5], file=sys.stderr)
