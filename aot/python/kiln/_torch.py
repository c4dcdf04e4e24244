"""Programs of PyTorch: torch.export's, made StableHLO by torchax and JAX."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from kiln import _tree
from kiln._errors import KilnError
from kiln._program import Program, identifiers, library_name


class _Calls:
    """Flattens and unflattens as torch.export does."""

    def __init__(self, in_spec, out_spec, jax_exported):
        self._in_spec, self._out_spec, self._exported = in_spec, out_spec, jax_exported
        self._keys = list(in_spec.children_specs[1].context)
        self._kept = list(jax_exported.module_kept_var_idx)

    def flatten_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        from torch.utils import _pytree

        if kwargs.keys() != set(self._keys):
            raise TypeError(f"the module takes the keyword arguments {', '.join(self._keys) or 'none'}")
        leaves, spec = _pytree.tree_flatten((tuple(args), {key: kwargs[key] for key in self._keys}))
        if spec != self._in_spec:
            raise TypeError(f"the module takes arguments of the structure {self._in_spec}")
        return [leaves[k] for k in self._kept]

    def result_count(self) -> int:
        return self._exported.out_tree.num_leaves

    def unflatten_results(self, leaves: Sequence[Any]) -> Any:
        from jax import tree_util
        from torch.utils import _pytree

        return _pytree.tree_unflatten(list(tree_util.tree_unflatten(self._exported.out_tree, leaves)), self._out_spec)


def _numbered(spec: Any) -> Any:
    from torch.utils import _pytree

    return _pytree.tree_unflatten(list(range(spec.num_leaves)), spec)


def _structure(calls: _Calls, in_spec: Any, out_spec: Any, results: int) -> Optional[_tree.Structure]:
    if out_spec.num_leaves != results:
        return None  # some are None, or constants
    try:
        args, kwargs = map(_tree.describe, _numbered(in_spec))
        return _tree.Structure(args, kwargs, calls._kept, _tree.describe(_numbered(out_spec)))
    except TypeError:
        return None


def _result_paths(out_spec: Any) -> list[str]:
    from torch.utils import _pytree

    paths = [_pytree.keystr(path) for path, _ in _pytree.tree_flatten_with_path(_numbered(out_spec))[0]]
    return [path if path.startswith("['") else f"result{path}" for path in paths]


def of_module(x: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Program:
    """A torch.nn.Module for arguments like these, or a torch.export.ExportedProgram. Parameters and buffers become
    constants of the library."""
    import torch

    try:
        import jax
        from torchax import export as torchax_export
    except ImportError as error:
        raise KilnError(f"PyTorch's programs are compiled by torchax and JAX: pip install torchax jax ({error})") from None
    name = type(x).__name__
    exported = x
    if isinstance(x, torch.nn.Module):
        exported = torch.export.export(x, tuple(args), dict(kwargs))
    else:
        name = "model"
    with jax.enable_x64(True):  # PyTorch's integers have 64 bits
        states, function = torchax_export.exported_program_to_jax(exported)
        avals = torchax_export.extract_avals(exported)
        program = jax.export.export(jax.jit(lambda *inputs: function(states, inputs)), platforms=["cpu"])(*avals)
    spec = exported.call_spec
    calls = _Calls(spec.in_spec, spec.out_spec, program)
    inputs = list(exported.graph_signature.user_inputs)
    results = _result_paths(spec.out_spec)
    return Program(
        module=program.mlir_module_serialized,
        calls=calls,
        structure=_structure(calls, spec.in_spec, spec.out_spec, len(program.out_avals)),
        argument_names=identifiers([str(inputs[k]) for k in program.module_kept_var_idx]),
        result_names=identifiers(results) if len(results) == len(program.out_avals) else (),
        name=library_name(name),
    )
