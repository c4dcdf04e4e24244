"""The operations of workloads.py in JAX."""

import jax
import jax.numpy as jnp


class Jax:
    """With `parameters` weights are taken from there in the order of their use; without, they are constants, and are kept."""

    def __init__(self, parameters=None):
        self._parameters = iter(parameters) if parameters is not None else None
        self.weights = []

    def weight(self, array):
        if self._parameters is not None:
            return next(self._parameters)
        self.weights.append(array)
        return jnp.asarray(array)

    def transposed_weight(self, weight):
        return weight.T

    def shape(self, x):
        return x.shape

    def add(self, a, b):
        return a + b

    def scale(self, x, factor):
        return x * jnp.float32(factor)

    def matmul(self, a, b):
        return jnp.matmul(a, b)

    def relu(self, x):
        return jnp.maximum(x, 0)

    def gelu(self, x):
        return jax.nn.gelu(x, approximate=False)

    def softmax(self, x):
        return jax.nn.softmax(x, axis=-1)

    def layer_norm(self, x, scale, offset):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + offset

    def batch_norm(self, x, scale, offset, mean, variance):
        return (x - mean) * (jax.lax.rsqrt(variance + 1e-5) * scale) + offset

    def conv(self, x, w, stride, pad):
        return jax.lax.conv_general_dilated(
            x, w, (stride, stride), ((pad, pad),) * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def max_pool(self, x, size, stride, pad):
        pads = ((0, 0), (pad, pad), (pad, pad), (0, 0))
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, size, size, 1), (1, stride, stride, 1), pads)

    def image_mean(self, x):
        return x.mean((1, 2))

    def reshape(self, x, shape):
        return x.reshape(shape)

    def transpose(self, x, order):
        return x.transpose(order)

    def split(self, x, parts):
        return jnp.split(x, parts, axis=-1)

    def concat(self, parts, axis):
        return jnp.concatenate(parts, axis)

    def part(self, x, k):
        return x[k]

    def rows(self, table, ids):
        return table[ids]

    def lstm(self, x, wx, wh, bias):
        wx, wh, bias = map(self.weight, (wx, wh, bias))
        state = wh.shape[0]

        def step(carry, frame):
            hidden, cell = carry
            i, f, g, o = jnp.split(frame @ wx + hidden @ wh + bias, 4, axis=-1)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (hidden, cell), hidden

        zeros = jnp.zeros((x.shape[1], state), jnp.float32)
        return jax.lax.scan(step, (zeros, zeros), x)[1]


def exported(workload, inputs):
    """The program with its weights as constants, as portable StableHLO."""
    jax.config.update("jax_use_simplified_jaxpr_constants", False)  # which would make arguments of them
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs]
    return jax.export.export(jax.jit(lambda *x: workload.build(Jax(), *x)), platforms=["cpu"])(*shapes)
