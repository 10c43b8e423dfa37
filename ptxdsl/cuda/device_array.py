"""Arrays in device memory without another library: what ``ptxdsl run`` launches with, and ``ptxdsl.to_device``.

NumPy is imported where one of its arrays is wanted: a process that launches with other buffers starts without it.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any

from ptxdsl.cuda.driver import CudaDriver, current_driver
from ptxdsl.cuda.errors import DeviceError, DriverError
from ptxdsl.diagnostics import Diagnostic, LaunchError, launch_error

if TYPE_CHECKING:
    import numpy.typing as npt

# Kinds of the elements of a buffer (PEP 3118) by their letters; their size is the buffer's.
_KINDS = {"?": "bool", **dict.fromkeys("bhilqn", "int"), **dict.fromkeys("BHILQNc", "uint")}
_KINDS |= dict.fromkeys("efd", "float")
_LETTERS = {"bool": "b", "int": "i", "uint": "u", "float": "f"}


class DeviceArray:
    """Row-major elements in the memory of the current device, freed with the object.

    dtype: the kernel language's name (``float32``, ``bfloat16``); shape in elements. Libraries see it through
    ``__cuda_array_interface__``; types that NumPy lacks as unsigned integers of their width.
    """

    def __init__(self, host: Any, dtype: str | None = None) -> None:
        """Copies ``host``, an array of NumPy or a contiguous buffer, whose elements are the storage of ``dtype`` (its
        own if None). Raises LaunchError."""
        image = _Image(host)
        self.dtype = sys.intern(dtype or image.dtype)
        self.shape = image.shape
        self._itemsize, self._typestr = image.itemsize, image.typestr
        self._driver: CudaDriver = current_driver()
        self.ordinal = _guarded(self._driver.context, None)[1].ordinal
        self.address = 0
        if self.nbytes:
            self.address = _guarded(self._driver.allocate, self.nbytes)
            _guarded(self._driver.copy_in, self.address, image.address, self.nbytes)

    @property
    def nbytes(self) -> int:
        """The size of its memory, in bytes."""
        return int(prod(self.shape) * self._itemsize)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self._typestr, "data": (self.address, False), "version": 3}

    def to_host(self) -> npt.NDArray[Any]:
        """Waits for the device and copies the elements' storage back. Raises LaunchError."""
        import numpy as np

        image = np.empty(self.shape, self._typestr)
        _guarded(self._driver.context, self.ordinal)  # of a thread that has none yet
        _guarded(self._driver.synchronise)
        if self.nbytes:
            _guarded(self._driver.copy_out, image.ctypes.data, self.address, self.nbytes)
        return image

    def __del__(self) -> None:
        with suppress(Exception):  # the context is gone, and the memory with it; or the interpreter is ending
            # In a fork the memory is the other process's; a driver that hangs would wait forever.
            if self.address and self._driver.usable():
                with self._driver.on_device(self.ordinal):
                    self._driver.free(self.address)

    def __repr__(self) -> str:
        return f"<ptxdsl array {self.dtype}{list(self.shape)} on the device>"


class _Image:
    """Elements in host memory, one behind the other. Raises TypeError for what has none."""

    _kept: Any

    def __init__(self, host: Any) -> None:
        if hasattr(host, "__array_interface__"):
            import numpy as np

            kept = np.ascontiguousarray(host)
            self.shape = tuple(kept.shape) if host.ndim else ()
            self.dtype, self.itemsize, self.typestr = kept.dtype.name, kept.dtype.itemsize, kept.dtype.str
            self.address, self._kept = kept.ctypes.data, kept
            return
        view = memoryview(host)
        kind = _KINDS.get(view.format.lstrip("@=<"))
        if kind is None or not view.c_contiguous:
            raise TypeError(f"a buffer of '{view.format}' elements cannot be copied to the device")
        self.shape = tuple(view.shape or ())
        self.itemsize = view.itemsize
        self.dtype = kind if kind == "bool" else f"{kind}{8 * view.itemsize}"
        self.typestr = f"{'|' if view.itemsize == 1 else '<'}{_LETTERS[kind]}{view.itemsize}"
        copy = (ctypes.c_char * max(view.nbytes, 1)).from_buffer_copy(view.cast("B") if view.nbytes else b"\0")
        self.address, self._kept = ctypes.addressof(copy), copy


def to_device(array: Any, dtype: str | None = None) -> DeviceArray:
    """A copy of a NumPy array, a CPU tensor or a contiguous buffer (``array.array``) in the memory of the current
    device, row-major.

    dtype: the kernel language's name of what the bits are (``bfloat16`` for an array of uint16); None is the array's
    own. ``to_host`` brings it back. Raises TypeError for what is no array on the host or a dtype of another width,
    LaunchError where there is no GPU or not enough memory on it.
    """
    memory = array
    kind = type(array)
    if hasattr(kind, "__array_interface__") or hasattr(kind, "data_ptr"):
        from ptxdsl.cuda.host_arguments import host_memory, not_plain

        memory = host_memory(array)
        if memory is not None and (wrong := not_plain(array)) is not None:
            raise TypeError(f"{wrong[0]}: {wrong[1]}")
        dtype = dtype or (str(array.dtype).removeprefix("torch.") if memory is not None else None)
    try:
        image = _Image(memory)
    except TypeError:
        raise TypeError(
            f"to_device takes an array of NumPy, a CPU tensor or a contiguous buffer, not {kind.__name__}"
        ) from None
    if dtype is not None and _width(dtype) != image.itemsize:
        raise TypeError(f"elements of {image.dtype} are no {dtype}")
    return DeviceArray(memory, dtype)


def _width(dtype: str) -> int:
    """Bytes of an element. Raises TypeError for a name that is none."""
    from ptxdsl.cuda.scalars import SCALARS

    if dtype not in SCALARS:
        raise TypeError(f"there is no dtype '{dtype}'")
    return SCALARS[dtype].size


def _guarded(call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except DriverError as failure:
        raise _lost(failure) from None


def _lost(failure: DriverError) -> LaunchError:
    if failure.lost_context:
        help = "the kernel that ran before is at fault; the CUDA context is lost and the process must be started anew"
        return DeviceError(Diagnostic("E0912", f"a kernel failed on the device: {failure.words}", help=help))
    return launch_error("E0912", f"the device cannot do this: {failure.words}")
