"""Device arrays as their libraries describe them: PyTorch tensors, ``__cuda_array_interface__``, DLPack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod
from typing import Any

from ptxdsl.record import dataclass, replace


@dataclass(frozen=True)
class ArrayView:
    """One array argument. dtype: the name that SCALARS has, or the library's where there is none.

    address and nbytes in bytes; ordinal: the device, None where the library does not say; owner: the library's name.
    host: it lies in the host's memory. donated: its library does not know that it is written. kept: what must live
    until the launch has been made. strides in bytes, None for row-major.
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
    donated: bool = False
    kept: Any = None
    strides: tuple[int, ...] | None = None

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.itemsize


_CUDA = 2  # DLPack's number

# the interface's type strings, for libraries whose arrays have no dtype of their own
TYPESTRS = {
    "b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "f2": "float16", "f4": "float32", "f8": "float64",
}  # fmt: skip


class Donated:
    """An array whose library takes it for immutable, handed over to be written (``donate``)."""

    def __init__(self, array: Any) -> None:
        self.array = array


def donate(array: Any) -> Donated:
    """Lets a kernel write into a JAX array: ``kernel[grid, block](ptxdsl.donate(x), n)``.

    JAX takes arrays for immutable and does not know of the launch. So a launch with a donated array waits for the
    kernel to end, and whatever else refers to the same memory (an array that JAX has not copied) sees the change.
    """
    return Donated(array)


def is_tensor_map(value: Any) -> bool:
    """By what it has: the module of its class loads NumPy, which a launch with other arrays does without."""
    return hasattr(type(value), "encode") and hasattr(value, "description")


def leaves(arguments: Iterable[Any]) -> Iterator[Any]:
    """The arguments of a launch, structs as their fields."""
    for value in arguments:
        if isinstance(value, Mapping):
            yield from leaves(value.values())
        elif isinstance(value, tuple | list):
            yield from leaves(value)
        else:
            yield value


def default_stream() -> int:
    return 0


def row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides, in bytes, of an array whose last index runs fastest."""
    strides, step = [], itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def view(value: Any, stream: Callable[[], int] = default_stream) -> ArrayView | None:
    """The array behind a value, or None if the value is no array. Raises TypeError where a library refuses.

    stream: gives the handle of the stream that the kernel will run on, for libraries that wait where they are told.
    """
    kind = type(value)
    if kind is Donated:
        found = view(value.array, stream)
        return None if found is None else replace(found, readonly=False, donated=True)
    if hasattr(kind, "data_ptr") and hasattr(kind, "is_contiguous"):
        return _torch(value)
    if kind.__module__.startswith("jax") and hasattr(kind, "__dlpack__"):
        return _exported(value, stream, immutable=True)
    if hasattr(value, "__cuda_array_interface__"):
        return _interface(value, value.__cuda_array_interface__)
    if hasattr(kind, "__array_interface__") and hasattr(kind, "shape") and getattr(value, "ndim", 0) > 0:
        return ArrayView(0, str(value.dtype), value.itemsize, tuple(value.shape), True, False, None, "numpy", host=True)
    if hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__"):
        return _exported(value, stream, immutable=False)
    return None


def device_of(value: Any) -> int | None:
    """The device that an array, or that of a tensor map, says it lies on, without looking further into it; None where
    it does not say."""
    value = value.array if type(value) is Donated or is_tensor_map(value) else value
    kind = type(value)
    if hasattr(kind, "data_ptr") and hasattr(kind, "get_device"):
        ordinal = value.get_device()
        return ordinal if isinstance(ordinal, int) and ordinal >= 0 else None
    if hasattr(kind, "__dlpack_device__"):
        device_type, ordinal = value.__dlpack_device__()
        return int(ordinal) if device_type == _CUDA else None
    return None


def _exported(value: Any, stream: Callable[[], int], immutable: bool) -> ArrayView:
    from ptxdsl.cuda import dlpack

    found = dlpack.export(value, stream)
    host = found.device_type in (dlpack.CPU, dlpack.CUDA_HOST)
    strides = None if found.strides is None else tuple(step * found.itemsize for step in found.strides)
    return ArrayView(
        found.address,
        found.dtype,
        found.itemsize,
        found.shape,
        _is_contiguous(found.shape, strides, found.itemsize),
        found.readonly or immutable,
        None if host else found.ordinal,
        type(value).__module__.partition(".")[0].removesuffix("lib"),
        host,
        kept=found.capsule,
        strides=strides,
    )


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
        strides=tuple(step * tensor.element_size() for step in tensor.stride()),
    )


def _interface(value: Any, interface: dict[str, Any]) -> ArrayView:
    try:
        address, readonly = interface["data"]
        address = int(address or 0)
        shape = tuple(interface["shape"])
        typestr: str = interface["typestr"]
        itemsize = int(typestr[2:])
    except (KeyError, TypeError, ValueError) as problem:
        raise TypeError(f"its __cuda_array_interface__ is damaged: {problem!r}") from None
    named = getattr(value, "dtype", None)
    dtype = str(named) if named is not None else TYPESTRS.get(typestr[1:], typestr)
    if typestr[0] == ">":
        raise TypeError(f"its elements are big-endian ({typestr})")
    if interface.get("mask") is not None:
        raise TypeError("it is a masked array")
    owner = type(value).__module__.partition(".")[0]
    ordinal = getattr(getattr(value, "device", None), "id", None) if owner == "cupy" else None
    strides = interface.get("strides")
    return ArrayView(
        address,
        dtype,
        itemsize,
        shape,
        _is_contiguous(shape, strides, itemsize),
        bool(readonly),
        ordinal,
        owner,
        kept=interface,
        strides=None if strides is None else tuple(strides),
    )


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
