"""Arguments of a simulated launch: the same checks as for the card, with arrays in host memory, used in place."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.cuda.arguments import Packer
from ptxdsl.cuda.arrays import ArrayView
from ptxdsl.signature import PointerParam

# Element types that NumPy has no dtype for; arrays of their bits are taken for them.
STORAGE = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


class HostPacker(Packer):
    """``bind`` gives the simulator one value a parameter: an array, or the bytes of a scalar or tensor map."""

    wanted_arrays = "give a NumPy array or a CPU tensor"

    def bind(self, arguments: Sequence[Any]) -> list[npt.NDArray[Any] | bytes | Any]:
        """Raises LaunchError with one diagnostic for every argument that is wrong."""
        return self.leaves(arguments)[0]

    def _pointer(
        self, param: PointerParam, path: str, value: Any, stream: Callable[[], int]
    ) -> tuple[ArrayView, npt.NDArray[Any]]:
        memory = host_memory(value)
        if memory is not None and (wrong := not_plain(value)) is not None:
            raise self._error("E0904", path, f"cannot be used as an array: {wrong[0]}", wrong[1])
        if memory is None:
            array = self._array(param, path, value, stream)
            where = f"is in device memory ({array.owner}, {array.dtype}), out of the simulator's reach"
            raise self._error("E0905", path, where, "give a NumPy array or a CPU tensor, or launch with target='gpu'")
        named = str(value.dtype).removeprefix("torch.")
        array = ArrayView(
            memory.ctypes.data, named, memory.itemsize, memory.shape,
            memory.flags.c_contiguous, not memory.flags.writeable, None, "numpy", host=True,
        )  # fmt: skip
        if memory.dtype.name != STORAGE.get(param.dtype) or named not in (param.dtype, memory.dtype.name):
            self._check_elements(param, path, array)
        self._check_memory(param, path, array)
        return array, memory

    def _tensor_map(self, path: str, value: Any) -> Any:
        from ptxdsl.sim.copies.tensor_map import TensorMap

        if not isinstance(value, TensorMap):
            return super()._tensor_map(path, value)
        if getattr(value, "data", None) is not None:
            where = "is a TensorMap of an array in device memory, out of the simulator's reach"
            raise self._error("E0905", path, where, "make it of a NumPy array, or launch with target='gpu'")
        return value

    def _mapped(self, value: Any, stream: Callable[[], int]) -> None:
        return None


def host_memory(value: Any) -> npt.NDArray[Any] | None:
    """The array behind a NumPy array or a CPU tensor, sharing its memory; None for what is neither."""
    if isinstance(value, np.ndarray):
        return value.view(STORAGE.get(value.dtype.name) or value.dtype)
    kind = type(value)
    if hasattr(kind, "data_ptr") and hasattr(kind, "is_contiguous") and value.device.type == "cpu":
        return _tensor_memory(value)
    return None


def not_plain(value: Any) -> tuple[str, str] | None:
    """Why the bytes of an array of NumPy are not its elements, and what to do; None where they are."""
    masked = sys.modules.get("numpy.ma")  # imported by who makes such arrays
    if masked is not None and isinstance(value, masked.MaskedArray):
        return "it is a masked array", "fill it: a.filled(…)"
    if isinstance(value, np.ndarray) and not value.dtype.isnative:
        return f"its elements are big-endian ({value.dtype.str})", "convert it: a.astype(a.dtype.newbyteorder('='))"
    return None


def _tensor_memory(tensor: Any) -> npt.NDArray[Any]:
    # not through tensor.numpy(): it lacks bfloat16 and float8, and refuses tensors that want gradients
    dtype = np.dtype(STORAGE.get(name := str(tensor.dtype).removeprefix("torch."), name))
    strides = tuple(step * dtype.itemsize for step in tensor.stride())
    last = sum((length - 1) * step for length, step in zip(tensor.shape, strides, strict=True))
    size = last + dtype.itemsize if tensor.numel() else 0
    buffer: Any = (ctypes.c_char * size).from_address(tensor.data_ptr()) if size else b""
    return np.lib.stride_tricks.as_strided(np.frombuffer(buffer, dtype), tuple(tensor.shape), strides)
