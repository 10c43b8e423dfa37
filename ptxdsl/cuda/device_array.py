"""Arrays in device memory without another library: what ``ptxdsl run`` launches with, and ``ptxdsl.to_device``."""

from __future__ import annotations

import sys
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.cuda.driver import CudaDriver, current_driver
from ptxdsl.cuda.errors import DriverError, LaunchError, launch_error
from ptxdsl.cuda.host_arguments import STORAGE, host_memory


class DeviceArray:
    """Row-major elements in the memory of the current device, freed with the object.

    dtype: the kernel language's name (``float32``, ``bfloat16``); shape in elements. Libraries see it through
    ``__cuda_array_interface__``; types that NumPy lacks as unsigned integers of their width.
    """

    def __init__(self, host: npt.NDArray[Any], dtype: str | None = None) -> None:
        """Copies ``host``, whose elements are the storage of ``dtype`` (its own if None). Raises LaunchError."""
        image = np.ascontiguousarray(host)
        self.dtype = sys.intern(dtype or image.dtype.name)
        self.shape = tuple(image.shape) if host.ndim else ()
        self.storage = image.dtype
        self._driver: CudaDriver = current_driver()
        self.ordinal = _guarded(self._driver.context, None)[1].ordinal
        self.address = 0
        if image.nbytes:
            self.address = _guarded(self._driver.allocate, image.nbytes)
            _guarded(self._driver.copy_in, self.address, image.ctypes.data, image.nbytes)

    @property
    def nbytes(self) -> int:
        return int(prod(self.shape) * self.storage.itemsize)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.storage.str, "data": (self.address, False), "version": 3}

    def to_host(self) -> npt.NDArray[Any]:
        """Waits for the device and copies the elements' storage back. Raises LaunchError."""
        image = np.empty(self.shape, self.storage)
        _guarded(self._driver.synchronise)
        if self.nbytes:
            _guarded(self._driver.copy_out, image.ctypes.data, self.address, self.nbytes)
        return image

    def __del__(self) -> None:
        # In a fork the memory is the other process's; a driver that hangs would wait for ever.
        if getattr(self, "address", 0) and self._driver.usable():
            with suppress(Exception):  # the context is gone, and the memory with it
                self._driver.free(self.address)

    def __repr__(self) -> str:
        return f"<ptxdsl array {self.dtype}{list(self.shape)} on the device>"


def to_device(array: Any, dtype: str | None = None) -> DeviceArray:
    """A copy of a NumPy array or a CPU tensor in the memory of the current device, row-major.

    dtype: the kernel language's name of what the bits are (``bfloat16`` for an array of uint16); None is the array's
    own. ``to_host`` brings it back. Raises TypeError for what is no array on the host or a dtype of another width,
    LaunchError where there is no GPU or not enough memory on it.
    """
    memory = host_memory(array)
    if memory is None:
        raise TypeError(f"to_device takes an array of NumPy or a CPU tensor, not {type(array).__name__}")
    named = str(array.dtype).removeprefix("torch.") if dtype is None else dtype
    storage = STORAGE.get(named, named)
    if storage not in ("bool", memory.dtype.name) and np.dtype(storage).itemsize != memory.dtype.itemsize:
        raise TypeError(f"elements of {memory.dtype} are no {named}")
    return DeviceArray(memory, named)


def _guarded(call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except DriverError as failure:
        raise _lost(failure) from None


def _lost(failure: DriverError) -> LaunchError:
    if failure.lost_context:
        help = "the kernel that ran before is at fault; the CUDA context is lost and the process must be started anew"
        return launch_error("E0912", f"a kernel failed on the device: {failure.words}", help=help)
    return launch_error("E0912", f"the device cannot do this: {failure.words}")
