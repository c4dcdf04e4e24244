"""Programs that are partitioned among devices: whole arrays are cut and joined, and the devices are threads."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Optional

import numpy as np

from kiln import _abi
from kiln._errors import KilnError

_COMMUNICATION = 4  # KILN_COMMUNICATION: another device failed


@dataclasses.dataclass(frozen=True)
class Tiling:
    """What the arrays of devices are parts of (kiln_tiling).

    Attributes:
      whole, part: extents.
      tiles: along each dimension; all 1 where every device holds all of it.
      of_partition: the tile that each holds, in row-major order of tiles.
    """

    whole: tuple[int, ...]
    part: tuple[int, ...]
    tiles: tuple[int, ...]
    of_partition: tuple[int, ...]

    def _place(self, device: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """What of the whole array a device has, and where in its part: the rest is padding."""
        tile = np.unravel_index(self.of_partition[device], self.tiles) if self.tiles else ()
        whole, part = [], []
        for k, size, extent in zip(tile, self.part, self.whole):
            first = min(int(k) * size, extent)
            last = min(first + size, extent)
            whole.append(slice(first, last))
            part.append(slice(0, last - first))
        return tuple(whole), tuple(part)

    def cut(self, x: np.ndarray, device: int) -> np.ndarray:
        """The part of a device; the array's own memory where nothing has to be filled."""
        whole, part = self._place(device)
        inside = x[(*whole, ...)]
        if inside.shape == self.part:
            return inside
        out = np.zeros(self.part, x.dtype)
        out[part] = inside
        return out

    def join(self, x: np.ndarray, device: int, into: np.ndarray) -> None:
        """Copies the part of a device to its place."""
        whole, part = self._place(device)
        into[(*whole, ...)] = x[(*part, ...)]


def tiling_of(a: _abi.Array) -> Optional[Tiling]:
    """None unless the program is partitioned."""
    if not a.tiling:
        return None
    t = a.tiling.contents
    return Tiling(
        whole=tuple(t.whole_extents[: a.rank]),
        part=tuple(a.extents[: a.rank]),
        tiles=tuple(t.tiles[: a.rank]),
        of_partition=tuple(t.tile_of_partition[: t.partitions]),
    )


def check(name: str, devices: int, tilings: Sequence[Optional[Tiling]]) -> None:
    """Raises KilnError for a program whose devices have arrays of their own."""
    if devices == 1:
        raise KilnError(f"{name} exchanges arrays with the host program (infeed, outfeed), which Python cannot")
    if any(t is None or len(t.of_partition) != devices for t in tilings):
        raise KilnError(
            f"{name} is a program of {devices} devices that each have arrays of their own (replicas), which cannot be "
            "run from Python"
        )


def run(m: _abi.ModelStruct, calls: Sequence[_abi.Call], start: Callable[[_abi.Call], int]) -> int:
    """Runs the calls at the same time, a thread for each device; returns the first status that is an error of its own.

    Interrupted, or where a thread cannot be had, it ends the runs that wait for others and raises.
    """
    functions = m.world.contents
    world = functions.create(len(calls))
    if not world:
        raise KilnError(f"{m.name.decode()}: devices as threads cannot be had")
    statuses = [0] * len(calls)

    def device(k: int) -> None:
        statuses[k] = start(calls[k])

    threads = [threading.Thread(target=device, args=(k,)) for k in range(len(calls))]
    started: list[threading.Thread] = []
    try:
        for k, call in enumerate(calls):
            call.comm = functions.comm(world, k)
        for thread in threads:
            thread.start()
            started.append(thread)
        for thread in threads:
            thread.join()
    except BaseException:
        functions.abort(world)
        raise
    finally:
        for thread in started:
            thread.join()
        functions.destroy(world)
    failed = [status for status in statuses if status != 0]
    return next((status for status in failed if status != _COMMUNICATION), failed[0] if failed else 0)
