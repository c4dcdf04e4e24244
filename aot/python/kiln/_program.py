"""A program as a framework gives it: what every frontend returns."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Optional, Sequence

from kiln import _tree


@dataclasses.dataclass
class Program:
    """A module for the compiler, and how its arrays relate to the function that it was made of.

    Attributes:
      module: the module's bytes (StableHLO bytecode or text, HLO text or proto).
      calls: how calls of the function become arrays; None: arrays in their order.
      structure: the same as far as it can be written to a file; None if it cannot, or if there is none.
      argument_names, result_names: for headers; empty: the module's own.
      name: what the function is called.
    """

    module: bytes
    calls: Optional[_tree.Callable] = None
    structure: Optional[_tree.Structure] = None
    argument_names: Sequence[str] = ()
    result_names: Sequence[str] = ()
    name: str = "model"


def identifier(path: str) -> str:
    """A path such as ``params['layer0'].w`` as an identifier: params_layer0_w."""
    words = re.findall(r"[0-9A-Za-z]+(?:_+[0-9A-Za-z]+)*", path)
    text = "_".join(words) or "value"
    return f"_{text}" if text[0].isdigit() else text


def identifiers(paths: Sequence[str]) -> list[str]:
    """Identifiers for paths, of which no two differ in case alone; a number goes behind those that would."""
    out: list[str] = []
    used: set[str] = set()
    for k, path in enumerate(paths):
        name = identifier(path)
        while name.lower() in used or f"{name.lower()}_count" in used or name.lower().removesuffix("_count") in used:
            name = f"{name}_{k}"
        used.add(name.lower())
        out.append(name)
    return out


def library_name(text: Any) -> str:
    """A name for a library, of a function's."""
    name = identifier(str(text)).lstrip("_").lower()
    return name if len(name) > 1 and not name.endswith("_t") and not name[0].isdigit() else f"model_{name}"
