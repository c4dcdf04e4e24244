"""Ahead-of-time compilation of JAX, TensorFlow and PyTorch programs with kiln.

``compile`` turns a function, an exported program or a module's file into a static library, headers and a shared object,
and can be called at once::

    import jax.numpy as jnp, kiln
    mlp = kiln.compile(lambda p, x: jnp.tanh(x @ p["w"] + p["b"]), params, x, name="mlp")
    y = mlp(params, x)              # NumPy arrays, structured as the function's results
    mlp.write("build")              # libmlp.a, libmlp.so, mlp.h, mlp_c.h, mlp.manifest.json

``load`` runs a shared object that was compiled before; it needs neither the framework nor the compiler.
``explain`` says what the compiler decided and why.
"""

from kiln._compile import Compiled, CompiledEntries, compile
from kiln._entries import Entries
from kiln._errors import CompileError, KilnError, RunError
from kiln._explain import Explanation, explain
from kiln._model import ArrayInfo, Model, load, models
from kiln._pool import Pool
from kiln._tool import include_path, tool_path
from kiln._version import __version__

__all__ = [
    "ArrayInfo",
    "CompileError",
    "Compiled",
    "CompiledEntries",
    "Entries",
    "Explanation",
    "KilnError",
    "Model",
    "Pool",
    "RunError",
    "__version__",
    "compile",
    "explain",
    "include_path",
    "load",
    "models",
    "tool_path",
]
