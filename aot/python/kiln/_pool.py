"""Threads that runs share."""

from __future__ import annotations

import os
import weakref
from typing import Optional

from kiln import _abi
from kiln._errors import KilnError
from kiln._library import Library


class Pool:
    """Threads that help runs; any number of models and runs may share one.

    Args:
      threads: how many work at once, the calling one included.
    """

    def __init__(self, threads: int):
        if threads < 1:
            raise ValueError("a pool has at least one thread")
        self.threads = threads
        self._address: Optional[int] = None
        self._library: Optional[Library] = None

    def _of(self, library: Library, m: _abi.ModelStruct) -> Optional[int]:
        # The first model that can makes the threads; they belong to its library.
        if self.threads == 1 or not m.pool_create:
            return self._address
        if self._address is None:
            self._address = m.pool_create(self.threads)
            if not self._address:
                raise KilnError(f"a pool of {self.threads} threads cannot be had")
            self._library = library
            weakref.finalize(self, _destroy_pool, m.pool_destroy, self._address, library)
        return self._address


def _destroy_pool(destroy, address: int, library: Library) -> None:
    destroy(address)
    del library  # which had to stay open so long


def make_pool(threads: int | Pool | None) -> Pool:
    if isinstance(threads, Pool):
        return threads
    return Pool(len(os.sched_getaffinity(0)) if threads is None else threads)
