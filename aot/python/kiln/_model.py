"""Models of shared objects, and running them."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import pathlib
import re
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np

from kiln import _abi, _arrays, _devices, _dtypes, _tree
from kiln._entries import Entries
from kiln._errors import KilnError, RunError
from kiln._library import Library
from kiln._pool import Pool, make_pool


@dataclasses.dataclass(frozen=True)
class ArrayInfo:
    """An argument or a result.

    Attributes:
      name: a C identifier.
      path: what the program calls it, as in ``params['layer0']['w']``.
      dtype: the name of NumPy's or ml_dtypes' type.
      shape: of the largest batch size, or of a batch variant where one is asked for; of a program that is partitioned
        among devices, of the whole array.
      alias: of an argument, the number of the result that overwrites it; of a result, of the argument it lies in.
      bounds: of an argument that states the size of a dimension, the least and the largest.
      weight: whether it is an argument that a file of weights can give.
    """

    name: str
    path: str
    dtype: str
    shape: tuple[int, ...]
    alias: Optional[int] = None
    bounds: Optional[tuple[int, int]] = None
    weight: bool = False
    alignment: int = dataclasses.field(default=1, repr=False)
    minor_to_major: Optional[tuple[int, ...]] = dataclasses.field(default=None, repr=False)
    nbytes: int = dataclasses.field(default=0, repr=False)
    element_bytes: int = dataclasses.field(default=1, repr=False)
    tiling: Optional[_devices.Tiling] = dataclasses.field(default=None, repr=False)

    def part(self) -> ArrayInfo:
        """As each device has it."""
        return dataclasses.replace(self, shape=self.tiling.part) if self.tiling else self


def _array_info(a: _abi.Array) -> ArrayInfo:
    tiling = _devices.tiling_of(a)
    return ArrayInfo(
        name=a.name.decode(),
        path=a.path.decode(),
        dtype=_dtypes.name_of(a.type),
        shape=tiling.whole if tiling else tuple(a.extents[: a.rank]),
        alias=a.alias if a.alias >= 0 else None,
        bounds=(a.low, a.high) if a.low <= a.high else None,
        weight=bool(a.weight),
        alignment=a.alignment,
        minor_to_major=tuple(a.minor_to_major[: a.rank]) if a.minor_to_major else None,
        nbytes=a.bytes,
        element_bytes=a.element_bytes,
        tiling=tiling,
    )


@dataclasses.dataclass(frozen=True)
class _Variant:
    """What one batch size takes and gives."""

    batch: int
    arguments: tuple[ArrayInfo, ...]
    results: tuple[ArrayInfo, ...]


def _variants(m: _abi.ModelStruct) -> list[_Variant]:
    def arrays(table: int, count: int) -> tuple[ArrayInfo, ...]:
        return tuple(_array_info(_abi.Array.from_address(table + k * m.array_bytes)) for k in range(count))

    out = []
    for k in range(m.variants):
        v = _abi.Variant.from_address(m.variant + k * m.variant_bytes)
        out.append(_Variant(v.batch, arrays(v.arguments, m.arguments), arrays(v.results, m.results)))
    return out


def _without_weights(v: _Variant) -> _Variant:
    """As a run with a file of weights takes it."""
    kept = [k for k, a in enumerate(v.arguments) if not a.weight]
    place = {k: number for number, k in enumerate(kept)}
    results = (dataclasses.replace(r, alias=None if r.alias is None else place[r.alias]) for r in v.results)
    return _Variant(v.batch, tuple(v.arguments[k] for k in kept), tuple(results))


class _Weights:
    """A file of weights, mapped for a library; it is closed when the last that refers to it goes."""

    def __init__(self, library: Library, m: _abi.ModelStruct, path: str | os.PathLike):
        if not m.weights:
            raise KilnError(f"{m.name.decode()} takes no weights from files (weights {{ ... }} of its configuration)")
        functions = m.weights.contents
        opened = ctypes.c_void_p()
        why = ctypes.create_string_buffer(1024)
        status = functions.open(ctypes.byref(opened), os.fsencode(path), why, len(why))
        if status != 0:
            raise KilnError(f"{m.name.decode()}: {why.value.decode(errors='replace')}")
        self.address = opened.value or 0
        weakref.finalize(self, _close_weights, functions.close, self.address, library)


def _close_weights(close, address: int, library: Library) -> None:
    close(address)
    del library  # which had to stay open so long


class _Memory:
    """The arenas of one run at a time."""

    def __init__(self, m: _abi.ModelStruct):
        u8 = np.dtype(np.uint8)
        self._arrays = [
            _arrays.aligned_empty((size,), u8, m.arena_alignment) for size in (m.arena_bytes, m.slow_arena_bytes)
        ]
        self.arena, self.slow_arena = (_abi.Arena(_arrays.address_of(a), a.nbytes) for a in self._arrays)


class Model:
    """A model of a shared object. It may be called in several threads at once; a run holds no lock of Python's.

    ``model(*arguments)`` or ``model(name=argument, ...)`` takes NumPy arrays, objects with ``__dlpack__`` (tensors of
    JAX, PyTorch and TensorFlow, without a copy if they lie on the host), numbers and lists. Where the library was
    written with its structure (``Compiled.write``), it takes and gives what the function took and gave; else it takes
    arrays in their order, and gives one array, or a tuple of several.

    Attributes:
      name, kiln_version, build: of the library.
      library, entry: of one of several functions of a library, whose it is and what it is called there; else the name
        and None.
      arguments, results: what it takes and gives.
      batch_sizes: the sizes that it holds; empty if it has one.
      cpu_level: the level that runs on this machine ("v3"); None if none does.
    """

    def __init__(
        self,
        library: Library,
        struct: _abi.ModelStruct,
        pool: Pool,
        structure: Optional[_tree.Structure],
        weights: Optional[_Weights] = None,
    ):
        self._library, self._struct, self._pool, self._structure = library, struct, pool, structure
        if struct.abi_version != _abi.ABI_VERSION:
            raise KilnError(
                f"{struct.name.decode()}: it was made by kiln {struct.kiln_version.decode()} with ABI "
                f"{struct.abi_version}; this package runs ABI {_abi.ABI_VERSION}"
            )
        self.name: str = struct.name.decode()
        self.library, self.entry = _abi.entry_of(struct)
        self.kiln_version: str = struct.kiln_version.decode()
        self.build: str = struct.build.decode()
        self.cpu_levels: list[str] = _abi.texts(struct.cpu_levels)
        self.gpu_targets: list[str] = _abi.texts(struct.gpu_targets)
        level = struct.cpu_level()
        self.cpu_level: Optional[str] = level.decode() if level else None
        self._variants = _variants(struct)
        self._weights = weights
        if weights:
            # What the function took and the library takes differ now.
            self._variants, self._structure = [_without_weights(v) for v in self._variants], None
        self.batch_sizes: tuple[int, ...] = tuple(v.batch for v in self._variants if v.batch)
        self.arguments: tuple[ArrayInfo, ...] = self._variants[-1].arguments
        self.results: tuple[ArrayInfo, ...] = self._variants[-1].results
        self._memory: list[_Memory] = []  # that no run uses
        self._numbers = {a.name: k for k, a in enumerate(self.arguments)}
        self._numbers.update({a.path: k for k, a in enumerate(self.arguments)})

    def __repr__(self) -> str:
        def side(arrays):
            return ", ".join(f"{a.path}: {a.dtype}{list(a.shape)}" for a in arrays)

        return f"<kiln.Model {self.name}({side(self.arguments)}) -> ({side(self.results)})>"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Runs the model; see the class."""
        if self._structure:
            return self.call(self._structure, arguments, named)
        results = self.run(self._in_order(arguments, named))
        return results[0] if len(results) == 1 else results

    def call(self, calls: _tree.Callable, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Runs the model as the function that it was compiled from; results are cut to the sizes that they have."""
        results = self.run(calls.flatten_arguments(arguments, named))
        return calls.unflatten_results(_cut(results, [r.name for r in self.results], calls.result_count()))

    def run(
        self,
        arguments: Sequence[Any] | Mapping[str, Any],
        *,
        out: Optional[Sequence[Optional[np.ndarray]]] = None,
        donate: bool = False,
    ) -> tuple[np.ndarray, ...]:
        """Runs the model on arrays in their order, or by name or path, whatever structure the library has.

        Args:
          arguments: the arrays.
          out: arrays that results are written to, as many as there are results; None for one that is to be made.
          donate: lets donated arguments be overwritten, which saves a copy; their results lie in them then.

        Returns:
          the results, of which those named by ``out`` are these arrays.

        Raises:
          TypeError, ValueError: an array has another type or another shape than the model takes.
          RunError: the run failed.
        """
        if isinstance(arguments, Mapping):
            arguments = self._in_order((), arguments)
        if len(arguments) != len(self.arguments):
            raise TypeError(f"{self.name} takes {len(self.arguments)} arrays ({len(arguments)} given)")
        views = [_arrays.view(x, a.dtype) for x, a in zip(arguments, self.arguments)]
        variant = self._variant(views)
        m = self._struct
        if not m.run:
            raise KilnError(f"{self.name} has no CPU program ({', '.join(self.gpu_targets)})")
        if out is None:
            out = [None] * len(variant.results)
        if len(out) != len(variant.results):
            raise TypeError(f"{self.name} gives {len(variant.results)} results (out has {len(out)})")
        memory = [self._take_memory() for _ in range(m.devices if m.communicates else 1)]
        try:
            if m.communicates:
                return self._run_devices(variant, views, out, donate, memory)
            return self._run(variant, views, out, donate, memory[0])
        finally:
            self._memory += memory

    def _take_memory(self) -> _Memory:
        try:
            return self._memory.pop()
        except IndexError:
            return _Memory(self._struct)

    def _in_order(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        if len(arguments) > len(self.arguments):
            raise TypeError(f"{self.name} takes {len(self.arguments)} arrays ({len(arguments)} given)")
        given = dict(enumerate(arguments))
        for name, x in named.items():
            k = self._numbers.get(name)
            if k is None:
                raise TypeError(f"{self.name} has no argument {name!r}; it has {', '.join(self._numbers)}")
            if k in given:
                raise TypeError(f"{self.name}: argument {name!r} is given twice")
            given[k] = x
        missing = [a.name for k, a in enumerate(self.arguments) if k not in given]
        if missing:
            raise TypeError(f"{self.name}: no {', '.join(missing)}")
        return [given[k] for k in range(len(self.arguments))]

    def _variant(self, views: Sequence[_arrays.View]) -> _Variant:
        for v in self._variants:
            if all(view.shape == a.shape for view, a in zip(views, v.arguments)):
                return v
        if self.batch_sizes:
            shapes = ", ".join(f"{a.name}: {list(view.shape)}" for view, a in zip(views, self.arguments))
            sizes = ", ".join(map(str, self.batch_sizes))
            raise ValueError(f"{self.name} has the batch sizes {sizes}; no one has the shapes {shapes}")
        return self._variants[0]

    def _run(self, variant, views, out, donate: bool, memory: _Memory) -> tuple[np.ndarray, ...]:
        taken = [_argument(v, a, donate) for v, a in zip(views, variant.arguments)]
        given = [
            _donated(taken[a.alias], o, a) if a.alias is not None else _result(o, a)
            for o, a in zip(out, variant.results)
        ]
        pointers = _pointers(taken, given)
        self._check_status(self._start(self._call_of(variant, pointers, len(taken), memory)))
        return tuple(_as_result(g, a) for g, a in zip(given, variant.results))

    def _run_devices(self, variant, views, out, donate: bool, memory: Sequence[_Memory]) -> tuple[np.ndarray, ...]:
        """Of whole arrays: each device computes on its parts, in a thread of its own."""
        m = self._struct
        _devices.check(self.name, m.devices, [a.tiling for a in (*variant.arguments, *variant.results)])
        wholes = [_whole(v, a) for v, a in zip(views, variant.arguments)]
        joined = []
        for o, a in zip(out, variant.results):
            if a.alias is None:
                joined.append(_arrays.as_numpy(_result(o, dataclasses.replace(a, minor_to_major=None))))
                continue
            given_up = _donated(views[a.alias], o, a)
            lies_there = donate and _writable(given_up)
            joined.append(wholes[a.alias] if lies_there else np.empty(a.shape, _dtypes.dtype(a.dtype)))
        taken, given, pointers, calls = [], [], [], []  # kept until the runs have ended
        for device in range(m.devices):
            parts = [
                _argument(_arrays.view_of_numpy(a.tiling.cut(x, device)), a.part(), donate=False)
                for x, a in zip(wholes, variant.arguments)
            ]
            taken.append(parts)
            given.append([parts[a.alias] if a.alias is not None else _result(None, a.part()) for a in variant.results])
            pointers.append(_pointers(parts, given[-1]))
            calls.append(self._call_of(variant, pointers[-1], len(parts), memory[device]))
        self._check_status(_devices.run(m, calls, self._start))
        for device, parts in enumerate(given):
            for x, a, into in zip(parts, variant.results, joined):
                a.tiling.join(_as_result(x, a), device, into)
        return tuple(joined)

    def _call_of(self, variant, pointers, arguments: int, memory: _Memory) -> _abi.Call:
        return _abi.Call(
            batch=variant.batch,
            arguments=ctypes.addressof(pointers),
            results=ctypes.addressof(pointers) + arguments * ctypes.sizeof(ctypes.c_void_p),
            arena=memory.arena,
            slow_arena=memory.slow_arena,
            pool=self._pool._of(self._library, self._struct),
        )

    def _start(self, call: _abi.Call) -> int:
        if self._weights:
            return self._struct.weights.contents.run(ctypes.byref(call), self._weights.address)
        return self._struct.run(ctypes.byref(call))

    def _check_status(self, status: int) -> None:
        if status != 0:
            raise RunError(status, f"{self.name}: {self._struct.status_text(status).decode()}")


def _pointers(arguments: Sequence[_arrays.View], results: Sequence[_arrays.View]) -> ctypes.Array:
    return (ctypes.c_void_p * (len(arguments) + len(results)))(*(v.address for v in (*arguments, *results)))


def _check_array(v: _arrays.View, a: ArrayInfo) -> None:
    if v.dtype != a.dtype:
        raise TypeError(f"{a.path}: elements are {a.dtype}, not {v.dtype}")
    if v.shape != a.shape:
        raise ValueError(f"{a.path}: the shape is {list(a.shape)}, not {list(v.shape)}")


def _whole(v: _arrays.View, a: ArrayInfo) -> np.ndarray:
    """An array that devices take parts of."""
    _check_array(v, a)
    return _arrays.as_numpy(v)


def _transposition(a: ArrayInfo) -> tuple[int, ...]:
    """The order of dimensions in memory, from the slowest."""
    return tuple(reversed(a.minor_to_major or ()))


def _argument(v: _arrays.View, a: ArrayInfo, donate: bool) -> _arrays.View:
    """The array as the model takes it: itself if it can be."""
    _check_array(v, a)
    laid_out = _arrays.is_row_major(v, a.element_bytes) and a.minor_to_major is None
    if laid_out and v.address % a.alignment == 0 and (a.alias is None or donate and _writable(v)):
        return v
    x = _arrays.as_numpy(v)
    if a.minor_to_major is not None:
        x = x.transpose(_transposition(a))
    copy = _arrays.aligned_empty(x.shape, x.dtype, max(a.alignment, _ALIGNMENT))
    copy[...] = x
    return _arrays.view_of_numpy(copy)


_ALIGNMENT = 64  # of new arrays


def _writable(v: _arrays.View) -> bool:
    return isinstance(v.owner, np.ndarray) and v.owner.flags.writeable


def _result(out: Optional[np.ndarray], a: ArrayInfo) -> _arrays.View:
    if out is None:
        shape = tuple(a.shape[d] for d in _transposition(a)) if a.minor_to_major else a.shape
        return _arrays.view_of_numpy(
            _arrays.aligned_empty(shape, _dtypes.dtype(a.dtype), max(a.alignment, _ALIGNMENT))
        )
    if not isinstance(out, np.ndarray) or not out.flags.writeable or not out.flags.c_contiguous or a.minor_to_major:
        raise TypeError(f"{a.path}: it can only be written to a NumPy array that is row-major and not read-only")
    if out.dtype.name != a.dtype or out.shape != a.shape:
        raise ValueError(f"{a.path}: it is {a.dtype}{list(a.shape)}, and out is {out.dtype.name}{list(out.shape)}")
    return _arrays.view_of_numpy(out)


def _donated(argument: _arrays.View, out: Optional[np.ndarray], a: ArrayInfo) -> _arrays.View:
    if out is not None and out is not argument.owner:
        raise ValueError(f"{a.path}: it lies in the donated argument {a.alias}, not in an array of out")
    return argument


def _cut(results: Sequence[np.ndarray], names: Sequence[str], count: int) -> list[np.ndarray]:
    # Behind the results of the function: the size of dimension 1 of `scores` is `scores_size1`.
    cut = list(results[:count])
    for name, size in zip(names[count:], results[count:]):
        base, dimension = re.match(r"(.+)_size(\d+)", name).groups()
        k = names.index(base)
        cut[k] = cut[k][(slice(None),) * int(dimension) + (slice(int(size)),)]
    return cut


def _as_result(v: _arrays.View, a: ArrayInfo) -> np.ndarray:
    x = _arrays.as_numpy(v)
    return x.transpose(np.argsort(_transposition(a))) if a.minor_to_major else x


def models(
    path: str | os.PathLike, *, threads: int | Pool | None = None, weights: str | os.PathLike | None = None
) -> dict[str, Model]:
    """All models of a shared object, by name; arguments as those of ``load``."""
    library = Library(path)
    pool = make_pool(threads)
    folder = pathlib.Path(path).resolve().parent
    opened: dict[str, _Weights] = {}  # entries of one library share them
    out = {}
    for struct in library.models:
        structure = _tree.Structure.read(folder, struct.name.decode(), struct.build.decode())
        of, entry = _abi.entry_of(struct)
        if weights is not None and of not in opened and (struct.weights or entry is None):
            opened[of] = _Weights(library, struct, weights)
        out[struct.name.decode()] = Model(library, struct, pool, structure, opened.get(of) if struct.weights else None)
    if weights is not None and not opened:
        raise KilnError(f"{path}: no entry takes weights from files (weights {{ ... }} of its configuration)")
    return out


def load(
    path: str | os.PathLike,
    name: Optional[str] = None,
    *,
    threads: int | Pool | None = None,
    weights: str | os.PathLike | None = None,
) -> Any:
    """Loads a model of a shared object (``kiln compile --shared``, ``kiln link``, ``Compiled.write``).

    Args:
      path: the shared object.
      name: which of its models, or of its libraries with several entries; needed if it has several.
      threads: how many threads one run may use, the caller's included, or a pool to share; None: as many as the
        process may use processors. Threads start with the first run that can use them.
      weights: a safetensors file with the arguments that the library takes from one; they are no arguments of calls
        then. The file is mapped, and processes share it.

    Returns:
      a ``Model``; of a library with several entries, ``Entries`` of models.

    Raises:
      KilnError: the file cannot be loaded, or has no such model, or one that this package cannot run.
    """
    found = models(path, threads=threads, weights=weights)
    libraries: dict[str, dict[str, Model]] = {}
    for model in found.values():
        if model.entry is not None:
            libraries.setdefault(model.library, {})[model.entry] = model
    alone = [n for n, model in found.items() if model.entry is None]
    if name is None and len(alone) + len(libraries) == 1:
        name = next(iter([*alone, *libraries]))
    if name in found:
        return found[name]
    if name in libraries:
        return Entries(name, libraries[name])
    raise KilnError(f"{path}: it has the models {', '.join(found)}; name one of them")
