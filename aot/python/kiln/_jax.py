"""Programs of JAX, by jax.export: portable StableHLO."""

from __future__ import annotations

import inspect
from typing import Any, Mapping, Optional, Sequence

from kiln import _tree
from kiln._program import Program, identifiers, library_name


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


def _parameter_names(fn: Any, count: int) -> list[str]:
    """What the function calls its positional arguments."""
    names = []
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for p in parameters:
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
        elif p.kind == p.VAR_POSITIONAL:
            names += [f"{p.name}{k}" for k in range(count - len(names))]
    return (names + [f"arg{k}" for k in range(len(names), count)])[:count]


def _argument_paths(exported, fn: Any) -> list[str]:
    from jax import tree_util

    args, kwargs = tree_util.tree_unflatten(exported.in_tree, range(exported.in_tree.num_leaves))
    paths = []
    for name, value in [*zip(_parameter_names(fn, len(args)), args), *sorted(kwargs.items())]:
        paths += [name + tree_util.keystr(path) for path, _ in tree_util.tree_flatten_with_path(value)[0]]
    return [paths[k] for k in exported.module_kept_var_idx]


def _result_paths(exported) -> list[str]:
    from jax import tree_util

    tree = tree_util.tree_unflatten(exported.out_tree, range(exported.out_tree.num_leaves))
    paths = [tree_util.keystr(path) for path, _ in tree_util.tree_flatten_with_path(tree)[0]]
    # A dict's keys are names; positions need a word before them.
    return [path if path.startswith("['") else f"result{path}" for path in paths]


def of_exported(exported, fn: Any = None, name: Optional[str] = None) -> Program:
    """A jax.export.Exported, of the function ``fn`` if that is known."""
    return Program(
        module=exported.mlir_module_serialized,
        calls=_Calls(exported),
        structure=_structure(exported),
        argument_names=identifiers(_argument_paths(exported, fn)),
        result_names=identifiers(_result_paths(exported)),
        name=library_name(name or exported.fun_name),
    )


def of_function(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Program:
    """A function, jitted or not, for arguments like these (arrays or jax.ShapeDtypeStructs)."""
    import jax
    from jax import export

    jitted = fn if hasattr(fn, "lower") and hasattr(fn, "trace") else jax.jit(fn)
    exported = export.export(jitted, platforms=["cpu"])(*args, **kwargs)
    # Static arguments have no place in the tree, and then positions say nothing of names.
    named = len(exported.in_tree.children()[0].children()) == len(args)
    return of_exported(exported, fn if named else None, getattr(fn, "__name__", None))
