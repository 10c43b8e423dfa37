"""What goes wrong on the card: DeviceError, and the driver's results in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ptxdsl.diagnostics import Diagnostic, LaunchError, launch_error

if TYPE_CHECKING:
    from ptxdsl.sim.launch import Report


class DeviceError(LaunchError):
    """A kernel was started and did not run to its end: a fault, a deadlock, a limit; ``diagnostics`` say where."""

    def __init__(
        self, diagnostics: Diagnostic | Iterable[Diagnostic], simulate: Callable[..., Report] | None = None
    ) -> None:
        super().__init__(diagnostics)
        self._simulate = simulate

    @property
    def replayable(self) -> bool:
        """Whether the launch was kept: one with ``timeout=`` on the GPU, with arrays that are not too large."""
        return self._simulate is not None

    def replay(self, **options: Any) -> Report:
        """Runs the launch again, with the arrays as they were before it, in the simulator, which can say more.

        options: ``schedule``, ``limits``, ``trace``, ``record``, as for ``Kernel.simulate``. Raises LaunchError E0917
        where the launch was not kept.
        """
        if self._simulate is None:
            raise launch_error(
                "E0917",
                "this launch was not kept for a replay",
                help="launch with timeout=…, which copies the arrays first, or use kernel.simulate(…)",
            )
        return self._simulate(**options)


def forked() -> LaunchError:
    """What every use of CUDA in a fork of a process that has used it comes to."""
    return launch_error(
        "E0914",
        "this process was forked from one that had used CUDA, which does not work in the fork",
        help="start processes with multiprocessing.get_context('spawn'), or use CUDA only after the fork",
    )


class DriverError(Exception):
    """A CUDA driver call returned something else than success. Callers turn it into a LaunchError with its context.

    result: the driver's own name (``CUDA_ERROR_ILLEGAL_ADDRESS``). log: what the driver's PTX compiler said, if it did.
    """

    def __init__(self, call: str, result: str, log: str = "") -> None:
        super().__init__(f"{call}: {result}")
        self.call = call
        self.result = result
        self.log = log

    @property
    def words(self) -> str:
        """What the result means, from the reader's side."""
        meaning = MEANINGS.get(self.result)
        return f"{meaning} ({self.result})" if meaning else f"{self.call} returned {self.result}"

    @property
    def lost_context(self) -> bool:
        """Whether every later call in this process fails too."""
        return self.result in STICKY


MEANINGS = {
    "CUDA_ERROR_INVALID_VALUE": "the driver refused a value of the call",
    "CUDA_ERROR_OUT_OF_MEMORY": "the device has not enough free memory",
    "CUDA_ERROR_NOT_INITIALIZED": "the driver is not initialised in this process (a fork after CUDA was used?)",
    "CUDA_ERROR_DEINITIALIZED": "the driver is shutting down",
    "CUDA_ERROR_NO_DEVICE": "this machine has no CUDA device that the process may use",
    "CUDA_ERROR_INVALID_DEVICE": "there is no such device",
    "CUDA_ERROR_INVALID_CONTEXT": "the CUDA context of this thread is not valid",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": "the CUDA context of this thread was destroyed",
    "CUDA_ERROR_INVALID_IMAGE": "the driver does not recognise the kernel's code",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the kernel was compiled for another architecture than this device's",
    "CUDA_ERROR_INVALID_PTX": "the driver's compiler rejected the PTX",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the PTX version is newer than the installed driver knows",
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": "the driver's PTX compiler library is missing",
    "CUDA_ERROR_JIT_COMPILATION_DISABLED": "the driver's PTX compiler is disabled in this process",
    "CUDA_ERROR_NOT_FOUND": "the module has no kernel of this name",
    "CUDA_ERROR_INVALID_HANDLE": "a handle (stream, function) is not valid in this context",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "the block needs more registers or shared memory than the device has",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "a kernel ran longer than the driver's watchdog allows",
    "CUDA_ERROR_ILLEGAL_ADDRESS": "a kernel read or wrote memory outside of any allocation",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "a kernel used an address that is not a multiple of the access's size",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": "a kernel used an address in the wrong memory space",
    "CUDA_ERROR_INVALID_PC": "a kernel jumped outside of its code",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "a kernel executed an illegal instruction",
    "CUDA_ERROR_HARDWARE_STACK_ERROR": "a kernel's stack overflowed or was damaged",
    "CUDA_ERROR_ASSERT": "a debug_assert in a kernel failed; its text is on standard error",
    "CUDA_ERROR_LAUNCH_FAILED": "a kernel trapped or failed while it ran",
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": "a cooperative launch has more blocks than run at a time",
    "CUDA_ERROR_TENSOR_MEMORY_LEAK": "a block of a kernel has ended without giving its tensor memory back",
    "CUDA_ERROR_CONTAINED": "memory of the device has failed; the kernel that used it was ended",
    "CUDA_ERROR_ECC_UNCORRECTABLE": "memory of the device has failed",
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "the device is busy, or used by another process alone",
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": "the device cannot run clusters of this shape",
    "CUDA_ERROR_NOT_SUPPORTED": "the device or driver does not support this",
    "CUDA_ERROR_SYSTEM_NOT_READY": "the driver or a service that it needs is not running",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the driver's kernel module and library have different versions",
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": "the call is not allowed while a stream is being captured into a graph",
}

STICKY = frozenset(
    {
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "CUDA_ERROR_INVALID_PC",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "CUDA_ERROR_HARDWARE_STACK_ERROR",
        "CUDA_ERROR_ASSERT",
        "CUDA_ERROR_LAUNCH_FAILED",
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "CUDA_ERROR_TENSOR_MEMORY_LEAK",
        "CUDA_ERROR_CONTAINED",
        "CUDA_ERROR_ECC_UNCORRECTABLE",
    }
)
