"""kiln.h and types.h for ctypes.

Every library has the fields of version 1 of ``kiln_model``; ``entry_of`` reads those of version 2.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Optional

ABI_VERSION = 4  # KILN_ABI_VERSION


class Arena(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_size_t)]


class Call(ctypes.Structure):
    """kiln_call."""

    _fields_ = [
        ("batch", c_int64),
        ("arguments", c_void_p),
        ("results", c_void_p),
        ("arena", Arena),
        ("slow_arena", Arena),
        ("pool", c_void_p),
        ("comm", c_void_p),
    ]


class Tiling(ctypes.Structure):
    """kiln_tiling."""

    _fields_ = [
        ("whole_extents", POINTER(c_int64)),
        ("tiles", POINTER(c_int64)),
        ("partitions", c_int64),
        ("tile_of_partition", POINTER(c_int64)),
    ]


class Array(ctypes.Structure):
    """kiln_array."""

    _fields_ = [
        ("name", c_char_p),
        ("path", c_char_p),
        ("type", c_int32),
        ("rank", c_int32),
        ("extents", POINTER(c_int64)),
        ("minor_to_major", POINTER(c_int64)),
        ("element_bytes", c_int64),
        ("bytes", c_int64),
        ("alignment", c_int64),
        ("alias", c_int64),
        ("low", c_int64),
        ("high", c_int64),
        ("tiling", POINTER(Tiling)),
        ("weight", c_int64),
    ]


class Variant(ctypes.Structure):
    """kiln_variant."""

    _fields_ = [("batch", c_int64), ("arena_bytes", c_int64), ("arguments", c_void_p), ("results", c_void_p)]


class World(ctypes.Structure):
    """kiln_world_functions."""

    _fields_ = [
        ("struct_bytes", c_uint32),
        ("reserved", c_uint32),
        ("create", CFUNCTYPE(c_void_p, c_int64)),
        ("comm", CFUNCTYPE(c_void_p, c_void_p, c_int64)),
        ("set_timeout", c_void_p),
        ("abort", CFUNCTYPE(None, c_void_p)),
        ("reset", c_void_p),
        ("destroy", CFUNCTYPE(None, c_void_p)),
    ]


class Weights(ctypes.Structure):
    """kiln_weights_functions."""

    _fields_ = [
        ("struct_bytes", c_uint32),
        ("reserved", c_uint32),
        ("open", CFUNCTYPE(c_int32, POINTER(c_void_p), c_char_p, c_char_p, c_size_t)),
        ("open_memory", c_void_p),
        ("open_source", c_void_p),
        ("verify", c_void_p),
        ("swap", c_void_p),
        ("close", CFUNCTYPE(None, c_void_p)),
        ("run", CFUNCTYPE(c_int32, POINTER(Call), c_void_p)),
    ]


class ModelStruct(ctypes.Structure):
    """kiln_model."""

    _fields_ = [
        ("struct_bytes", c_uint32),
        ("version", c_uint32),
        ("abi_version", c_uint32),
        ("variant_bytes", c_uint32),
        ("array_bytes", c_uint32),
        ("arena_alignment", c_uint32),
        ("name", c_char_p),
        ("kiln_version", c_char_p),
        ("build", c_char_p),
        ("arguments", c_int64),
        ("results", c_int64),
        ("variants", c_int64),
        ("variant", c_void_p),
        ("cpu_levels", POINTER(c_char_p)),
        ("gpu_targets", POINTER(c_char_p)),
        ("callbacks", POINTER(c_char_p)),
        ("arena_bytes", c_int64),
        ("slow_arena_bytes", c_int64),
        ("gpu_arena_bytes", c_int64),
        ("constant_bytes", c_int64),
        ("stack_bytes", c_int64),
        ("threads", c_int64),
        ("devices", c_int64),
        ("communicates", c_int64),
        ("run", CFUNCTYPE(c_int32, POINTER(Call))),
        ("status_text", CFUNCTYPE(c_char_p, c_int32)),
        ("cpu_level", CFUNCTYPE(c_char_p)),
        ("pool_create", CFUNCTYPE(c_void_p, c_int)),
        ("pool_destroy", CFUNCTYPE(None, c_void_p)),
        ("world", POINTER(World)),
        ("gpu", c_void_p),
        ("weights", POINTER(Weights)),
        # Since version 2.
        ("library", c_char_p),
        ("entry", c_char_p),
    ]


def entry_of(m: ModelStruct) -> tuple[str, Optional[str]]:
    """The library that a model belongs to, and what it is called there; None if it is all of it."""
    if m.struct_bytes < ModelStruct.entry.offset + ModelStruct.entry.size or m.entry is None:
        return m.name.decode(), None
    return m.library.decode(), m.entry.decode()


class ModelList(ctypes.Structure):
    """kiln_model_list, which shared objects export as kiln_models."""

    _fields_ = [("struct_bytes", c_uint32), ("count", c_uint32), ("models", POINTER(POINTER(ModelStruct)))]


def texts(table) -> list[str]:
    """A list of texts that ends with NULL."""
    out: list[str] = []
    while table[len(out)] is not None:
        out.append(table[len(out)].decode())
    return out
