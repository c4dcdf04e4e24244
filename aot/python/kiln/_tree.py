"""What a function's arguments and results are made of: lists, tuples, dicts, None, and arrays as leaves.

Structures are those of JAX's pytrees: the leaves of a dict come in the order of its keys. A structure can be written
beside a library, so that a program that loads it there passes and gets what the function did, without the framework.
"""

from __future__ import annotations

import itertools
import json
import pathlib
from typing import Any, Mapping, Optional, Protocol, Sequence

from kiln._errors import KilnError

LEAF = "array"


class Callable(Protocol):
    """How a call of a function becomes arrays, and arrays its results."""

    def flatten_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]: ...

    def result_count(self) -> int:
        """Leaves of the results; a library's further ones are sizes."""
        ...

    def unflatten_results(self, leaves: Sequence[Any]) -> Any: ...


def describe(value: Any) -> Any:
    """A structure as JSON has it, from a value of that structure.

    Raises:
      TypeError: it has parts that are none of the above, or dicts whose keys are no texts.
    """
    if value is None:
        return None
    if type(value) is dict:
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a dict whose keys are not all texts")
        return {"dict": {key: describe(value[key]) for key in sorted(value)}}
    if type(value) is list:
        return {"list": [describe(v) for v in value]}
    if isinstance(value, tuple):
        return {"tuple": [describe(v) for v in value]}
    if isinstance(value, int):  # a leaf's number
        return LEAF
    raise TypeError(f"a {type(value).__name__}")


def _flatten(structure: Any, value: Any, where: str, leaves: list[Any]) -> None:
    if structure == LEAF:
        leaves.append(value)
        return
    if structure is None:
        if value is not None:
            raise TypeError(f"{where} is None, not {type(value).__name__}")
        return
    ((kind, parts),) = structure.items()
    if kind == "dict":
        if not isinstance(value, Mapping) or value.keys() != parts.keys():
            raise TypeError(f"{where} is a dict with the keys {', '.join(map(repr, parts))}")
        for key, part in parts.items():
            _flatten(part, value[key], f"{where}[{key!r}]", leaves)
        return
    if not isinstance(value, (list, tuple)) or len(value) != len(parts):
        raise TypeError(f"{where} is a {kind} of {len(parts)}")
    for k, part in enumerate(parts):
        _flatten(part, value[k], f"{where}[{k}]", leaves)


def _unflatten(structure: Any, leaves) -> Any:
    if structure == LEAF:
        return next(leaves)
    if structure is None:
        return None
    ((kind, parts),) = structure.items()
    if kind == "dict":
        return {key: _unflatten(part, leaves) for key, part in parts.items()}
    made = [_unflatten(part, leaves) for part in parts]
    return tuple(made) if kind == "tuple" else made


class Structure:
    """The structure of a function: of its arguments, which of their leaves it uses, and of its results."""

    def __init__(self, args: Any, kwargs: Any, kept: Sequence[int], results: Any):
        self._args, self._kwargs, self._kept, self._results = args, kwargs, list(kept), results

    def flatten_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        leaves: list[Any] = []
        wanted, named = self._args["tuple"], self._kwargs["dict"]
        if len(args) != len(wanted) or kwargs.keys() != named.keys():
            names = "".join(f", {name}=" for name in named)
            raise TypeError(f"the function takes {len(wanted)} arguments{names} ({len(args)} given, {len(kwargs)} named)")
        for k, (structure, value) in enumerate(zip(wanted, args)):
            _flatten(structure, value, f"argument {k}", leaves)
        for name, structure in named.items():
            _flatten(structure, kwargs[name], name, leaves)
        return [leaves[k] for k in self._kept]

    def result_count(self) -> int:
        leaves = itertools.count()
        _unflatten(self._results, leaves)
        return next(leaves)

    def unflatten_results(self, leaves: Sequence[Any]) -> Any:
        return _unflatten(self._results, iter(leaves))

    def text(self, build: str) -> str:
        """As a file of the library ``build``."""
        return json.dumps(
            {"build": build, "args": self._args, "kwargs": self._kwargs, "kept": self._kept, "results": self._results},
            indent=1,
        )

    @staticmethod
    def read(folder: pathlib.Path, name: str, build: str) -> Optional[Structure]:
        """That of a library, if a file beside it has it; one of another build does not count."""
        path = folder / f"{name}.tree.json"
        try:
            text = path.read_text()
        except OSError:
            return None
        try:
            read = json.loads(text)
            if read["build"] != build:
                return None
            return Structure(read["args"], read["kwargs"], read["kept"], read["results"])
        except (KeyError, TypeError, ValueError) as error:
            raise KilnError(f"{path}: it holds no structure: {error}") from None
