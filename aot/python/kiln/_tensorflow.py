"""Programs of TensorFlow, by tf.function's compiler: HLO protos, whose constants are whole."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from kiln import _tree
from kiln._errors import KilnError
from kiln._program import Program, identifiers, library_name


class _Calls:
    """Flattens and unflattens as tf.nest does. What is no tensor in the function's signature is fixed."""

    def __init__(self, signature: Any, outputs: Any):
        import tensorflow as tf

        self._signature, self._outputs = signature, outputs
        self.kept = [k for k, s in enumerate(tf.nest.flatten(signature)) if isinstance(s, tf.TensorSpec)]

    def flatten_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        import tensorflow as tf

        given = (tuple(args), dict(kwargs))
        try:
            tf.nest.assert_same_structure(self._signature, given)
        except (TypeError, ValueError):
            raise TypeError(f"the function takes arguments of the structure {self._signature}") from None
        leaves = tf.nest.flatten(given)
        return [leaves[k] for k in self.kept]

    def result_count(self) -> int:
        import tensorflow as tf

        return len(tf.nest.flatten(self._outputs))

    def unflatten_results(self, leaves: Sequence[Any]) -> Any:
        import tensorflow as tf

        return tf.nest.pack_sequence_as(self._outputs, list(leaves))


def _structure(calls: _Calls, signature: Any, outputs: Any) -> Optional[_tree.Structure]:
    import tensorflow as tf

    def numbered(nest):
        return _tree.describe(tf.nest.pack_sequence_as(nest, list(range(len(tf.nest.flatten(nest))))))

    try:
        return _tree.Structure(numbered(signature[0]), numbered(signature[1]), calls.kept, numbered(outputs))
    except TypeError:
        return None


def _result_paths(outputs: Any) -> list[str]:
    paths = []

    def visit(value: Any, path: str) -> None:
        if isinstance(value, Mapping):
            for key in sorted(value):
                visit(value[key], f"{path}.{key}" if path else str(key))
        elif isinstance(value, (list, tuple)):
            for k, v in enumerate(value):
                visit(v, f"{path or 'result'}.{k}")
        else:
            paths.append(path or "result")

    visit(outputs, "")
    return paths


def of_function(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Program:
    """A tf.function, or a tf.Module, for arguments like these (tensors or tf.TensorSpecs); its variables become
    constants of the library."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    name = getattr(fn, "__name__", None) or type(fn).__name__
    if not hasattr(fn, "get_concrete_function"):
        fn = tf.function(fn.__call__)
    concrete = fn.get_concrete_function(*args, **kwargs)
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    signature, outputs = concrete.structured_input_signature, concrete.structured_outputs
    calls = _Calls(signature, outputs)
    specs = [s for s in tf.nest.flatten(signature) if isinstance(s, tf.TensorSpec)]
    if len(frozen.inputs) != len(specs):
        raise KilnError(f"{name}: it captures tensors other than variables, which cannot become constants")
    compiled = tf.function(lambda *tensors: frozen(*tensors), jit_compile=True)
    module = compiled.experimental_get_compiler_ir(*(tf.TensorSpec(s.shape, s.dtype) for s in specs))("hlo_serialized")
    return Program(
        module=module,
        calls=calls,
        structure=_structure(calls, signature, outputs),
        argument_names=identifiers([s.name or f"arg{k}" for k, s in enumerate(specs)]),
        result_names=identifiers(_result_paths(outputs)),
        name=library_name(name),
    )
