"""``ptxdsl.TensorMap`` on arrays of every library, in host memory for the simulator and on the device for the card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.cuda.arrays import ArrayView, row_major, view
from ptxdsl.cuda.host_arguments import STORAGE, host_memory, not_plain
from ptxdsl.diagnostics import launch_error
from ptxdsl.sim.copies import tensor_map
from ptxdsl.sim.copies.tensor_description import ELEMENT_TYPES

_BY_DTYPE = {name: element.name for element in ELEMENT_TYPES.values() for name in element.numpy}
_BY_DTYPE |= {"bfloat16": "bf16", "float8_e4m3fn": "u8", "float8_e5m2": "u8"}


class TensorMap(tensor_map.TensorMap):
    """A tensor map on an array, to be given to a launch as a kernel's ``TensorMap`` argument.

    array: of PyTorch, CuPy, JAX, Numba or ``ptxdsl.to_device`` for the GPU, of NumPy (or a CPU tensor) for the
    simulator. The map keeps it alive, and says where it lies: it must not be moved. box: the tile's elements in each of
    the array's dimensions. shape and strides (bytes) are the array's unless given; the strides' last entry, of the
    innermost dimension, is the element. All in NumPy's order, outermost first. element_strides: every n-th element
    only. data_type: an element type's name where the array's dtype does not tell it (``bf16`` on uint16, ``tf32``).
    interleave: ``none``, ``16B``, ``32B``. swizzle: ``none``, ``32B``, ``64B``, ``128B``, ``128B_atom_32B``,
    ``128B_atom_32B_flip_8B``, ``128B_atom_64B``. l2_promotion: ``none``, ``64B``, ``128B``, ``256B``. fill: of elements
    outside the tensor, ``zero`` or ``nan``. Raises LaunchError E0920 for what the card's driver would refuse.

    ``data`` has the 128 bytes of a map on the device, None of one on the host. Source: CUDA driver API,
    cuTensorMapEncodeTiled.
    """

    def __init__(
        self,
        array: Any,
        box: Sequence[int],
        element_strides: Sequence[int] | None = None,
        interleave: str = "none",
        swizzle: str = "none",
        l2_promotion: str = "none",
        fill: str = "zero",
        *,
        data_type: str | None = None,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
    ) -> None:
        memory = host_memory(array)
        if memory is not None and (wrong := not_plain(array)) is not None:
            raise launch_error("E0920", f"no tensor map can be made of this array: {wrong[0]}", help=wrong[1])
        found = None if memory is not None else _device_view(array)
        dtype = str(getattr(array, "dtype", None) if found is None else found.dtype).removeprefix("torch.")
        if data_type is None:
            data_type = _BY_DTYPE.get(dtype)
        stand_in: Any = memory
        if found is not None:
            stand_in = _Described(found)
            shape = found.shape if shape is None else shape
            strides = stand_in.strides if strides is None else strides
        self._options: dict[str, Any] = {
            "element_strides": element_strides, "interleave": interleave, "swizzle": swizzle,
            "l2_promotion": l2_promotion, "fill": fill, "data_type": data_type, "shape": shape, "strides": strides,
        }  # fmt: skip
        self._box = box
        super().__init__(stand_in, box, **self._options)
        self.array = array if memory is None else memory
        self.data = None if found is None else self.encode(found.address)

    def on(self, array: npt.NDArray[Any]) -> TensorMap:
        """The same map on another array of the same shape."""
        return TensorMap(array, self._box, **self._options)


class _Described:
    """What the simulator's class asks of an array, of one that NumPy cannot hold."""

    def __init__(self, found: ArrayView) -> None:
        self.shape = found.shape
        self.dtype = _storage(found)
        self.strides = row_major(found.shape, found.itemsize) if found.strides is None else found.strides


def _storage(found: ArrayView) -> np.dtype[Any]:
    try:
        return np.dtype(STORAGE.get(found.dtype, found.dtype))
    except TypeError:
        return np.dtype(f"V{found.itemsize}")


def _device_view(array: Any) -> ArrayView:
    try:
        found = view(array)
    except (TypeError, AttributeError, KeyError) as refused:
        raise launch_error("E0920", f"a tensor map cannot be made of this array: {refused}") from None
    if found is None or found.host:
        kind = type(array).__name__
        raise launch_error(
            "E0920",
            f"a tensor map is made of an array, got {kind}",
            help="give an array of the GPU, or of NumPy for the simulator",
        )
    return found
