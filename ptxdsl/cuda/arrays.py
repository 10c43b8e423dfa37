"""Device arrays as their libraries describe them: PyTorch tensors and everything with ``__cuda_array_interface__``."""

from __future__ import annotations

from math import prod
from typing import Any

from ptxdsl.record import dataclass


@dataclass(frozen=True)
class ArrayView:
    """One array argument. dtype: the name that SCALARS has, or the library's where there is none.

    address and nbytes in bytes; ordinal: the device, None where the library does not say; owner: the library's name.
    """

    address: int
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    contiguous: bool
    readonly: bool
    ordinal: int | None
    owner: str
    host: bool = False

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.itemsize


# the interface's type strings, for libraries whose arrays have no dtype of their own
TYPESTRS = {
    "b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "f2": "float16", "f4": "float32", "f8": "float64",
}  # fmt: skip


def view(value: Any) -> ArrayView | None:
    """The array behind a value, or None if the value is no array. Raises TypeError where a library refuses."""
    kind = type(value)
    if hasattr(kind, "data_ptr") and hasattr(kind, "is_contiguous"):
        return _torch(value)
    if hasattr(value, "__cuda_array_interface__"):
        return _interface(value, value.__cuda_array_interface__)
    if hasattr(kind, "__array_interface__") and hasattr(kind, "shape") and getattr(value, "ndim", 0) > 0:
        return ArrayView(0, str(value.dtype), value.itemsize, tuple(value.shape), True, False, None, "numpy", host=True)
    return None


def _torch(tensor: Any) -> ArrayView:
    # not through __cuda_array_interface__: it lacks bfloat16 and float8, and refuses tensors that want gradients
    host = tensor.device.type != "cuda"
    try:
        address = tensor.data_ptr()
    except RuntimeError as refused:
        raise TypeError(f"the tensor has no memory of its own: {refused}") from None
    return ArrayView(
        address,
        str(tensor.dtype).removeprefix("torch."),
        tensor.element_size(),
        tuple(tensor.shape),
        tensor.is_contiguous(),
        False,
        None if host else tensor.device.index,
        "torch",
        host,
    )


def _interface(value: Any, interface: dict[str, Any]) -> ArrayView:
    address, readonly = interface["data"]
    shape = tuple(interface["shape"])
    typestr: str = interface["typestr"]
    itemsize = int(typestr[2:])
    named = getattr(value, "dtype", None)
    dtype = str(named) if named is not None else TYPESTRS.get(typestr[1:], typestr)
    if typestr[0] == ">":
        raise TypeError(f"its elements are big-endian ({typestr})")
    owner = type(value).__module__.partition(".")[0]
    ordinal = getattr(getattr(value, "device", None), "id", None) if owner == "cupy" else None
    contiguous = _is_contiguous(shape, interface.get("strides"), itemsize)
    return ArrayView(int(address or 0), dtype, itemsize, shape, contiguous, bool(readonly), ordinal, owner)


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int) -> bool:
    """Row-major without gaps; dimensions of length 1 may have any stride."""
    if strides is None or prod(shape) == 0:
        return True
    expected = itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True
