"""The CUDA driver, as little of it as a launch needs, with results turned into DriverError.

The driver's library is loaded when the first launch asks for it: everything but a launch works without it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_float, c_int, c_uint64, c_void_p, create_string_buffer
from functools import partial
from typing import Any

from ptxdsl.cuda import library as cuda
from ptxdsl.cuda.code import Code
from ptxdsl.cuda.driver_interface import Device, Dim3, Function
from ptxdsl.cuda.errors import DriverError, forked
from ptxdsl.cuda.library import Library
from ptxdsl.diagnostics import launch_error

JIT_LOG_BYTES = 16384


class CudaDriver:
    """The driver's library with checked results."""

    def __init__(self, library: Library) -> None:
        self._cu = library
        self._known: dict[int, Device] = {}
        self.launch_ex = library.launch
        self.addresses: tuple[int, int] | None = library.addresses
        self.devices = 0
        self.process = os.getpid()
        self.hangs = False  # a kernel does not end: whatever waits for the device would wait forever

    def _call(self, name: str, *arguments: Any) -> None:
        status = self._cu.status(name, *arguments)
        if status:
            raise DriverError(name, self._cu.error_name(status))

    def _int(self, name: str, *arguments: Any) -> int:
        """A call whose first parameter receives an int."""
        value = c_int()
        self._call(name, byref(value), *arguments)
        return value.value

    def _handle(self, name: str, *arguments: Any) -> int:
        value = c_void_p()
        self._call(name, byref(value), *arguments)
        return value.value or 0

    def error_name(self, status: int) -> str:
        return self._cu.error_name(status)

    def initialise(self) -> None:
        self._call("cuInit", 0)
        self.devices = self._int("cuDeviceGetCount")
        if self.devices == 0:
            raise DriverError("cuDeviceGetCount", "CUDA_ERROR_NO_DEVICE")

    def usable(self) -> bool:
        """Whether calls that wait for the device come back."""
        return self.process == os.getpid() and not self.hangs

    def version(self) -> int:
        """The newest CUDA version that the driver supports: 13000 is 13.0."""
        return self._int("cuDriverGetVersion")

    # contexts and devices

    def context(self, ordinal: int | None) -> tuple[int, Device]:
        """The thread's current context and its device; without one, ``ordinal``'s primary context (or 0's) becomes
        current, the context that PyTorch, CuPy and the CUDA runtime use."""
        context = self._handle("cuCtxGetCurrent")
        if context == 0:
            device = self._int("cuDeviceGet", ordinal or 0)
            context = self._handle("cuDevicePrimaryCtxRetain", device)
            self._call("cuCtxSetCurrent", context)
        return context, self.describe(self._int("cuCtxGetDevice"))

    @contextmanager
    def on_device(self, ordinal: int) -> Iterator[None]:
        """The device's primary context is the thread's for a while: for what is done where a last reference goes, which
        may be in any thread, and must not decide where that thread launches."""
        before = self._handle("cuCtxGetCurrent")
        device = self._int("cuDeviceGet", ordinal)
        self._call("cuCtxSetCurrent", self._handle("cuDevicePrimaryCtxRetain", device))
        try:
            yield
        finally:
            self._call("cuCtxSetCurrent", before)
            self._call("cuDevicePrimaryCtxRelease_v2", device)

    def describe(self, ordinal: int) -> Device:
        """What there is to know of a device; needs no context."""
        if ordinal not in self._known:
            self._known[ordinal] = self._read(ordinal)
        return self._known[ordinal]

    def current_device(self) -> int | None:
        """The device of the thread's current context, None without one."""
        value = c_int()
        return None if self._cu.status("cuCtxGetDevice", byref(value)) else value.value

    def _read(self, ordinal: int) -> Device:
        device = self._int("cuDeviceGet", ordinal)
        name = create_string_buffer(96)
        self._call("cuDeviceGetName", name, len(name), device)

        def read(attribute: str) -> int:
            return self._int("cuDeviceGetAttribute", cuda.DEVICE_ATTRIBUTES[attribute], device)

        def dims(what: str) -> Dim3:
            return read(f"MAX_{what}_DIM_X"), read(f"MAX_{what}_DIM_Y"), read(f"MAX_{what}_DIM_Z")

        return Device(
            ordinal,
            name.value.decode(errors="replace"),
            (read("COMPUTE_CAPABILITY_MAJOR"), read("COMPUTE_CAPABILITY_MINOR")),
            read("MAX_THREADS_PER_BLOCK"),
            dims("BLOCK"),
            dims("GRID"),
            read("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            read("MULTIPROCESSOR_COUNT"),
            read("MAX_THREADS_PER_MULTIPROCESSOR") // 32,
        )

    # kernels

    def load(self, image: bytes, name: str) -> Function:
        """Loads PTX text or a cubin and finds a kernel in it, for all contexts; the numbers are the current device's.

        Raises DriverError with what the driver's compiler said.
        """
        # The driver may compile now or when the kernel is first asked for, so the log outlives this call.
        log = create_string_buffer(JIT_LOG_BYTES)
        options = (c_int * 2)(cuda.JIT_ERROR_LOG_BUFFER, cuda.JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), len(log))
        relaxed = c_int(cuda.CAPTURE_MODE_RELAXED)
        # Loading is refused while a stream of the thread is being captured, although it has no part in the graph.
        self._call("cuThreadExchangeStreamCaptureMode", byref(relaxed))
        library = 0
        try:
            library = self._handle("cuLibraryLoadData", image, options, values, 2, None, None, 0)
            handle = self._handle("cuLibraryGetKernel", library, name.encode())
            self._handle("cuKernelGetFunction", handle)
            device = self._int("cuCtxGetDevice")

            def read(attribute: str) -> int:
                return self._int("cuKernelGetAttribute", cuda.FUNCTION_ATTRIBUTES[attribute], handle, device)

            return Function(
                handle,
                read("MAX_THREADS_PER_BLOCK"),
                read("NUM_REGS"),
                read("SHARED_SIZE_BYTES"),
                read("MAX_DYNAMIC_SHARED_SIZE_BYTES"),
                device,
                Code(partial(self._unload, library, device), (log, options, values)),
            )
        except DriverError as failure:
            failure.log = log.value.decode(errors="replace").strip()
            if library:
                self._cu.status("cuLibraryUnload", library)
            raise
        finally:
            self._call("cuThreadExchangeStreamCaptureMode", byref(relaxed))

    def _unload(self, library: int, ordinal: int) -> None:
        """Waits for the device, which may run this code; where it cannot be waited for, the code stays."""
        if not self.usable():
            return
        relaxed = c_int(cuda.CAPTURE_MODE_RELAXED)
        self._cu.status("cuThreadExchangeStreamCaptureMode", byref(relaxed))
        try:
            with self.on_device(ordinal):
                self._call("cuCtxSynchronize")
                self._call("cuLibraryUnload", library)
        except DriverError:  # the context is lost, or a stream is being captured
            pass
        finally:
            self._cu.status("cuThreadExchangeStreamCaptureMode", byref(relaxed))

    def _allow(self, attribute: str, function: Function, value: int) -> None:
        number = cuda.FUNCTION_ATTRIBUTES[attribute]
        self._call("cuKernelSetAttribute", number, value, function.handle, function.device)

    def allow_shared(self, function: Function, size: int) -> None:
        self._allow("MAX_DYNAMIC_SHARED_SIZE_BYTES", function, size)

    def allow_large_clusters(self, function: Function) -> None:
        """Clusters of more than 8 blocks, where the device has them."""
        self._allow("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", function, 1)

    def resident_blocks(self, function: Function, threads: int, shared: int) -> int:
        """Blocks of the kernel that one multiprocessor runs at a time."""
        return self._int("cuOccupancyMaxActiveBlocksPerMultiprocessor", function.handle, threads, shared)

    def resident_clusters(self, function: Function, config: Any) -> int:
        """Clusters that the device runs at a time. config: byref of a LaunchConfig."""
        return self._int("cuOccupancyMaxActiveClusters", function.handle, config)

    def largest_cluster(self, function: Function, config: Any) -> int:
        return self._int("cuOccupancyMaxPotentialClusterSize", function.handle, config)

    def launch(self, function: Function, grid: Dim3, block: Dim3, shared: int, stream: int, parameters: int) -> None:
        """``parameters``: address of an array with one pointer a kernel parameter, or 0."""
        self._call("cuLaunchKernel", function.handle, *grid, *block, shared, stream, parameters, None)

    # memory

    def pointer_device(self, address: int) -> int | None:
        """The device that an address belongs to; None where the driver does not know the address (host memory)."""
        try:
            return self._int("cuPointerGetAttribute", cuda.POINTER_DEVICE_ORDINAL, address)
        except DriverError as failure:
            if failure.result == "CUDA_ERROR_INVALID_VALUE":
                return None
            raise

    def allocate(self, size: int) -> int:
        """The address of ``size`` bytes of device memory; free them with ``free``."""
        address = c_uint64()
        self._call("cuMemAlloc_v2", byref(address), size)
        return address.value

    def free(self, address: int) -> None:
        self._call("cuMemFree_v2", address)

    def copy_in(self, device: int, host: int, size: int) -> None:
        self._call("cuMemcpyHtoD_v2", device, host, size)

    def copy_out(self, host: int, device: int, size: int) -> None:
        self._call("cuMemcpyDtoH_v2", host, device, size)

    # streams and events

    def synchronise(self, stream: int | None = None) -> None:
        """Waits for a stream, or all work of the current context; what failed comes back as this call's result."""
        if stream is None:
            self._call("cuCtxSynchronize")
        else:
            self._call("cuStreamSynchronize", stream)

    def is_capturing(self, stream: int) -> bool:
        """Whether launches on a stream are being captured into a graph, or would disturb a capture on another one."""
        value = c_int()
        try:
            self._call("cuStreamIsCapturing", stream, byref(value))
        except DriverError as failure:
            if failure.result == "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT":  # the default stream, while another is captured
                return True
            raise
        return value.value != 0

    def record(self, stream: int) -> int:
        """A new event behind all work of a stream so far; end it with ``forget``."""
        event = self._handle("cuEventCreate", cuda.EVENT_DISABLE_TIMING)
        self._call("cuEventRecord", event, stream)
        return event

    def reached(self, event: int) -> bool:
        """Whether the work before an event has ended. Raises DriverError where it has failed."""
        status = self._cu.status("cuEventQuery", event)
        if status and status != cuda.NOT_READY:
            raise DriverError("cuEventQuery", self._cu.error_name(status))
        return not status

    def forget(self, event: int) -> None:
        self._call("cuEventDestroy_v2", event)

    def mark(self, stream: int) -> int:
        """As ``record``, of an event that time can be taken from."""
        event = self._handle("cuEventCreate", 0)
        self._call("cuEventRecord", event, stream)
        return event

    def microseconds(self, start: int, end: int) -> float:
        """Between two marks that have been reached."""
        value = c_float()
        self._call("cuEventElapsedTime", byref(value), start, end)
        return 1000 * value.value

    def fill(self, address: int, size: int, stream: int) -> None:
        """Zeros, written on a stream."""
        self._call("cuMemsetD8Async", address, 0, size, stream)

    def l2_bytes(self, ordinal: int) -> int:
        return self._int("cuDeviceGetAttribute", cuda.DEVICE_ATTRIBUTES["L2_CACHE_SIZE"], ordinal)


_lock = threading.Lock()
_driver: CudaDriver | None = None


def current_driver() -> CudaDriver:
    """The process's driver, initialised. Raises LaunchError where there is no driver or no device, or where the process
    is a fork of one that has used CUDA."""
    global _driver
    with _lock:
        if _driver is None:
            _driver = _open()
        elif _driver.process != os.getpid():
            raise forked()
        return _driver


def _open() -> CudaDriver:
    try:
        driver = CudaDriver(Library())
    except AttributeError as missing:
        raise launch_error(
            "E0902", f"the CUDA driver is too old: {missing}", help="ptxdsl needs a driver for CUDA 12.0 or later"
        ) from None
    except OSError as missing:
        reason = str(missing).splitlines()[0]
        raise launch_error("E0902", f"no CUDA driver is installed: {reason}", help=NO_GPU_HELP) from None
    try:
        driver.initialise()
    except DriverError as failure:
        raise launch_error("E0902", f"no GPU can be used: {failure.words}", help=NO_GPU_HELP) from None
    return driver


NO_GPU_HELP = (
    'ptxdsl.compile(...) and `ptxdsl compile` make PTX on a machine without a GPU; `target="sim"` or '
    "`kernel.simulate(…)` runs it"
)
