"""kiln.compile of JAX's functions: results against JAX's own, in the structures of the functions."""

import collections
import dataclasses
import os
import tempfile
import unittest

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import export, lax

import kiln

Pair = collections.namedtuple("Pair", "first second")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: jax.Array
    b: jax.Array


def attention(params, x, *, causal_bias):
    """One block of a transformer."""
    h = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * params["norm"]
    q, k, v = (jnp.einsum("btd,dhe->bhte", h, params["attention"][n]) for n in "qkv")
    scores = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]) + causal_bias, axis=-1)
    x = x + jnp.einsum("bhte,hed->btd", scores @ v, params["attention"]["out"])
    first, second = params["mlp"]
    return {"hidden": x + jax.nn.gelu(x @ first.w + first.b) @ second.w + second.b, "scores": (scores, None)}


def attention_arguments():
    rng = np.random.default_rng(0)

    def normal(*shape):
        return jnp.asarray(rng.normal(size=shape).astype(np.float32) / np.sqrt(shape[0]))

    params = {
        "norm": normal(32),
        "attention": {n: normal(32, 4, 8) for n in "qkv"} | {"out": normal(4, 8, 32)},
        "mlp": [Layer(normal(32, 64), normal(64)), Layer(normal(64, 32), normal(32))],
    }
    bias = jnp.where(jnp.tril(jnp.ones((6, 6), bool)), 0.0, -1e9).astype(jnp.float32)
    return params, normal(2, 6, 32), {"causal_bias": bias}


def scalar_functions(x):
    return [f(x) for f in (jnp.exp, jnp.log1p, jnp.tanh, jnp.sin, jax.nn.sigmoid, lax.erf_inv, jnp.arctan, lax.lgamma)]


def control(n, x):
    """A while loop, a scan, a conditional, a sort and a scatter."""
    doubled = lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1]
    total, partial = lax.scan(lambda c, v: (c + v, c), jnp.float32(0), x)
    chosen = lax.cond(n > 3, lambda v: v + 1, lambda v: v - 1, x)
    return doubled, total, partial, chosen, jnp.sort(x), jnp.zeros(8).at[jnp.argsort(x)[:3]].add(x[:3])


def linear_algebra(a):
    spd = a @ a.T + 4 * jnp.eye(a.shape[0])
    return jnp.linalg.cholesky(spd), jnp.linalg.eigvalsh(spd), jnp.linalg.svd(a, compute_uv=False), jnp.linalg.solve(spd, a)


