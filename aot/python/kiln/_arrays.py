"""Arrays of the caller's, of any framework, as the memory they lie in."""

from __future__ import annotations

import ctypes
import math
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any, NamedTuple, Optional

import numpy as np

from kiln import _dtypes

_CPU, _CUDA_HOST = 1, 3  # DLPack's devices that hold memory of the host


class View(NamedTuple):
    """Memory of an array, valid while ``owner`` lives."""

    address: int
    dtype: str  # NumPy's name
    shape: tuple[int, ...]
    strides: Optional[tuple[int, ...]]  # in bytes; None: row major
    owner: Any


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


_pointer_of_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of_capsule.restype = c_void_p
_pointer_of_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]


def view_of_numpy(array: np.ndarray) -> View:
    """The memory of a NumPy array."""
    return View(address_of(array), _dtypes.numpy_name(array.dtype), array.shape, array.strides, array)


def address_of(array: np.ndarray) -> int:
    """Where an array's first element lies (array.ctypes.data, in less time)."""
    return array.__array_interface__["data"][0]


def _view_of_dlpack(x: Any) -> Optional[View]:
    """The memory of an object with ``__dlpack__``; None if it lies on no host or is not given.

    The capsule is only borrowed: it is never consumed, so it frees what it holds when it goes.
    """
    try:
        if x.__dlpack_device__()[0] not in (_CPU, _CUDA_HOST):
            return None
        capsule = x.__dlpack__()
        t = ctypes.cast(_pointer_of_capsule(capsule, b"dltensor"), POINTER(_DLTensor)).contents
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return None
    shape = tuple(t.shape[k] for k in range(t.ndim))
    strides = tuple(t.strides[k] * t.bits // 8 for k in range(t.ndim)) if t.strides else None
    return View((t.data or 0) + t.byte_offset, _dtypes.name_of_dlpack(t.code, t.bits, t.lanes), shape, strides, capsule)


def view(x: Any, wanted: str) -> View:
    """The memory of anything that is an array: NumPy's without a copy, others by DLPack without a copy if they lie on
    the host, and else as NumPy makes of them. Numbers and lists become arrays of type ``wanted``."""
    if isinstance(x, np.ndarray):
        return view_of_numpy(x)
    if hasattr(x, "__dlpack__"):
        detach = getattr(x, "detach", None)  # of a tensor of torch's that wants a gradient
        found = _view_of_dlpack(detach() if detach else x)
        if found is not None:
            return found
    if hasattr(x, "__array__") or isinstance(x, np.generic):
        return view_of_numpy(np.asarray(x))
    return view_of_numpy(np.asarray(x, dtype=_dtypes.dtype(wanted)))


def is_row_major(v: View, element_bytes: int) -> bool:
    """Whether elements lie one behind the other in row-major order."""
    if v.strides is None or 0 in v.shape:
        return True
    expected = element_bytes
    for extent, stride in zip(reversed(v.shape), reversed(v.strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def as_numpy(v: View) -> np.ndarray:
    """A view as a NumPy array, without a copy."""
    if isinstance(v.owner, np.ndarray):
        return v.owner
    d = _dtypes.dtype(v.dtype)
    if 0 in v.shape:
        return np.empty(v.shape, d)
    strides = v.strides
    if strides is None:
        strides, step = (), d.itemsize
        for extent in reversed(v.shape):
            strides = (step, *strides)
            step *= extent
    last = sum((extent - 1) * stride for extent, stride in zip(v.shape, strides)) + d.itemsize
    memory = (ctypes.c_ubyte * last).from_address(v.address)
    setattr(memory, "owner", v.owner)  # the array keeps `memory`, which keeps this
    return np.ndarray(v.shape, d, memoryview(memory), strides=strides)


def aligned_empty(shape: tuple[int, ...], d: np.dtype, alignment: int) -> np.ndarray:
    """A new row-major array at an address that is a multiple of ``alignment``."""
    size = math.prod(shape) * d.itemsize
    raw = np.empty(size + alignment, np.uint8)
    skip = -address_of(raw) % alignment
    return np.ndarray(shape, d, raw, skip)
