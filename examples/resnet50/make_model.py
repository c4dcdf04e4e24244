"""Writes resnet50.mlir: ResNet-50 inference for one 224 x 224 image, its weights as arguments."""
import pathlib

import jax
import jax.numpy as jnp


def conv(x, w, stride=1):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def normalise(x, p):
    scale, offset, mean, var = p
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * scale + offset


def norm_shapes(c):
    return [(c,)] * 4


def block_shapes(cin, mid, out, project):
    s = [[(1, 1, cin, mid), *norm_shapes(mid)], [(3, 3, mid, mid), *norm_shapes(mid)], [(1, 1, mid, out), *norm_shapes(out)]]
    return s + ([[(1, 1, cin, out), *norm_shapes(out)]] if project else [])


def shapes():
    layers = [[(7, 7, 3, 64), *norm_shapes(64)]]
    cin = 64
    for mid, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for k in range(count):
            layers += block_shapes(cin, mid, 4 * mid, k == 0)
            cin = 4 * mid
    return layers, [(2048, 1000), (1000,)]


def resnet50(image, layers, head):
    it = iter(layers)

    def unit(x, stride=1):
        w, *p = next(it)
        return normalise(conv(x, w, stride), p)

    x = jax.nn.relu(unit(image, 2))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for stage, count in enumerate((3, 4, 6, 3)):
        for k in range(count):
            stride = 2 if k == 0 and stage else 1
            y = jax.nn.relu(unit(x))
            y = jax.nn.relu(unit(y, stride))
            y = unit(y)
            x = jax.nn.relu(y + (unit(x, stride) if k == 0 else x))
    x = jnp.mean(x, (1, 2))
    return x @ head[0] + head[1]


def main():
    layers, head = shapes()
    spec = lambda s: jax.ShapeDtypeStruct(s, jnp.float32)
    args = (spec((1, 224, 224, 3)), [[spec(s) for s in l] for l in layers], [spec(s) for s in head])
    (pathlib.Path(__file__).parent / "resnet50.mlir").write_text(jax.jit(resnet50).lower(*args).as_text())


main()
