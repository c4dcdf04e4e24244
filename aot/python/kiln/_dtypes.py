"""Element types: kiln's names and numbers, NumPy's, and those of ml_dtypes for what NumPy lacks."""

from __future__ import annotations

import functools

import numpy as np

from kiln._errors import KilnError

# kiln's number (XLA's), its name, NumPy's or ml_dtypes' name, DLPack's (code, bits).
_TABLE = (
    (1, "pred", "bool", (6, 8)),
    (26, "s2", "int2", None),
    (21, "s4", "int4", None),
    (2, "s8", "int8", (0, 8)),
    (3, "s16", "int16", (0, 16)),
    (4, "s32", "int32", (0, 32)),
    (5, "s64", "int64", (0, 64)),
    (27, "u2", "uint2", None),
    (22, "u4", "uint4", None),
    (6, "u8", "uint8", (1, 8)),
    (7, "u16", "uint16", (1, 16)),
    (8, "u32", "uint32", (1, 32)),
    (9, "u64", "uint64", (1, 64)),
    (32, "f4e2m1fn", "float4_e2m1fn", None),
    (35, "f6e2m3fn", "float6_e2m3fn", None),
    (36, "f6e3m2fn", "float6_e3m2fn", None),
    (29, "f8e3m4", "float8_e3m4", (7, 8)),
    (28, "f8e4m3", "float8_e4m3", (8, 8)),
    (20, "f8e4m3fn", "float8_e4m3fn", (10, 8)),
    (23, "f8e4m3b11fnuz", "float8_e4m3b11fnuz", (9, 8)),
    (25, "f8e4m3fnuz", "float8_e4m3fnuz", (11, 8)),
    (19, "f8e5m2", "float8_e5m2", (12, 8)),
    (24, "f8e5m2fnuz", "float8_e5m2fnuz", (13, 8)),
    (33, "f8e8m0fnu", "float8_e8m0fnu", (14, 8)),
    (10, "f16", "float16", (2, 16)),
    (16, "bf16", "bfloat16", (4, 16)),
    (11, "f32", "float32", (2, 32)),
    (12, "f64", "float64", (2, 64)),
    (15, "c64", "complex64", (5, 64)),
    (18, "c128", "complex128", (5, 128)),
)

_NAME_OF_NUMBER = {number: numpy_name for number, _, numpy_name, _ in _TABLE}
_NAME_OF_DLPACK = {dlpack: numpy_name for _, _, numpy_name, dlpack in _TABLE if dlpack}


def name_of(number: int) -> str:
    """The NumPy name of an element type; '?' for one that this package does not know."""
    return _NAME_OF_NUMBER.get(number, "?")


def name_of_dlpack(code: int, bits: int, lanes: int) -> str:
    """The NumPy name of DLPack's type."""
    return _NAME_OF_DLPACK.get((code, bits), f"DLPack type {code} of {bits} bits") if lanes == 1 else f"{lanes} lanes"


@functools.lru_cache(maxsize=None)
def numpy_name(d: np.dtype) -> str:
    """d.name, which NumPy makes anew each time."""
    return d.name


@functools.lru_cache(maxsize=None)
def dtype(name: str) -> np.dtype:
    """The NumPy type of a name, from ml_dtypes where NumPy has none.

    Raises:
      KilnError: ml_dtypes is needed and is not installed.
    """
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError:
        raise KilnError(f"elements of type {name} need the package ml_dtypes: pip install ml_dtypes") from None
    try:
        return np.dtype(getattr(ml_dtypes, name))
    except AttributeError:
        raise KilnError(f"elements of type {name} are known neither to NumPy nor to this ml_dtypes") from None
