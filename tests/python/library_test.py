"""kiln's Python package with NumPy alone: compiling, loading and running libraries. No framework is needed.

KILN names the executable; PYTHONPATH the package.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import kiln

SUM = """HloModule sum
ENTRY e {
  x = f32[4,8] parameter(0)
  w = f32[8,3] parameter(1)
  d = f32[4,3] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = s32[] parameter(2)
  m = s32[] add(n, n)
  ROOT t = (f32[4,3], s32[]) tuple(d, m)
}
"""

DONATED = """HloModule donated, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  state = f32[16] parameter(0)
  step = f32[16] parameter(1)
  ROOT next = f32[16] add(state, step)
}
"""

COLUMN_MAJOR = """HloModule columns, entry_computation_layout={(f32[2,3]{0,1})->f32[3,2]{0,1}}
ENTRY e {
  x = f32[2,3]{0,1} parameter(0)
  ROOT y = f32[3,2]{0,1} transpose(x), dimensions={1,0}
}
"""

BATCHES = """module @batches {
  func.func public @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %y = stablehlo.add %x, %x : tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  }
}
"""

ALL_TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
ALL_TYPES += ["float16", "float32", "float64", "complex64", "complex128"]
HLO_TYPE = {"bool": "pred", "int": "s", "uint": "u", "float": "f", "complex": "c"}


def twice(dtype: str) -> bytes:
    """x and x for bool, else x + x."""
    kind = dtype.rstrip("0123456789")
    hlo = HLO_TYPE[kind] + dtype[len(kind) :]
    return f"""HloModule twice
