"""What the pages show of a framework: docs_test.py jax|tensorflow|torch.

Blocks marked `python FRAMEWORK` run, page by page, each page in an empty folder and with the names that it leaves to the
reader (BEFORE). Then kiln compiles the files that the page wrote (AFTER, with options).
"""

import os
import pathlib
import re
import sys
import tempfile

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

from kiln import _tool

ROOT = pathlib.Path(__file__).resolve().parents[2]

JAX = "import jax, jax.numpy as jnp, numpy as np, kiln\n"
MLP = "w0, b0, w1 = np.ones((4, 2), 'f4'), np.ones(2, 'f4'), np.ones((2, 3), 'f4')\npixels = np.ones((2, 4), 'f4')\n"

BEFORE = {
    ("README.md", "jax"): JAX
    + "layer = {'w': np.ones((4, 4), 'f4'), 'b': np.ones(4, 'f4')}\n"
    + "params, pixels = {'layers': [layer, layer]}, np.ones((2, 4), 'f4')",
    ("docs/batch.md", "jax"): JAX + "f = lambda x: jnp.tanh(x @ np.ones((4, 2), 'f4'))",
    ("docs/custom_calls.md", "jax"): JAX + "x = np.ones((2, 4), 'f4')",
    ("docs/devices.md", "jax"): JAX + "f = lambda x, w: x @ w\nx, w = np.ones((8, 4), 'f4'), np.ones((4, 3), 'f4')",
    ("docs/entries.md", "jax"): JAX
    + "params, words, word, state = np.ones((5, 4), 'f4'), np.arange(3), np.array([1]), np.ones(4, 'f4')\n"
    + "prefill = lambda p, words: p[words].sum(0)\ndecode = lambda p, word, state: state + p[word].sum(0)",
    ("docs/first_model.md", "jax"): JAX + MLP + "mlp = lambda x: jnp.tanh(x)",
    ("docs/first_model.md", "tensorflow"): "import numpy as np\n" + MLP,
    ("docs/first_model.md", "torch"): "import torch\nmodule = torch.nn.Linear(4, 3)",
    ("docs/memory.md", "jax"): JAX + "w = gradient = np.ones(4, 'f4')",
    ("docs/python.md", "jax"): JAX
    + "w1, w2, x = np.ones((784, 32), 'f4'), np.ones((32, 10), 'f4'), np.ones((8, 784), 'f4')\n"
    + "params = {'w1': w1, 'w2': w2}\nf = lambda x: x @ w1\n"
    + "words, word, state = np.arange(3, dtype='i4'), np.array([1], 'i4'), np.ones(4, 'f4')\ntable = np.ones((5, 4), 'f4')\n"
    + "prefill = lambda words: jnp.asarray(table)[words].sum(0)\n"
    + "decode = lambda state, word: state + jnp.asarray(table)[word].sum(0)",
    ("docs/python.md", "tensorflow"): "",
    ("docs/python.md", "torch"): "import torch\nclass Net(torch.nn.Sequential):\n"
    + "  def __init__(self): super().__init__(torch.nn.Linear(784, 10), torch.nn.ReLU())",
}

AFTER = {
    ("README.md", "jax"): {"mlp.mlirbc": []},
    ("docs/batch.md", "jax"): {"net.mlirbc": ["--batch", "1", "--batch", "8"]},
    ("docs/custom_calls.md", "jax"): {"net.mlirbc": []},
    ("docs/devices.md", "jax"): {"scores.mlir": []},
    ("docs/entries.md", "jax"): {"prefill.mlirbc": [], "decode.mlirbc": []},
    ("docs/first_model.md", "jax"): {"mlp.mlirbc": [], "build/libmlp.a": None},
    ("docs/first_model.md", "tensorflow"): {"mlp.pb": []},
    ("docs/first_model.md", "torch"): {"mlp.mlirbc": []},
    ("docs/python.md", "jax"): {"build/libmlp.so": None, "build/liblm.so": None},
}


def blocks(page: pathlib.Path, framework: str) -> list[tuple[int, str]]:
    """The blocks for a framework, each with the number of its first line."""
    text = page.read_text()
    found = re.finditer(rf"^```python {framework}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in found]


def run(page: pathlib.Path, framework: str) -> int:
    """Runs a page's blocks; returns how many there are."""
    found = blocks(page, framework)
    name = str(page.relative_to(ROOT))
    key = name, framework
    if not found:
        if key in BEFORE:
            sys.exit(f"FAILED: {name} shows nothing of {framework}")
        return 0
    names = {"__name__": page.stem}
    exec(BEFORE[key], names)
    for line, block in found:
        try:
            exec(compile("\n" * (line - 1) + block, str(page), "exec"), names)
        except Exception:
            print(f"FAILED: the block at {name}:{line}", file=sys.stderr)
            raise
    for file, options in AFTER.get(key, {}).items():
        if not os.path.exists(file):
            sys.exit(f"FAILED: {name} writes no {file}")
        if options is not None:
            _tool.run_tool(["compile", file, "--name", "model", "--out", "compiled", "--target", "v3", *options])
    print(f"{name}: {len(found)} blocks of {framework}")
    return len(found)


def main() -> None:
    framework = sys.argv[1]
    count = 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            count += run(page, framework)
            os.chdir(ROOT)
    if not count:
        sys.exit(f"FAILED: no page shows anything of {framework}")


if __name__ == "__main__":
    main()