class JaxTest(unittest.TestCase):
    def compare(self, fn, *args, kwargs=None, tolerance=2e-6, **options):
        kwargs = kwargs or {}
        compiled = kiln.compile(fn, *args, kwargs=kwargs, **options)
        want = jax.tree.map(np.asarray, fn(*args, **kwargs))
        got = compiled(*args, **kwargs)
        self.assertEqual(jax.tree.structure(got), jax.tree.structure(want))
        for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
            self.assertEqual(g.dtype, w.dtype)
            np.testing.assert_allclose(
                g.astype(np.float64) if g.dtype.kind == "V" else g, w.astype(np.float64) if w.dtype.kind == "V" else w,
                rtol=tolerance, atol=tolerance,
            )
        return compiled

    def test_structures_and_names(self):
        params, x, kwargs = attention_arguments()
        compiled = self.compare(attention, params, x, kwargs=kwargs, tolerance=1e-5)
        self.assertEqual(compiled.name, "attention")
        names = [a.name for a in compiled.model.arguments]
        for name in ("params_attention_q", "params_mlp_1_w", "params_norm", "x", "causal_bias"):
            self.assertIn(name, names)
        self.assertIn("params['attention']['q']", [a.path for a in compiled.model.arguments])
        self.assertEqual([r.name for r in compiled.model.results], ["hidden", "scores_0"])
        with self.assertRaisesRegex(TypeError, "the function takes arguments of the structure"):
            compiled(params, x)
        with self.assertRaisesRegex(TypeError, "x: elements are float32, not float16"):
            compiled(params, np.asarray(x, np.float16), **kwargs)

    def test_written_and_loaded(self):
        def f(params, x, unused):
            return {"y": x @ params["w"], "both": (x, [params["b"]])}

        params = {"w": jnp.ones((3, 2)), "b": jnp.arange(2.0)}
        with tempfile.TemporaryDirectory() as folder:
            kiln.compile(f, params, jnp.ones((4, 3)), jnp.ones(5)).write(folder)
            loaded = kiln.load(f"{folder}/libmodel_f.so")
            got = loaded({"w": np.ones((3, 2), np.float32), "b": [0, 1]}, np.ones((4, 3), np.float32), 0)
        self.assertEqual(got["y"].tolist(), [[3, 3]] * 4)
        self.assertEqual(got["both"][1][0].tolist(), [0, 1])

    def test_functions(self):
        x = jnp.linspace(0.05, 0.95, 37)
        self.compare(scalar_functions, x, tolerance=1e-5)
        self.compare(control, 5, jnp.asarray(np.random.default_rng(1).normal(size=8), jnp.float32))
        self.compare(linear_algebra, jnp.asarray(np.random.default_rng(2).normal(size=(5, 5)), jnp.float32), tolerance=2e-5)
        self.compare(lambda x: jnp.fft.rfft(x), x, tolerance=1e-5)
        self.compare(
            lambda x, w: lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
            jnp.arange(2 * 6 * 5 * 3, dtype=jnp.float32).reshape(2, 6, 5, 3) / 50,
            jnp.arange(3 * 3 * 3 * 4, dtype=jnp.float32).reshape(3, 3, 3, 4) / 100,
            tolerance=1e-5,
        )
        self.compare(lambda seed: jax.random.uniform(jax.random.key(seed), (16,)), 7)
        self.compare(jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w) ** 2)), jnp.ones((4, 3)) / 3, jnp.ones((2, 4)), tolerance=1e-5)

    def test_types(self):
        for dtype in (jnp.bfloat16, jnp.float16, jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.int8, jnp.uint32, jnp.bool_):
            with self.subTest(np.dtype(dtype).name):
                x = jnp.asarray([0, 1, 2, 3, 1]).astype(dtype)
                f = (lambda x: ~x) if dtype == jnp.bool_ else (lambda x: x + x)
                self.compare(f, x, targets=["v3"])
        x = np.array([-8, -1, 0, 7], ml_dtypes.int4)
        got = kiln.compile(lambda x: (x, x.astype(jnp.int32) * 2), x)(x)
        self.assertEqual(got[0].dtype, x.dtype)
        self.assertEqual(got[1].tolist(), [-16, -2, 0, 14])
        self.compare(lambda x: x * (1 + 2j), jnp.ones(3, jnp.complex64))

    def test_static_arguments(self):
        def f(x, how, n=2):
            return jnp.sum(x) * n if how == "sum" else x

        compiled = kiln.compile(jax.jit(f, static_argnames=("how", "n")), jnp.ones(4), kwargs={"how": "sum", "n": 3})
        self.assertEqual(compiled(jnp.ones(4)), 12)
        by_number = kiln.compile(jax.jit(lambda how, x: f(x, how), static_argnums=0), "sum", jnp.ones(4), name="by_number")
        self.assertEqual([a.name for a in by_number.model.arguments], ["x"])
        self.assertEqual(by_number(jnp.ones(4)), 8)

    def test_named_tuples_and_closures(self):
        table = jnp.arange(12.0).reshape(4, 3)
        self.compare(lambda p: Pair(table[p.first], p.second * 2), Pair(jnp.asarray([2, 0]), jnp.ones(3)))

    def test_donation(self):
        step = jax.jit(lambda state, x: (state + x, x.sum()), donate_argnums=0)
        compiled = kiln.compile(step, jnp.zeros(32), jnp.ones(32), name="step")
        self.assertEqual(compiled.model.arguments[0].alias, 0)
        state = np.zeros(32, np.float32)
        result, total = compiled.model.run([state, np.ones(32, np.float32)], donate=True)
        self.assertIs(result, state)
        self.assertEqual((state[0], total), (1, 32))

    def test_a_result_that_is_called_like_a_size(self):
        compiled = kiln.compile(lambda x: {"x": x * 2, "x_size0": jnp.int32(2)}, np.ones(3, np.float32), name="sizes")
        got = compiled(np.ones(3, np.float32))
        self.assertEqual(got["x"].tolist(), [2, 2, 2])
        self.assertEqual(got["x_size0"], 2)

    def test_exported(self):
        exported = export.export(jax.jit(lambda x: {"y": jnp.cos(x)}))(jax.ShapeDtypeStruct((7,), jnp.float32))
        x = np.linspace(0, 3, 7, dtype=np.float32)
        np.testing.assert_allclose(kiln.compile(exported, name="cosine")(x)["y"], np.cos(x), rtol=1e-6)
        round_trip = export.deserialize(exported.serialize())
        np.testing.assert_allclose(kiln.compile(round_trip, name="cosine")(x)["y"], np.cos(x), rtol=1e-6)

    def test_exported_for_several_platforms(self):
        here = lambda x: jax.lax.platform_dependent(x, cpu=jnp.cos, default=jnp.sin)
        exported = export.export(jax.jit(here), platforms=["cuda", "cpu"])(jax.ShapeDtypeStruct((7,), jnp.float32))
        x = np.linspace(0, 3, 7, dtype=np.float32)
        np.testing.assert_allclose(kiln.compile(exported, name="here")(x), np.cos(x), rtol=1e-6)

    def test_batch_sizes(self):
        (n,) = export.symbolic_shape("n")
        w = jnp.arange(6.0).reshape(3, 2)
        exported = export.export(jax.jit(lambda x: x @ w))(jax.ShapeDtypeStruct((n, 3), jnp.float32))
        compiled = kiln.compile(exported, name="batches", batch_sizes=[1, 8])
        for size in (1, 8):
            x = np.ones((size, 3), np.float32)
            np.testing.assert_array_equal(compiled(x), x @ w)
        with self.assertRaisesRegex(ValueError, "batch sizes 1, 8"):
            compiled(np.ones((2, 3), np.float32))

    def test_shardings(self):
        """A function whose arrays are cut among four devices takes and gives whole ones, JAX's own among them."""
        mesh = jax.make_mesh((2, 2), ("rows", "columns"))

        def cut(*axes):
            return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))

        def f(params, x):
            return {"y": jnp.tanh(x @ params["w"]), "total": x.sum()}

        params_cut, x_cut = {"w": cut(None, "columns")}, cut("rows", None)
        jitted = jax.jit(
            f, in_shardings=(params_cut, x_cut), out_shardings={"y": cut("rows", "columns"), "total": cut()}
        )
        rng = np.random.default_rng(0)
        params = {"w": rng.normal(size=(6, 4)).astype(np.float32)}
        x = rng.normal(size=(8, 6)).astype(np.float32)
        compiled = kiln.compile(jitted, params, x, name="cut")
        want = f(params, x)
        with tempfile.TemporaryDirectory() as folder:
            compiled.write(folder)
            loaded = kiln.load(f"{folder}/libcut.so")
            for model in (compiled, loaded):
                for given in ((params, x), (jax.device_put(params, params_cut), jax.device_put(x, x_cut))):
                    got = model(*given)
                    np.testing.assert_allclose(got["y"], want["y"], rtol=1e-5)
                    np.testing.assert_allclose(got["total"], want["total"], rtol=1e-5)

    def test_entries(self):
        """A model's two functions over one table, which the library has once; structures as the functions have them."""
        table = np.random.default_rng(0).normal(size=(50, 16)).astype(np.float32)

        def prefill(words):
            return {"state": jnp.tanh(jnp.asarray(table)[words]).sum(0)}

        def decode(state, word):
            new = {"state": state["state"] + jnp.asarray(table)[word]}
            return new, jnp.asarray(table) @ new["state"]

        words, word = np.array([3, 1, 4, 1, 5], np.int32), np.int32(9)
        state = jax.tree_util.tree_map(np.asarray, prefill(words))
        compiled = kiln.compile(
            {"prefill": prefill, "decode": decode}, {"prefill": (words,), "decode": (state, word)}, name="lm"
        )
        self.assertEqual(compiled.manifest["constant_bytes"] // table.nbytes, 1)
        with tempfile.TemporaryDirectory() as folder:
            compiled.write(folder)
            for lm in (compiled, kiln.load(f"{folder}/liblm.so")):
                got = lm.prefill(words)
                np.testing.assert_allclose(got["state"], state["state"], rtol=1e-5, atol=1e-6)
                new, logits = lm.decode(got, word)
                want, want_logits = decode(state, word)
                np.testing.assert_allclose(new["state"], want["state"], rtol=1e-5, atol=1e-6)
                np.testing.assert_allclose(logits, want_logits, rtol=1e-5, atol=1e-5)

    def test_explain(self):
        explanation = kiln.explain(lambda x: jnp.tanh(x) + 1, jnp.ones(8))
        self.assertIn("arena", explanation.text)


if __name__ == "__main__":
    unittest.main()
