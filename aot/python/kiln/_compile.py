"""kiln.compile: from a framework's program to a library that can be called."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

from kiln import _tool
from kiln._entries import Entries
from kiln._errors import CompileError
from kiln._frontends import program_of
from kiln._model import Model, load
from kiln._pool import Pool
from kiln._program import Program


class _Files:
    """The files of a compiled library.

    Attributes:
      name: of the library.
      library, header, c_header, shared_object: paths of its files.
      manifest: what the compiler says of it, as a dict.
      notes: what the compiler wanted to be known.
    """

    def __init__(self, name: str, folder: pathlib.Path, notes: Sequence[str]):
        self.name = name
        self.notes = tuple(notes)
        self._folder = folder

    @property
    def library(self) -> str:
        return str(self._folder / f"lib{self.name}.a")

    @property
    def shared_object(self) -> str:
        return str(self._folder / f"lib{self.name}.so")

    @property
    def header(self) -> str:
        return str(self._folder / f"{self.name}.h")

    @property
    def c_header(self) -> str:
        return str(self._folder / f"{self.name}_c.h")

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self._folder / f"{self.name}.manifest.json").read_text())

    def write(self, folder: str | os.PathLike) -> None:
        """Writes the library, its headers, manifest and shared object, and the structure of its arguments and results
        (NAME.tree.json, which ``kiln.load`` reads) where it has one, into a folder, which is made if it is missing."""
        to = pathlib.Path(folder)
        to.mkdir(parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            if path.is_file() and to.resolve() != self._folder.resolve():
                shutil.copy2(path, to)

    def __repr__(self) -> str:
        return f"<kiln.{type(self).__name__} {self.name} in {self._folder}>"


class Compiled(_Files):
    """A compiled program: its files, and itself as a function.

    Called, it takes what the function took (NumPy arrays, objects with ``__dlpack__``, numbers, in the function's
    structure) and gives its results as NumPy arrays in their structure.

    Attributes:
      name: of the library.
      library, header, c_header, shared_object: paths of its files.
      manifest: what the compiler says of it, as a dict.
      notes: what the compiler wanted to be known.
      model: the shared object, loaded.
    """

    def __init__(self, name: str, folder: pathlib.Path, program: Program, notes: Sequence[str], threads):
        super().__init__(name, folder, notes)
        self._program, self._threads = program, threads
        self._model: Optional[Model] = None

    @property
    def model(self) -> Model:
        """The shared object, loaded."""
        if self._model is None:
            self._model = load(self.shared_object, self.name, threads=self._threads)
        return self._model

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        calls = self._program.calls
        if calls is None:
            return self.model(*args, **kwargs)
        return self.model.call(calls, args, kwargs)


class CompiledEntries(_Files, Entries[Any]):
    """Several functions compiled into one library: its files, and the functions by name and as attributes.

    Attributes: those of ``Compiled``, and ``model``: the entries of the shared object, loaded.
    """

    def __init__(
        self, name: str, folder: pathlib.Path, programs: Mapping[str, Program], notes: Sequence[str], threads
    ):
        _Files.__init__(self, name, folder, notes)
        Entries.__init__(self, name, programs)
        self._threads = threads
        self._model: Optional[Entries[Model]] = None
        # A name that means something in a header is another one there.
        self._in_library = dict(zip(programs, (e["name"] for e in self.manifest["entries"])))

    @property
    def model(self) -> Entries[Model]:
        if self._model is None:
            self._model = load(self.shared_object, self.name, threads=self._threads)
        return self._model

    def __getitem__(self, entry: str) -> Callable[..., Any]:
        return functools.partial(self._call, self._entries[entry], self._in_library[entry])

    def _call(self, program: Program, entry: str, *args: Any, **kwargs: Any) -> Any:
        calls, model = program.calls, self.model[entry]
        if calls is None:
            return model(*args, **kwargs)
        return model.call(calls, args, kwargs)


def _text_list(field: str, values: Sequence[str]) -> str:
    return "".join(f"{field}: {json.dumps(value)}\n" for value in values)


def config_text(config: str | os.PathLike | None, program: Program) -> str:
    """The text proto of a configuration, with the program's names unless it has names of its own."""
    if config is None:
        text = ""
    elif isinstance(config, os.PathLike):
        text = pathlib.Path(config).read_text()
    else:
        text = config
    for field, names in (("argument_names", program.argument_names), ("result_names", program.result_names)):
        if names and field not in text:
            text = f"{text.rstrip()}\n{_text_list(field, names)}"
    return text


