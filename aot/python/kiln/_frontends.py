"""Which framework a program is of, found without importing any that is not loaded."""

from __future__ import annotations

import os
import sys
from typing import Any, Mapping, Sequence

from kiln._program import Program, library_name


def _is(x: Any, module: str, path: str) -> bool:
    """Whether x is an instance of a class of a module that the process has loaded."""
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return isinstance(found, type) and isinstance(x, found)


def program_of(x: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Program:
    """The program that x is: a function or a module of a framework, what it exported, a file, or a module's bytes.

    Raises:
      TypeError: it is nothing of these.
    """
    if isinstance(x, (bytes, bytearray, memoryview)):
        return Program(module=bytes(x))
    if isinstance(x, (str, os.PathLike)):
        with open(x, "rb") as f:
            return Program(module=f.read(), name=library_name(os.path.basename(x).split(".")[0]))
    if _is(x, "jax.export", "Exported"):
        from kiln import _jax

        return _jax.of_exported(x)
    if _is(x, "torch", "nn.Module") or _is(x, "torch.export", "ExportedProgram"):
        from kiln import _torch

        return _torch.of_module(x, args, kwargs)
    if hasattr(x, "experimental_get_compiler_ir") or _is(x, "tensorflow", "Module"):
        from kiln import _tensorflow

        return _tensorflow.of_function(x, args, kwargs)
    if callable(x):
        try:
            from kiln import _jax

            return _jax.of_function(x, args, kwargs)
        except ModuleNotFoundError as error:
            if error.name and error.name.split(".")[0] == "jax":
                raise TypeError(
                    "a function is compiled by JAX, which is not installed: pip install jax. (TensorFlow's functions are "
                    "those made by tf.function, PyTorch's are torch.nn.Modules.)"
                ) from None
            raise
    raise TypeError(
        f"a {type(x).__name__} cannot be compiled: pass a function of JAX's, a jax.export.Exported, a tf.function, a "
        "torch.nn.Module, a torch.export.ExportedProgram, or a module's path or bytes"
    )
