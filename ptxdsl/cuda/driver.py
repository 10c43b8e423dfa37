"""The CUDA driver, as little of it as a launch needs, with results turned into DriverError.

``cuda.bindings`` is imported when the first launch asks for it: everything but a launch works without it.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

from ptxdsl.cuda.errors import DriverError, LaunchError, launch_error
from ptxdsl.record import dataclass

JIT_LOG_BYTES = 16384


@dataclass(frozen=True)
class Device:
    """One GPU and its limits; sizes in bytes, block and grid limits by dimension."""

    ordinal: int
    name: str
    capability: tuple[int, int]
    max_threads: int = 1024
    max_block: tuple[int, int, int] = (1024, 1024, 64)
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    max_shared: int = 48 * 1024

    def __str__(self) -> str:
        return f"device {self.ordinal} ({self.name}, compute capability {self.capability[0]}.{self.capability[1]})"


@dataclass(frozen=True)
class Function:
    """A loaded kernel. max_threads: what its registers allow; shared: static bytes; dynamic: bytes allowed so far."""

    handle: Any
    max_threads: int
    registers: int
    shared: int
    dynamic: int


class Driver(Protocol):
    """What the launch path asks of a driver; tests hand in one without a card."""

    def version(self) -> int: ...

    def context(self, ordinal: int | None) -> tuple[int, Device]: ...

    def load(self, image: bytes, name: str) -> Function: ...

    def allow_shared(self, function: Function, size: int) -> None: ...

    def pointer_device(self, address: int) -> int | None: ...

    def launch(
        self, function: Function, grid: Dim3, block: Dim3, shared: int, stream: int, parameters: int
    ) -> None: ...


Dim3 = tuple[int, int, int]


class CudaDriver:
    """``cuda.bindings.driver`` with checked results."""

    def __init__(self, bindings: Any) -> None:
        self._cu = bindings
        self._devices: dict[int, Device] = {}

    def _call(self, name: str, *arguments: Any) -> Any:
        status, *values = getattr(self._cu, name)(*arguments)
        if status != self._cu.CUresult.CUDA_SUCCESS:
            raise DriverError(name, status.name)
        return values[0] if len(values) == 1 else tuple(values)

    def initialise(self) -> None:
        self._call("cuInit", 0)
        if self._call("cuDeviceGetCount") == 0:
            raise DriverError("cuDeviceGetCount", "CUDA_ERROR_NO_DEVICE")

    def version(self) -> int:
        """The newest CUDA version that the driver supports: 13000 is 13.0."""
        return int(self._call("cuDriverGetVersion"))

    def context(self, ordinal: int | None) -> tuple[int, Device]:
        """The id of the thread's current context and its device; without one, ``ordinal``'s primary context (or 0's)
        becomes current, the context that PyTorch, CuPy and the CUDA runtime use."""
        context = self._call("cuCtxGetCurrent")
        if int(context) == 0:
            device = self._call("cuDeviceGet", ordinal or 0)
            context = self._call("cuDevicePrimaryCtxRetain", device)
            self._call("cuCtxSetCurrent", context)
        number = int(self._call("cuCtxGetDevice"))
        if number not in self._devices:
            self._devices[number] = self._describe(number)
        return int(self._call("cuCtxGetId", context)), self._devices[number]

    def _describe(self, ordinal: int) -> Device:
        device = self._call("cuDeviceGet", ordinal)

        def read(name: str) -> int:
            attribute = getattr(self._cu.CUdevice_attribute, "CU_DEVICE_ATTRIBUTE_" + name)
            return int(self._call("cuDeviceGetAttribute", attribute, device))

        def dims(what: str) -> Dim3:
            return read(f"MAX_{what}_DIM_X"), read(f"MAX_{what}_DIM_Y"), read(f"MAX_{what}_DIM_Z")

        return Device(
            ordinal,
            self._call("cuDeviceGetName", 96, device).split(b"\0")[0].decode(errors="replace"),
            (read("COMPUTE_CAPABILITY_MAJOR"), read("COMPUTE_CAPABILITY_MINOR")),
            read("MAX_THREADS_PER_BLOCK"),
            dims("BLOCK"),
            dims("GRID"),
            read("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        )

    def load(self, image: bytes, name: str) -> Function:
        """Loads PTX text or a cubin into the current context and finds one kernel in it."""
        log = bytearray(JIT_LOG_BYTES)
        kind = self._cu.CUjit_option
        options = [kind.CU_JIT_ERROR_LOG_BUFFER, kind.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        try:
            module = self._call("cuModuleLoadDataEx", image, len(options), options, [log, len(log)])
        except DriverError as failure:
            failure.log = bytes(log).split(b"\0", 1)[0].decode(errors="replace").strip()
            raise
        handle = self._call("cuModuleGetFunction", module, name.encode())

        def read(attribute: str) -> int:
            key = getattr(self._cu.CUfunction_attribute, "CU_FUNC_ATTRIBUTE_" + attribute)
            return int(self._call("cuFuncGetAttribute", key, handle))

        return Function(
            handle,
            read("MAX_THREADS_PER_BLOCK"),
            read("NUM_REGS"),
            read("SHARED_SIZE_BYTES"),
            read("MAX_DYNAMIC_SHARED_SIZE_BYTES"),
        )

    def allow_shared(self, function: Function, size: int) -> None:
        attribute = self._cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._call("cuFuncSetAttribute", function.handle, attribute, size)

    def pointer_device(self, address: int) -> int | None:
        """The device that an address belongs to; None where the driver does not know the address (host memory)."""
        ordinal = self._cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        try:
            return int(self._call("cuPointerGetAttribute", ordinal, address))
        except DriverError as failure:
            if failure.result == "CUDA_ERROR_INVALID_VALUE":
                return None
            raise

    def launch(self, function: Function, grid: Dim3, block: Dim3, shared: int, stream: int, parameters: int) -> None:
        """``parameters``: address of an array with one pointer a kernel parameter, or 0."""
        self._call("cuLaunchKernel", function.handle, *grid, *block, shared, stream, parameters, 0)

    def allocate(self, size: int) -> int:
        """The address of ``size`` bytes of device memory; free them with ``free``."""
        return int(self._call("cuMemAlloc", size))

    def free(self, address: int) -> None:
        self._call("cuMemFree", address)

    def copy_in(self, device: int, host: int, size: int) -> None:
        self._call("cuMemcpyHtoD", device, host, size)

    def copy_out(self, host: int, device: int, size: int) -> None:
        self._call("cuMemcpyDtoH", host, device, size)

    def synchronise(self) -> None:
        """Waits for all work of the current context; what failed in it comes back as this call's result."""
        self._call("cuCtxSynchronize")


_lock = threading.Lock()
_driver: CudaDriver | None = None


def current_driver() -> CudaDriver:
    """The process's driver, initialised. Raises LaunchError where there is no package, no driver or no device."""
    global _driver
    with _lock:
        if _driver is None:
            _driver = _open()
        return _driver


def _open() -> CudaDriver:
    try:
        from cuda.bindings import driver as bindings  # type: ignore[import-not-found, unused-ignore]
    except ImportError as missing:
        raise launch_error(
            "E0901",
            f"launching a kernel needs the Python package cuda-python, which cannot be imported: {missing}",
            help="pip install cuda-python; compiling to PTX works without it",
        ) from None
    driver = CudaDriver(bindings)
    try:
        driver.initialise()
    except DriverError as failure:
        raise launch_error("E0902", f"no GPU can be used: {failure.words}", help=NO_GPU_HELP) from None
    except LaunchError:
        raise
    except Exception as failure:  # the bindings raise types of their own where libcuda is missing
        reason = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
        raise launch_error("E0902", f"no CUDA driver is installed: {reason}", help=NO_GPU_HELP) from None
    return driver


NO_GPU_HELP = "ptxdsl.compile(...) and `ptxdsl compile` make PTX on a machine without a GPU"
