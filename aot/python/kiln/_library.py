"""Shared objects of models, as they are opened and closed."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import pathlib
import tempfile
import weakref

from kiln import _abi
from kiln._errors import KilnError


class Library:
    """An open shared object; it is closed when the last that refers to it goes."""

    def __init__(self, path: str | os.PathLike):
        real = os.path.realpath(path)
        if not os.path.exists(real):
            raise KilnError(f"{path}: there is no such file")
        # The loader takes a path that it has seen for the file that it has loaded, whatever lies there by now: a link
        # of a new name makes it look.
        with tempfile.TemporaryDirectory(prefix="kiln_load_") as folder:
            link = pathlib.Path(folder) / os.path.basename(real)
            link.symlink_to(real)
            try:
                self._handle = ctypes.CDLL(str(link))
            except OSError as error:
                raise KilnError(f"{path}: cannot be loaded: {error}") from None
        weakref.finalize(self, _ctypes.dlclose, self._handle._handle).atexit = False
        try:
            listed = _abi.ModelList.in_dll(self._handle, "kiln_models")
        except ValueError:
            raise KilnError(f"{path}: no shared object of kiln's (it does not show kiln_models)") from None
        self.models = [listed.models[k].contents for k in range(listed.count)]
