"""The programs that kiln and its peers are timed on, each written once against a set of operations.

A workload builds its result from `o`, which is jax_ops.Jax or onnx_ops.Onnx: what weights, products, convolutions and the rest
are in that peer's language. Images are batch, height, width, features here; an ONNX graph holds them features first. Weights
and inputs are made from seeds: every peer gets the same numbers.
"""

import dataclasses
from typing import Any, Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    build: Callable[..., list]          # (o, *inputs) -> results
    inputs: Callable[[], list]          # NumPy arrays
    images: tuple = ()                  # numbers of the inputs that are images
    image_results: bool = False
    onednn: str = ""                    # the function of onednn.py that makes the same of oneDNN's primitives, if one does
    largest_error: float = 1e-4         # of a result, relative to the largest number of the reference


class Random:
    """Numbers that depend on the seed alone."""

    def __init__(self, seed: int):
        self._generator = np.random.default_rng(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        return self._generator.standard_normal(shape, np.float32) * np.float32(scale)

    def weights(self, *shape: int, gain: float = 1.0) -> np.ndarray:
        """Of a product whose results are about as large as its operand."""
        return self.normal(*shape, scale=gain / np.sqrt(np.prod(shape[:-1])))


# Three layers of a classifier of small images.
MLP = (784, 512, 512, 10)


def mlp_layers() -> list:
    r = Random(1)
    return [(r.weights(a, b), r.normal(b, scale=0.1)) for a, b in zip(MLP, MLP[1:])]


def mlp(o, x):
    layers = mlp_layers()
    for k, (w, b) in enumerate(layers):
        x = o.add(o.matmul(x, o.weight(w)), o.weight(b))
        if k + 1 < len(layers):
            x = o.relu(x)
    return [x]


def product(o, a, b):
    return [o.matmul(a, b)]


def softmax(o, x):
    return [o.softmax(x)]


CONVOLUTION = (3, 3, 64, 64)


def convolution_weights() -> np.ndarray:
    return Random(2).weights(*CONVOLUTION)


def convolution(o, x):
    return [o.conv(x, o.weight(convolution_weights()), stride=1, pad=1)]


def resnet50(o, x):
    r = Random(3)

    def unit(x, size, cin, cout, stride=1, gain=1.4):
        y = o.conv(x, o.weight(r.weights(size, size, cin, cout, gain=gain)), stride, size // 2)
        scale, offset, mean = r.normal(cout, scale=0.1) + 1, r.normal(cout, scale=0.1), r.normal(cout, scale=0.1)
        return o.batch_norm(y, *map(o.weight, (scale, offset, mean, np.abs(r.normal(cout, scale=0.1)) + 1)))

    x = o.max_pool(o.relu(unit(x, 7, 3, 64, 2)), size=3, stride=2, pad=1)
    cin = 64
    for middle, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for k in range(count):
            stride = 2 if k == 0 and middle > 64 else 1
            y = o.relu(unit(x, 1, cin, middle))
            y = o.relu(unit(y, 3, middle, middle, stride))
            y = unit(y, 1, middle, 4 * middle, gain=0.5)
            x = o.relu(o.add(y, unit(x, 1, cin, 4 * middle, stride) if k == 0 else x))
            cin = 4 * middle
    return [o.add(o.matmul(o.image_mean(x), o.weight(r.weights(cin, 1000))), o.weight(r.normal(1000, scale=0.1)))]


def dense(o, r, x, a, b):
    return o.add(o.matmul(x, o.weight(r.weights(a, b))), o.weight(r.normal(b, scale=0.1)))


def layer_norm(o, r, x, n):
    return o.layer_norm(x, o.weight(r.normal(n, scale=0.1) + 1), o.weight(r.normal(n, scale=0.1)))


def bert_layer(o, x):
    """A layer of BERT's base model."""
    r, width, heads = Random(4), 768, 12
    batch, length = o.shape(x)[:2]
    q, k, v = (
        o.transpose(o.reshape(y, (batch, length, heads, width // heads)), (0, 2, 1, 3))
        for y in o.split(dense(o, r, x, width, 3 * width), 3)
    )
    scores = o.scale(o.matmul(q, o.transpose(k, (0, 1, 3, 2))), (width // heads) ** -0.5)
    y = o.reshape(o.transpose(o.matmul(o.softmax(scores), v), (0, 2, 1, 3)), (batch, length, width))
    x = layer_norm(o, r, o.add(x, dense(o, r, y, width, width)), width)
    y = dense(o, r, o.gelu(dense(o, r, x, width, 4 * width)), 4 * width, width)
    return [layer_norm(o, r, o.add(x, y), width)]


PAST = 64  # tokens that the step of GPT-2 has seen


def gpt2_step(o, token, position, past):
    """The next token's logits of GPT-2 small, and its keys and values; `past` holds those of the tokens before."""
    r, width, heads, layers = Random(5), 768, 12, 12
    embedding = o.weight(r.normal(50257, width, scale=0.05))
    x = o.add(o.rows(embedding, token), o.rows(o.weight(r.normal(1024, width, scale=0.05)), position))
    seen = []
    for layer in range(layers):
        q, k, v = (
            o.transpose(o.reshape(y, (1, heads, width // heads)), (1, 0, 2))
            for y in o.split(dense(o, r, layer_norm(o, r, x, width), width, 3 * width), 3)
        )
        seen += [k, v]
        k, v = (o.concat([o.part(past, 2 * layer + n), y], 1) for n, y in enumerate((k, v)))
        scores = o.scale(o.matmul(q, o.transpose(k, (0, 2, 1))), (width // heads) ** -0.5)
        y = o.reshape(o.transpose(o.matmul(o.softmax(scores), v), (1, 0, 2)), (1, width))
        x = o.add(x, dense(o, r, y, width, width))
        y = o.gelu(dense(o, r, layer_norm(o, r, x, width), width, 4 * width))
        x = o.add(x, dense(o, r, y, 4 * width, width))
    return [o.matmul(layer_norm(o, r, x, width), o.transposed_weight(embedding)), *seen]


def lstm(o, x):
    """64 steps of 128 features with a state of 256; the gates are input, forget, cell, output."""
    r = Random(6)
    return [o.lstm(x, r.weights(128, 1024), r.weights(256, 1024), r.normal(1024, scale=0.1))]


def arrays(seed: int, *shapes: tuple) -> Callable[[], list]:
    def make() -> list[Any]:
        r = Random(seed)
        return [r.normal(*shape) for shape in shapes]

    return make


def gpt2_inputs() -> list:
    past = Random(21).normal(24, 12, PAST, 64)
    return [np.array([1234], np.int32), np.array([PAST], np.int32), past]


WORKLOADS = (
    Workload("mlp_b1", mlp, arrays(11, (1, 784)), onednn="mlp"),
    Workload("mlp_b32", mlp, arrays(12, (32, 784)), onednn="mlp"),
    Workload("resnet50", resnet50, arrays(13, (1, 224, 224, 3)), images=(0,)),
    Workload("bert_b1", bert_layer, arrays(14, (1, 128, 768))),
    Workload("bert_b8", bert_layer, arrays(15, (8, 128, 768))),
    Workload("gpt2_step", gpt2_step, gpt2_inputs),
    Workload("softmax", softmax, arrays(16, (4096, 1024)), onednn="softmax"),
    Workload("gemm512", product, arrays(17, (512, 512), (512, 512)), onednn="product"),
    Workload("gemm1024", product, arrays(18, (1024, 1024), (1024, 1024)), onednn="product"),
    Workload("conv3x3", convolution, arrays(19, (1, 56, 56, 64)), images=(0,), image_results=True, onednn="conv"),
    Workload("lstm", lstm, arrays(20, (64, 1, 128))),
)
