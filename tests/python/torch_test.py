"""kiln.compile of PyTorch's modules: results against PyTorch's own."""

import tempfile
import unittest

import numpy as np
import torch
from torch import nn
from torch.utils import _pytree

import kiln


class Block(nn.Module):
    """One block of a transformer, with a dict and a tuple among its results."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.register_buffer("scale", torch.tensor(8.0).rsqrt())

    def forward(self, x, options, *, mask):
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        scores = torch.softmax(q @ k.transpose(-1, -2) * self.scale + mask, -1)
        x = x + self.out((scores @ v).transpose(1, 2).flatten(-2)) * options["gain"]
        return {"hidden": x + self.mlp(x), "scores": (scores, x.sum())}


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3), nn.Flatten()
        )
        self.last = nn.Linear(4 * 4 * 4, 10)

    def forward(self, x):
        return torch.log_softmax(self.last(self.layers(x)), -1)


class Integers(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 5)

    def forward(self, tokens):
        return self.embedding(tokens), tokens + 1, tokens.float().mean()


class TorchTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def compare(self, module, *args, kwargs=None, tolerance=1e-5, **options):
        module = module.eval()
        compiled = kiln.compile(module, *args, kwargs=kwargs, **options)
        with torch.no_grad():
            want = module(*args, **(kwargs or {}))
        got = compiled(*args, **(kwargs or {}))
        want_leaves, want_spec = _pytree.tree_flatten(want)
        got_leaves, got_spec = _pytree.tree_flatten(got)
        self.assertEqual(got_spec, want_spec)
        for g, w in zip(got_leaves, want_leaves):
            self.assertEqual(g.dtype, w.numpy().dtype)
            np.testing.assert_allclose(g, w.numpy(), rtol=tolerance, atol=tolerance)
        return compiled

    def test_block(self):
        x = torch.randn(2, 6, 32)
        mask = torch.full((6, 6), -1e9).triu(1)
        options = {"gain": torch.tensor(0.5)}
        compiled = self.compare(Block(), x, options, kwargs={"mask": mask})
        self.assertEqual(compiled.name, "block")
        self.assertEqual([a.name for a in compiled.model.arguments], ["x", "options_gain", "mask"])
        self.assertEqual([r.name for r in compiled.model.results], ["hidden", "scores_0", "scores_1"])
        with self.assertRaisesRegex(TypeError, "keyword arguments mask"):
            compiled(x, options)
        with tempfile.TemporaryDirectory() as folder:
            compiled.write(folder)
            loaded = kiln.load(f"{folder}/libblock.so")
        again = loaded(x.numpy(), {"gain": 0.5}, mask=mask)
        np.testing.assert_array_equal(again["hidden"], compiled(x, options, mask=mask)["hidden"])

    def test_convolutions(self):
        self.compare(Convolutions(), torch.randn(3, 3, 12, 12))

    def test_integers(self):
        compiled = self.compare(Integers(), torch.tensor([[1, 2, 3], [0, 10, 4]]))
        self.assertEqual(compiled.model.arguments[0].dtype, "int64")

    def test_exported_program(self):
        exported = torch.export.export(Convolutions().eval(), (torch.randn(1, 3, 12, 12),))
        x = torch.randn(1, 3, 12, 12)
        np.testing.assert_allclose(kiln.compile(exported, name="conv")(x), exported.module()(x).detach().numpy(), atol=1e-5)

    def test_tensors_of_all_kinds(self):
        module = nn.Linear(4, 4, bias=False).eval()
        compiled = kiln.compile(module, torch.ones(3, 4), name="linear")
        x = torch.arange(12.0).reshape(3, 4)
        want = module(x).detach().numpy()
        for given in (x, x.clone().requires_grad_(), x.numpy()):
            np.testing.assert_allclose(compiled(given), want, rtol=1e-6)
        transposed = x.T.contiguous().T  # strides (1, 4) elements
        np.testing.assert_allclose(compiled(transposed), want, rtol=1e-6)
        bf16 = kiln.compile(nn.Linear(4, 4).bfloat16().eval(), torch.ones(3, 4, dtype=torch.bfloat16), name="bf16")
        self.assertEqual(bf16(torch.ones(3, 4, dtype=torch.bfloat16)).dtype.name, "bfloat16")

    def test_batch_sizes(self):
        module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
        n = torch.export.Dim("n", min=1, max=64)
        exported = torch.export.export(module, (torch.ones(3, 4),), dynamic_shapes=({0: n},))
        compiled = kiln.compile(exported, name="batches", batch_sizes=[1, 8])
        for size in (1, 8):
            x = torch.randn(size, 4)
            np.testing.assert_allclose(compiled(x), module(x).detach().numpy(), rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
