"""Writes decoder.mlir: one step of a small transformer decoder with a donated key/value cache.

step(token, position, cache, weights) -> (logits, cache): the cache is updated in place.
"""
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

LAYERS, WIDTH, HEADS, LENGTH, VOCABULARY = 2, 64, 4, 32, 96


def norm(x):
    return (x - x.mean()) * jax.lax.rsqrt(x.var() + 1e-5)


def main():
    rng = np.random.default_rng(1)
    random = lambda *s: jnp.asarray(rng.standard_normal(s) / np.sqrt(s[0]), jnp.float32)
    embedding = random(VOCABULARY, WIDTH)
    blocks = [(random(WIDTH, 3 * WIDTH), random(WIDTH, WIDTH), random(WIDTH, 4 * WIDTH), random(4 * WIDTH, WIDTH)) for _ in range(LAYERS)]

    def step(token, position, cache):
        x = embedding[token]
        for layer, (qkv, out, up, down) in enumerate(blocks):
            q, k, v = jnp.split(norm(x) @ qkv, 3)
            cache = jax.lax.dynamic_update_slice(cache, jnp.stack([k, v])[None, :, None, :], (layer, 0, position, 0))
            keys = cache[layer, 0].reshape(LENGTH, HEADS, -1)
            values = cache[layer, 1].reshape(LENGTH, HEADS, -1)
            scores = jnp.einsum("hd,thd->ht", q.reshape(HEADS, -1), keys) / np.sqrt(WIDTH / HEADS)
            scores = jnp.where(jnp.arange(LENGTH) <= position, scores, -1e30)
            x = x + jnp.einsum("ht,thd->hd", jax.nn.softmax(scores), values).reshape(-1) @ out
            x = x + jax.nn.gelu(norm(x) @ up) @ down
        return norm(x) @ embedding.T, cache

    i32 = jax.ShapeDtypeStruct((), jnp.int32)
    cache = jax.ShapeDtypeStruct((LAYERS, 2, LENGTH, WIDTH), jnp.float32)
    text = jax.jit(step, donate_argnums=2).lower(i32, i32, cache).as_text()
    (pathlib.Path(__file__).parent / "decoder.mlir").write_text(text)


main()