ENTRY e {{
  x = {hlo}[5] parameter(0)
  ROOT y = {hlo}[5] {"and" if kind == "bool" else "add"}(x, x)
}}""".encode()


PARTITIONED = """module @parts attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["rows"=4]>
  func.func public @main(%x: tensor<ROWSx4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"rows"}, {}]>} loc("x"),
                         %w: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>} loc("w"),
                         %s: tensor<ROWSx3xf32> {tf.aliasing_output = 1 : i32, sdy.sharding = #sdy.sharding<@mesh, [{"rows"}, {}]>} loc("s"))
      -> (tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>},
          tensor<ROWSx3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"rows"}, {}]>}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<ROWSx4xf32>, tensor<4x3xf32>) -> tensor<ROWSx3xf32>
    %1 = stablehlo.add %0, %s : tensor<ROWSx3xf32>
    %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<ROWSx3xf32>, tensor<f32>) -> tensor<f32>
    return %2, %1 : tensor<f32>, tensor<ROWSx3xf32>
  }
}
"""


class OnlyDLPack:
    """An array of another framework's."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self):
        return self._array.__dlpack__()

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class LibraryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sum = kiln.compile(SUM.encode(), name="sum_of", config="result_names: ['product', 'twice']")
        rng = np.random.default_rng(0)
        cls.x = rng.integers(-9, 9, (4, 8)).astype(np.float32)
        cls.w = rng.integers(-9, 9, (8, 3)).astype(np.float32)

    def check(self, results):
        np.testing.assert_array_equal(results[0], self.x @ self.w)
        self.assertEqual(results[1], 10)

    def test_files(self):
        for path in (self.sum.library, self.sum.header, self.sum.c_header, self.sum.shared_object):
            self.assertTrue(os.path.exists(path), path)
        self.assertEqual(self.sum.manifest["name"], "sum_of")
        self.assertEqual(self.sum.manifest["kiln"], kiln.__version__)

    def test_describes_itself(self):
        m = self.sum.model
        self.assertEqual([a.name for a in m.arguments], ["x", "w", "n"])
        self.assertEqual([(r.name, r.dtype, r.shape) for r in m.results], [("product", "float32", (4, 3)), ("twice", "int32", ())])
        self.assertIn(m.cpu_level, m.cpu_levels)
        self.assertIn("x: float32[4, 8]", repr(m))

    def test_arguments_in_order_and_by_name(self):
        self.check(self.sum(self.x, self.w, 5))
        self.check(self.sum(self.x, n=np.int32(5), w=self.w))
        self.check(self.sum.model.run({"n": 5, "w": self.w, "x": self.x}))

    def test_other_arrays(self):
        self.check(self.sum(OnlyDLPack(self.x), OnlyDLPack(self.w), 5))
        self.check(self.sum(self.x.tolist(), self.w.tolist(), 5))
        self.check(self.sum(np.asfortranarray(self.x), self.w[::-1][::-1], 5))
        self.check(self.sum(OnlyDLPack(np.asfortranarray(self.x)), self.w, 5))
        unaligned = np.frombuffer(b"\0" + self.x.tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 8)
        self.check(self.sum(unaligned, self.w, 5))

    def test_zero_copy(self):
        product = np.zeros((4, 3), np.float32)
        results = self.sum.model.run([self.x, self.w, 5], out=[product, None])
        self.assertIs(results[0], product)
        self.check(results)

    def test_errors(self):
        with self.assertRaisesRegex(TypeError, "x: elements are float32, not float64"):
            self.sum(self.x.astype(np.float64), self.w, 5)
        with self.assertRaisesRegex(ValueError, r"w: the shape is \[8, 3\], not \[3, 8\]"):
            self.sum(self.x, self.w.T, 5)
        with self.assertRaisesRegex(TypeError, "takes 3 arrays"):
            self.sum(self.x, self.w, 5, 6)
        with self.assertRaisesRegex(TypeError, "no w, n"):
            self.sum(self.x)
        with self.assertRaisesRegex(TypeError, "no argument 'v'"):
            self.sum(self.x, v=self.w)
        with self.assertRaisesRegex(TypeError, "'x' is given twice"):
            self.sum(self.x, x=self.x)
        with self.assertRaisesRegex(ValueError, "product: it is float32"):
            self.sum.model.run([self.x, self.w, 5], out=[np.zeros((3, 4), np.float32), None])
        with self.assertRaisesRegex(TypeError, "not read-only"):
            self.sum.model.run([self.x, self.w, 5], out=[np.broadcast_to(np.float32(0), (4, 3)), None])
        both = np.zeros((4, 8), np.float32)  # a result that overlaps an argument: the library's own check
        with self.assertRaises(kiln.RunError) as caught:
            self.sum.model.run([both, self.w, 5], out=[both.reshape(-1)[:12].reshape(4, 3), None])
        self.assertEqual(caught.exception.status, 11)
        self.assertIn("overlaps", str(caught.exception))

    def test_compile_errors(self):
        with self.assertRaisesRegex(kiln.CompileError, "expected"):
            kiln.compile(b"HloModule broken\nENTRY", name="broken")
        with self.assertRaisesRegex(kiln.CompileError, "cannot name a library"):
            kiln.compile(SUM.encode(), name="class")
        with self.assertRaisesRegex(TypeError, "a list cannot be compiled"):
            kiln.compile([1])

    def test_names(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "double.hlo"
            path.write_bytes(twice("float32"))
            self.assertEqual(kiln.compile(path).name, "model_double")  # what C++ has a meaning for gets a word before it

    def test_temporary_files(self):
        compiled = kiln.compile(twice("float32"), name="twice", targets=["v2"])
        folder = pathlib.Path(compiled.library).parent
        self.assertTrue(folder.exists())
        del compiled
        self.assertFalse(folder.exists())

    def test_types(self):
        for name in ALL_TYPES:
            with self.subTest(name):
                x = np.array([0, 1, 2, 3, 1]).astype(name)
                y = kiln.compile(twice(name), name="twice", targets=["v2"])(x)
                self.assertEqual(y.dtype, x.dtype)
                np.testing.assert_array_equal(y, x if name == "bool" else x + x)

    def test_types_of_ml_dtypes(self):
        compiled = kiln.compile(twice("float16").replace(b"f16", b"bf16"), name="twice", targets=["v2"])
        self.assertEqual(compiled.model.arguments[0].dtype, "bfloat16")
        try:
            import ml_dtypes
        except ImportError:
            with self.assertRaisesRegex(kiln.KilnError, "pip install ml_dtypes"):
                compiled([0, 1, 2, 3, 1])
            return
        x = np.array([0, 1, 2, 3, 1], ml_dtypes.bfloat16)
        np.testing.assert_array_equal(compiled(x), x + x)

    def test_donation(self):
        m = kiln.compile(DONATED.encode(), name="donated").model
        state, step = np.arange(16, dtype=np.float32), np.ones(16, np.float32)
        before = state.copy()
        np.testing.assert_array_equal(m(state, step), before + 1)
        np.testing.assert_array_equal(state, before)  # a copy was overwritten
        (result,) = m.run([state, step], donate=True)
        self.assertIs(result, state)
        np.testing.assert_array_equal(state, before + 1)
        with self.assertRaisesRegex(ValueError, "lies in the donated argument 0"):
            m.run([state, step], out=[np.zeros(16, np.float32)])

    def test_layouts(self):
        f = kiln.compile(COLUMN_MAJOR.encode(), name="columns")
        self.assertEqual(f.model.arguments[0].minor_to_major, (0, 1))
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(f(x), x.T)
        np.testing.assert_array_equal(f(np.asfortranarray(x)), x.T)

    def test_batch_sizes(self):
        f = kiln.compile(BATCHES.encode(), name="batches", batch_sizes=[1, 4])
        self.assertEqual(f.model.batch_sizes, (1, 4))
        for n in (1, 4):
            x = np.full((n, 4), n, np.float32)
            np.testing.assert_array_equal(f(x), x + x)
        with self.assertRaisesRegex(ValueError, r"batch sizes 1, 4; no one has the shapes x: \[3, 4\]|shapes"):
            f(np.zeros((3, 4), np.float32))

    def test_threads(self):
        pool = kiln.Pool(3)
        models = [kiln.load(self.sum.shared_object, threads=t) for t in (1, 2, None, pool, pool)]
        with concurrent.futures.ThreadPoolExecutor(8) as executor:
            for results in executor.map(lambda k: models[k % 5](self.x, self.w, 5), range(200)):
                self.check(results)
        with self.assertRaises(ValueError):
            kiln.load(self.sum.shared_object, threads=0)

    def test_load(self):
        with tempfile.TemporaryDirectory() as folder:
            self.sum.write(folder)
            self.assertTrue((pathlib.Path(folder) / "sum_of_c.h").exists())
            path = f"{folder}/libsum_of.so"
            first = kiln.load(path)
            self.check(first(self.x, self.w, 5))
            # The same path, another library: both are there.
            kiln.compile(twice("float32"), name="sum_of", out=folder)
            second = kiln.load(path)
            self.assertEqual(second([1, 2, 3, 4, 5]).tolist(), [2, 4, 6, 8, 10])
            self.check(first(self.x, self.w, 5))
            kiln.compile(twice("float32"), name="other", out=folder)
            both = f"{folder}/both.so"
            subprocess.run([kiln.tool_path(), "link", self.sum.library, f"{folder}/libother.a", "--out", both], check=True)
            self.assertEqual(list(kiln.models(both)), ["sum_of", "other"])
            self.check(kiln.load(both, "sum_of")(self.x, self.w, 5))
            with self.assertRaisesRegex(kiln.KilnError, "it has the models sum_of, other"):
                kiln.load(both)
            junk = pathlib.Path(folder) / "junk.so"
            junk.write_bytes(b"no library")
            with self.assertRaisesRegex(kiln.KilnError, "cannot be loaded"):
                kiln.load(junk)
        with self.assertRaisesRegex(kiln.KilnError, "no such file"):
            kiln.load(path)

    def test_what_cannot_run(self):
        devices = "HloModule m, replica_count=2\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
        devices += "ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] all-reduce(x), replica_groups={}, to_apply=add\n}\n"
        with self.assertRaisesRegex(kiln.KilnError, "a program of 2 devices that each have arrays of their own"):
            kiln.compile(devices.encode(), name="devices")(np.zeros(4, np.float32))

    def test_devices(self):
        for rows in (8, 7):  # the last part of 7 rows is padded, and not donated
            compiled = kiln.compile(PARTITIONED.replace("ROWS", str(rows)).encode(), name="parts")
            x = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
            w = np.arange(12, dtype=np.float32).reshape(4, 3)
            s = np.ones((rows, 3), np.float32)
            self.assertEqual([a.shape for a in compiled.model.arguments], [(rows, 4), (4, 3), (rows, 3)])
            for _ in range(3):
                total, y = compiled(x, w, s)
                np.testing.assert_array_equal(y, x @ w + 1)
                self.assertEqual(total, (x @ w + 1).sum())
            np.testing.assert_array_equal(s, 1)
            # Arrays of any strides, and results where the caller wants them.
            out = np.empty((), np.float32)
            total, y = compiled.model.run([np.asfortranarray(x), w[:, ::-1], s], out=[out, None])
            self.assertIs(total, out)
            np.testing.assert_array_equal(y, x @ w[:, ::-1] + 1)
            total, y = compiled.model.run([x, w, s], donate=True)
            self.assertEqual(y is s, compiled.model.arguments[2].alias is not None)
            np.testing.assert_array_equal(y, x @ w + 1)
            with self.assertRaisesRegex(ValueError, r"x: the shape is \[%d, 4\], not \[2, 4\]" % rows):
                compiled(x[:2], w, s)
            with self.assertRaisesRegex(TypeError, "x: elements are float32, not float64"):
                compiled(x.astype(np.float64), w, s)
        # Several calls at once, each with devices of its own.
        with concurrent.futures.ThreadPoolExecutor(3) as callers:
            for got, _ in callers.map(lambda k: compiled(x * k, w, s * 0), range(6)):
                self.assertIsNotNone(got)

    def test_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/w.safetensors"
            header = b'{"w":{"dtype":"F32","shape":[8,3],"data_offsets":[0,96]}}'.ljust(64)
            pathlib.Path(path).write_bytes(len(header).to_bytes(8, "little") + header + self.w.tobytes())
            compiled = kiln.compile(SUM.encode(), name="sum_of", config="weights { arguments: 'w' }", out=folder)
            self.assertEqual([a.weight for a in compiled.model.arguments], [False, True, False])
            self.check(compiled(self.x, self.w, 5))
            m = kiln.load(compiled.shared_object, weights=path)
            self.assertEqual([a.name for a in m.arguments], ["x", "n"])
            self.check(m(self.x, 5))
            self.check(m(n=5, x=self.x))
            with self.assertRaisesRegex(kiln.KilnError, "there is no such file"):
                kiln.load(compiled.shared_object, weights=f"{folder}/missing")
        with self.assertRaisesRegex(kiln.KilnError, "takes no weights from files"):
            kiln.load(self.sum.shared_object, weights=path)

    def test_entries(self):
        """Several functions as one library, compiled and loaded, with one file of weights."""
        function = """func.func public @main(%w: tensor<4xf32> loc("params['w']"), %x: tensor<4xf32> loc("x")) -> tensor<4xf32> {{
          %y = stablehlo.{} %w, %x : tensor<4xf32>
          return %y : tensor<4xf32>
        }}"""
        programs = {"add": function.format("add").encode(), "run": function.format("multiply").encode()}
        w, x = np.arange(4, dtype=np.float32), np.full(4, 3, np.float32)
        compiled = kiln.compile(programs, name="two", targets=["native"], config='weights { arguments: "params.*" }')
        self.assertEqual(list(compiled), ["add", "run"])
        np.testing.assert_array_equal(compiled.add(w, x), w + x)
        np.testing.assert_array_equal(compiled["run"](w, x), w * x)  # a member of the header's: it is run_ there
        self.assertEqual([e["name"] for e in compiled.manifest["entries"]], ["add", "run_"])
        loaded = kiln.load(compiled.shared_object)
        self.assertEqual(repr(loaded), "<kiln.Entries two: add, run_>")
        self.assertEqual((loaded.add.library, loaded.add.entry, loaded.add.name), ("two", "add", "two_add"))
        np.testing.assert_array_equal(loaded.run_(w, x), w * x)
        np.testing.assert_array_equal(kiln.load(compiled.shared_object, "two_add")(w, x), w + x)
        with self.assertRaisesRegex(AttributeError, "two has no entry 'train'; it has add, run_"):
            loaded.train
        with self.assertRaisesRegex(kiln.KilnError, "it has the models two_add, two_run_; name one of them"):
            kiln.load(compiled.shared_object, "three")
        header = b'{"params.w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}  '
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "w.safetensors"
            path.write_bytes(len(header).to_bytes(8, "little") + header + w.tobytes())
            with_weights = kiln.load(compiled.shared_object, weights=path)
            np.testing.assert_array_equal(with_weights.add(x), w + x)
            np.testing.assert_array_equal(with_weights.run_(x), w * x)
        for wrong in ({"add": programs["add"]}, {}):
            with self.assertRaisesRegex(TypeError, "at least two programs"):
                kiln.compile(wrong, name="two")
        with self.assertRaisesRegex(TypeError, "arguments for other, which is none of add, run"):
            kiln.compile(programs, {"other": (x,)}, name="two")

    def test_explain(self):
        e = kiln.explain(self.sum)
        self.assertIn("arena", e.text)
        self.assertEqual(str(e), e.text)
        self.assertTrue(e.page.lstrip().lower().startswith("<!doctype html"))
        self.assertIn("<iframe", e._repr_html_())

    def test_command_line(self):
        done = subprocess.run([sys.executable, "-m", "kiln", "--version"], capture_output=True, text=True, check=True)
        self.assertTrue(done.stdout.startswith(f"kiln {kiln.__version__}"), done.stdout)


if __name__ == "__main__":
    unittest.main()
