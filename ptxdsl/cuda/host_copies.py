"""Copies of device arrays in host memory, for a replay: arrays that share memory share it in the copies too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.cuda.arrays import ArrayView, view
from ptxdsl.cuda.driver_interface import Driver
from ptxdsl.cuda.host_arguments import STORAGE


class Copies:
    """Of the arrays of one launch, made when it is constructed. Raises DriverError."""

    def __init__(self, driver: Driver, arrays: Sequence[ArrayView]) -> None:
        self._regions: list[tuple[int, npt.NDArray[np.uint8]]] = []
        for start, end in _merged(sorted((a.address, a.address + a.nbytes) for a in arrays if a.nbytes)):
            copy = np.empty(end - start, np.uint8)
            driver.copy_out(copy.ctypes.data, start, copy.nbytes)
            self._regions.append((start, copy))

    def of(self, value: Any) -> npt.NDArray[Any]:
        """The copy of an array, with its type (of the same bits where NumPy lacks it) and shape."""
        array = view(value)
        assert array is not None
        return self._array(array)

    def _array(self, array: ArrayView) -> npt.NDArray[Any]:
        dtype = np.dtype(STORAGE.get(array.dtype, array.dtype if _known(array.dtype) else f"V{array.itemsize}"))
        if not array.nbytes:
            return np.empty(array.shape, dtype)
        for start, copy in self._regions:
            offset = array.address - start
            if offset >= 0 and offset + array.nbytes <= copy.nbytes:
                return copy[offset : offset + array.nbytes].view(dtype).reshape(array.shape)
        raise AssertionError(f"no copy of {array}")

    def map_of(self, value: Any) -> Any:
        """A tensor map on the copy of its array; None for one that is given as bytes."""
        on = getattr(value, "on", None)
        array = None if on is None else view(value.array)
        if on is None or array is None or not array.contiguous:
            return None
        return on(self._array(array))


def _merged(intervals: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted intervals, those that overlap as one."""
    found: list[tuple[int, int]] = []
    for start, end in intervals:
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _known(dtype: str) -> bool:
    try:
        np.dtype(dtype)
    except TypeError:
        return False
    return True
