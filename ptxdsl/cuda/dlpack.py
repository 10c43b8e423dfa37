"""Arrays through DLPack, for libraries whose arrays have no other door (JAX).

The capsule is only looked into, never consumed: it goes back to its library when it is dropped. Source: DLPack 1.1
(dlpack.h) and the Python array API standard, ``__dlpack__``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

from ptxdsl.record import dataclass

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_NAMES = {CPU: "CPU", CUDA: "CUDA", CUDA_HOST: "pinned host", CUDA_MANAGED: "managed", 10: "ROCm", 8: "Metal"}
_READ_ONLY = 1
_LEGACY_STREAM = 1  # DLPack's number for the default stream; 0 is not allowed

# DLDataTypeCode: what stands before the bits in our names of the types.
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_FLOAT8 = {10: "float8_e4m3fn", 12: "float8_e5m2"}


class _Tensor(ctypes.Structure):
    _fields_ = (
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
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    )


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), c_void_p


@dataclass(frozen=True)
class Exported:
    """strides in elements, None for row-major; capsule: must live until the launch has been made."""

    address: int
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    readonly: bool
    device_type: int
    ordinal: int
    capsule: Any


def export(value: Any, stream: Callable[[], int]) -> Exported:
    """What an object with ``__dlpack__`` says of itself, ready for work on a stream (its handle).

    Raises TypeError where it cannot be used.
    """
    device_type, _ = value.__dlpack_device__()
    keywords: dict[str, Any] = {"stream": stream() or _LEGACY_STREAM} if device_type in (CUDA, CUDA_MANAGED) else {}
    try:
        try:
            capsule = value.__dlpack__(max_version=(1, 1), **keywords)
        except TypeError:  # of before DLPack 1.0
            capsule = value.__dlpack__(**keywords)
    except (BufferError, ValueError, RuntimeError) as refused:
        raise TypeError(f"its library does not export it: {refused}") from None
    readonly = False
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise TypeError(f"its library speaks DLPack {versioned.major}.{versioned.minor}")
        tensor, readonly = versioned.tensor, bool(versioned.flags & _READ_ONLY)
    elif _is_valid(capsule, b"dltensor"):
        tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    else:
        raise TypeError("its __dlpack__ gives no DLPack capsule")
    if tensor.device_type not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
        where = _NAMES.get(tensor.device_type, f"device type {tensor.device_type}")
        raise TypeError(f"it lies in memory of another kind ({where})")
    if tensor.lanes != 1 or tensor.bits % 8:
        raise TypeError(f"its elements have {tensor.bits} bits in {tensor.lanes} lanes")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    return Exported(
        (tensor.data or 0) + tensor.byte_offset,
        _dtype(tensor.code, tensor.bits),
        tensor.bits // 8,
        shape,
        tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None,
        readonly,
        tensor.device_type,
        tensor.device_id,
        capsule,
    )


def _dtype(code: int, bits: int) -> str:
    if code in _FLOAT8:
        return _FLOAT8[code]
    kind = _KINDS.get(code, f"DLPack type {code} of ")
    return "bool" if kind == "bool" else f"{kind}{bits}"
