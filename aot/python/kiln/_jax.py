"""Programs of JAX, by jax.export: portable StableHLO."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from kiln import _tree
from kiln._program import Program, library_name


class _Calls:
    """Flattens and unflattens as JAX does, classes that are registered with it included."""

    def __init__(self, exported):
        self._exported = exported
        self._kept = list(exported.module_kept_var_idx)

    def flatten_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        from jax import tree_util

        leaves, tree = tree_util.tree_flatten((tuple(args), dict(kwargs)))
        if tree != self._exported.in_tree:
            raise TypeError(f"the function takes arguments of the structure {self._exported.in_tree}, not {tree}")
        return [leaves[k] for k in self._kept]

    def result_count(self) -> int:
        return self._exported.out_tree.num_leaves

    def unflatten_results(self, leaves: Sequence[Any]) -> Any:
        from jax import tree_util

        return tree_util.tree_unflatten(self._exported.out_tree, leaves)


def _structure(exported) -> Optional[_tree.Structure]:
    from jax import tree_util

    def numbered(tree):
        return tree_util.tree_unflatten(tree, range(tree.num_leaves))

    try:
        args, kwargs = map(_tree.describe, numbered(exported.in_tree))
        return _tree.Structure(args, kwargs, exported.module_kept_var_idx, _tree.describe(numbered(exported.out_tree)))
    except TypeError:
        return None  # of classes that only JAX knows


def of_exported(exported, name: Optional[str] = None) -> Program:
    """A jax.export.Exported. Names of arguments and results are in the module."""
    several = len(exported.platforms) > 1  # only the envelope says which of the module's platforms is the CPU
    return Program(
        module=bytes(exported.serialize()) if several else exported.mlir_module_serialized,
        calls=_Calls(exported),
        structure=_structure(exported),
        name=library_name(name or exported.fun_name),
    )


def of_function(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Program:
    """A function, jitted or not, for arguments like these (arrays or jax.ShapeDtypeStructs)."""
    import jax
    from jax import export

    jitted = fn if hasattr(fn, "lower") and hasattr(fn, "trace") else jax.jit(fn)
    return of_exported(export.export(jitted, platforms=["cpu"])(*args, **kwargs), getattr(fn, "__name__", None))