def compile(
    program: Any,
    *args: Any,
    kwargs: Optional[Mapping[str, Any]] = None,
    name: Optional[str] = None,
    config: str | os.PathLike | None = None,
    out: str | os.PathLike | None = None,
    targets: Sequence[str] = (),
    batch_sizes: Sequence[int] = (),
    threads: int | Pool | None = None,
) -> Any:
    """Compiles a program ahead of time.

    Args:
      program: a function of JAX's (jitted or not), a ``jax.export.Exported``, a ``tf.function``, a ``torch.nn.Module``,
        a ``torch.export.ExportedProgram``, or the path or the bytes of a StableHLO or HLO module. Or a mapping of names to
        several of these, which become entries of one library: they share constants, memory and files of weights.
      *args: arguments like those that it will be called with; none where the program says what it takes. For several
        programs, a mapping of names to tuples of arguments.
      kwargs: keyword arguments, likewise.
      name: of the library, its C++ class and its C functions; by default the function's.
      config: a configuration (config.proto): its text, or a ``pathlib.Path`` of a file.
      out: the folder for the files; by default a temporary one, which goes with the result.
      targets: as ``kiln compile --target``: "v3", "native", "sm_90", ...; by default all x86-64 levels.
      batch_sizes: a variant for each of these sizes of an unbounded dimension.
      threads: how many threads a call may use (see ``load``).

    Returns:
      ``Compiled``; for several programs, ``CompiledEntries``.

    Raises:
      CompileError: kiln refused the program; the text says where and why.
      TypeError: ``program`` is nothing that can be compiled.
    """
    several = isinstance(program, Mapping)
    if several:
        programs = _programs_of(program, args, kwargs)
    else:
        programs = {"": program_of(program, args, kwargs or {})}
    if out is None:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln_"))
    else:
        folder = pathlib.Path(out)
    options = ["--shared"]
    for target in targets:
        options += ["--target", target]
    for size in batch_sizes:
        options += ["--batch", str(size)]
    # Of several, names are the modules' own.
    text = config_text(config, Program(b"") if several else programs[""])
    compiled: Compiled | CompiledEntries
    try:
        chosen, notes = _run_compiler(programs, name, text, folder, options)
        if several:
            compiled = CompiledEntries(chosen, folder, programs, notes, threads)
        else:
            compiled = Compiled(chosen, folder, programs[""], notes, threads)
    except BaseException:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if out is None:
        weakref.finalize(compiled, shutil.rmtree, folder, ignore_errors=True)
    symbols = compiled.manifest["symbols"]
    entries = [f"_{e['name']}" for e in compiled.manifest["entries"]] if several else [""]
    for suffix, made in zip(entries, programs.values()):
        tree = folder / f"{chosen}{suffix}.tree.json"
        if made.structure:
            tree.write_text(made.structure.text(f"{symbols}{suffix}"))
        else:
            tree.unlink(missing_ok=True)
    return compiled


def _programs_of(
    programs: Mapping[str, Any], args: Sequence[Any], kwargs: Optional[Mapping[str, Any]]
) -> dict[str, Program]:
    """What the entries of a library are made of."""
    if kwargs:
        raise TypeError("kwargs are of one program, and several are given")
    if len(programs) < 2:
        raise TypeError("a mapping has at least two programs; one is compiled by itself")
    arguments = args[0] if args else {}
    if len(args) > 1 or not isinstance(arguments, Mapping):
        raise TypeError("for several programs, arguments are one mapping of their names to tuples of arguments")
    if unknown := arguments.keys() - programs.keys():
        raise TypeError(f"arguments for {', '.join(sorted(unknown))}, which is none of {', '.join(programs)}")
    return {entry: program_of(program, arguments.get(entry, ()), {}) for entry, program in programs.items()}


def _run_compiler(
    programs: Mapping[str, Program], name: Optional[str], config: str, folder: pathlib.Path, options: Sequence[str]
) -> tuple[str, list[str]]:
    """Writes the library's files; returns its name, and what the compiler wanted to be known."""
    chosen = name or (programs[""].name if "" in programs else "model")
    with tempfile.TemporaryDirectory(prefix="kiln_module_") as scratch:
        modules = []
        for entry, made in programs.items():
            module = pathlib.Path(scratch) / f"{entry or made.name}.mlir"
            module.write_bytes(made.module)
            modules.append(f"--entry={entry}={module}" if entry else str(module))
        options = [*options, "--out", str(folder)]
        if config:
            path = pathlib.Path(scratch) / f"{chosen}.config"
            path.write_text(config)
            options += ["--config", str(path)]
        try:
            _, said = _tool.run_tool(["compile", *modules, "--name", chosen, *options])
        except CompileError as error:
            # A function's name need not be one that C and C++ can have.
            if name or "cannot name a library" not in str(error):
                raise
            chosen = f"model_{chosen}"
            _, said = _tool.run_tool(["compile", *modules, "--name", chosen, *options])
    return chosen, [line.removeprefix("note: ") for line in said.splitlines() if line.startswith("note: ")]
