"""The CUDA driver's library through ctypes: the functions that loading and launching take, and the numbers of cuda.h.

Nothing is imported but ctypes, so a process that launches a cached kernel starts as quickly as Python does. The calls
release the interpreter lock. Source: cuda.h of CUDA 12.0; its macros make names with ``_v2`` of the plain ones.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any

SUCCESS = 0
INVALID_CONTEXT = 201
NOT_READY = 600

NAMES = {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}

_INT, _HANDLE = POINTER(c_int), POINTER(c_void_p)

# The parameters of each function; all give a CUresult.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (_INT,),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuDeviceGetCount": (_INT,),
    "cuDeviceGet": (_INT, c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (_INT, c_int, c_int),
    "cuDevicePrimaryCtxRetain": (_HANDLE, c_int),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuCtxGetCurrent": (_HANDLE,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxGetDevice": (_INT,),
    "cuCtxSynchronize": (),
    "cuLibraryLoadData": (_HANDLE, c_char_p, _INT, _HANDLE, c_uint, _INT, _HANDLE, c_uint),
    "cuLibraryUnload": (c_void_p,),
    "cuLibraryGetKernel": (_HANDLE, c_void_p, c_char_p),
    "cuKernelGetFunction": (_HANDLE, c_void_p),
    "cuKernelGetAttribute": (_INT, c_int, c_void_p, c_int),
    "cuKernelSetAttribute": (c_int, c_int, c_void_p, c_int),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, c_void_p, c_void_p),
    "cuLaunchKernelEx": (c_void_p, c_void_p, c_void_p, c_void_p),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (_INT, c_void_p, c_int, c_size_t),
    "cuOccupancyMaxActiveClusters": (_INT, c_void_p, c_void_p),
    "cuOccupancyMaxPotentialClusterSize": (_INT, c_void_p, c_void_p),
    "cuPointerGetAttribute": (c_void_p, c_int, c_uint64),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoD_v2": (c_uint64, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamIsCapturing": (c_void_p, _INT),
    "cuThreadExchangeStreamCaptureMode": (_INT,),
    "cuEventCreate": (_HANDLE, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventQuery": (c_void_p,),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuMemsetD8Async": (c_uint64, c_ubyte, c_size_t, c_void_p),
}

DEVICE_ATTRIBUTES = {
    "MAX_THREADS_PER_BLOCK": 1,
    "MAX_BLOCK_DIM_X": 2,
    "MAX_BLOCK_DIM_Y": 3,
    "MAX_BLOCK_DIM_Z": 4,
    "MAX_GRID_DIM_X": 5,
    "MAX_GRID_DIM_Y": 6,
    "MAX_GRID_DIM_Z": 7,
    "MULTIPROCESSOR_COUNT": 16,
    "L2_CACHE_SIZE": 38,
    "MAX_THREADS_PER_MULTIPROCESSOR": 39,
    "COMPUTE_CAPABILITY_MAJOR": 75,
    "COMPUTE_CAPABILITY_MINOR": 76,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 97,
}
FUNCTION_ATTRIBUTES = {
    "MAX_THREADS_PER_BLOCK": 0,
    "SHARED_SIZE_BYTES": 1,
    "NUM_REGS": 4,
    "MAX_DYNAMIC_SHARED_SIZE_BYTES": 8,
    "NON_PORTABLE_CLUSTER_SIZE_ALLOWED": 14,
}
POINTER_DEVICE_ORDINAL = 9
JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 5, 6
CAPTURE_MODE_RELAXED = 2
EVENT_DISABLE_TIMING = 2
LAUNCH_COOPERATIVE, LAUNCH_CLUSTER_DIMENSION, LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION = 2, 4, 6


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute. ``value`` is a union of 64 bytes; what we set are up to three numbers at its start."""

    _fields_ = (("id", c_int), ("padding", c_int), ("value", c_uint * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    )


class Library:
    """The loaded library: ``call`` for whatever happens once, ``launch`` for what happens all the time.

    Raises OSError where there is no driver, AttributeError where it is older than CUDA 12.0.
    """

    def __init__(self, name: str | None = None) -> None:
        self._library = ctypes.CDLL(NAMES.get(sys.platform, "libcuda.so") if name is None else name)
        self._functions: dict[str, Any] = {}
        for function in FUNCTIONS:
            self._function(function)
        # Without declared parameters ctypes takes pointers (byref objects) as they are and converts nothing.
        address = ctypes.cast(self._functions["cuLaunchKernelEx"], c_void_p).value
        assert address is not None
        self.launch = ctypes.CFUNCTYPE(c_int)(address)
        current = ctypes.cast(self._functions["cuCtxGetDevice"], c_void_p).value
        assert current is not None
        self.addresses = address, current

    def _function(self, name: str) -> None:
        found = self._library[name]
        found.argtypes, found.restype = FUNCTIONS[name], c_int
        self._functions[name] = found

    def status(self, name: str, *arguments: Any) -> int:
        """The CUresult of a call."""
        return int(self._functions[name](*arguments))

    def error_name(self, status: int) -> str:
        """``CUDA_ERROR_ILLEGAL_ADDRESS``; ``CUresult 12345`` for a number that the driver does not know."""
        text = c_char_p()
        if self.status("cuGetErrorName", status, byref(text)) == SUCCESS and text.value:
            return text.value.decode()
        return f"CUresult {status}"


def pointer_to(address: int) -> Any:
    """An address as a function without declared parameters takes it for a pointer, in any number of calls."""
    return byref(ctypes.c_char.from_address(address)) if address else None
