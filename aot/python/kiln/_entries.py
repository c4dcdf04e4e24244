"""Libraries with several entries: a language model's prefill and decode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class Entries(Mapping[str, T], Generic[T]):
    """The functions of a library with several, by name and as attributes: ``lm.decode(word, state)``, ``lm["decode"]``.

    Attributes:
      name: of the library.
    """

    def __init__(self, name: str, entries: Mapping[str, T]):
        self.name = name
        self._entries = dict(entries)

    def __getattr__(self, entry: str) -> T:
        if entry.startswith("_"):  # before __init__, and what copies ask for
            raise AttributeError(entry)
        try:
            return self[entry]
        except KeyError:
            raise AttributeError(f"{self.name} has no entry {entry!r}; it has {', '.join(self)}") from None

    def __getitem__(self, entry: str) -> T:
        return self._entries[entry]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"<kiln.{type(self).__name__} {self.name}: {', '.join(self)}>"
