"""Structures of arguments and results, as they are written beside libraries."""

import collections
import pathlib
import tempfile
import unittest

from kiln import _tree
from kiln._errors import KilnError
from kiln._program import identifiers, library_name

Point = collections.namedtuple("Point", "x y")


class TreeTest(unittest.TestCase):
    def make(self):
        args = _tree.describe(({"w": 1, "b": 0}, [2, (3, None)]))
        return _tree.Structure(args, _tree.describe({"scale": 4}), [0, 2, 4], _tree.describe({"y": 0, "z": [1, None]}))

    def check(self, s):
        self.assertEqual(s.flatten_arguments(({"w": "W", "b": "B"}, ["p", ("q", None)]), {"scale": "S"}), ["B", "p", "S"])
        self.assertEqual(s.unflatten_results(["Y", "Z"]), {"y": "Y", "z": ["Z", None]})

    def test_round_trip(self):
        self.check(self.make())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "m.tree.json").write_text(self.make().text("m_1"))
            self.check(_tree.Structure.read(path, "m", "m_1"))
            self.assertIsNone(_tree.Structure.read(path, "m", "m_2"))
            self.assertIsNone(_tree.Structure.read(path, "other", "m_1"))
            (path / "m.tree.json").write_text("{")
            with self.assertRaisesRegex(KilnError, "holds no structure"):
                _tree.Structure.read(path, "m", "m_1")

    def test_errors(self):
        s = self.make()
        right = {"w": 1, "b": 2}
        for args, kwargs, why in (
            ((right,), {"scale": 1}, "takes 2 arguments, scale= "),
            ((right, [1, (2, None)]), {}, "takes 2 arguments"),
            (({"w": 1}, [1, (2, None)]), {"scale": 1}, "argument 0 is a dict with the keys 'b', 'w'"),
            ((right, [1]), {"scale": 1}, "argument 1 is a list of 2"),
            ((right, [1, (2, 3)]), {"scale": 1}, r"argument 1\[1\]\[1\] is None, not int"),
        ):
            with self.assertRaisesRegex(TypeError, why):
                s.flatten_arguments(args, kwargs)

    def test_what_cannot_be_described(self):
        self.assertEqual(_tree.describe(Point(0, 1)), {"tuple": ["array", "array"]})
        for value in ({1: 0}, {"x": object()}):
            with self.assertRaises(TypeError):
                _tree.describe(value)

    def test_identifiers(self):
        paths = ["params['layer0']['w']", "x.w", "X_w", "x_w_count", "0", "", "[3]"]
        self.assertEqual(
            identifiers(paths), ["params_layer0_w", "x_w", "X_w_2", "x_w_count_3", "_0", "value", "_3"]
        )
        self.assertEqual([library_name(n) for n in ("<lambda>", "f", "MyNet", "2x")], ["lambda", "model_f", "mynet", "model_2x"])


if __name__ == "__main__":
    unittest.main()
