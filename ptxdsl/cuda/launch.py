"""One kernel in one context: loaded once, launched any number of times."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ptxdsl.artifact import Compiled
from ptxdsl.cuda.arguments import Packer
from ptxdsl.cuda.driver import Device, Dim3, Driver
from ptxdsl.cuda.errors import DriverError, LaunchError, launch_error
from ptxdsl.cuda.shape import check_shape, launch_text, shared_size
from ptxdsl.cuda.streams import stream_handle
from ptxdsl.diagnostics import Diagnostic
from ptxdsl.record import replace
from ptxdsl.signature import KernelSignature
from ptxdsl.source import Span


class LoadedKernel:
    """A compiled kernel in the current context of ``driver``.

    spans: where the parameters are declared, for errors. Raises LaunchError E0911 where the driver refuses the code.
    """

    def __init__(
        self, driver: Driver, device: Device, compiled: Compiled, signature: KernelSignature, spans: Mapping[str, Span]
    ) -> None:
        self.driver = driver
        self.device = device
        self.signature = signature
        self.packer = Packer(signature, spans)
        self._lock = threading.Lock()
        try:
            self._function = driver.load(compiled.ptx.encode() + b"\0", signature.name)
        except DriverError as failure:
            raise _load_failure(failure, driver, device, compiled, signature) from None

    def launch(self, grid: Dim3, block: Dim3, arguments: Sequence[Any], smem: int | None, stream: Any) -> None:
        """Checks everything, then starts the kernel; does not wait for it. Raises LaunchError."""
        check_shape(self.signature, self.device, self._function, grid, block)
        size = shared_size(self.signature, self.device, self._function, smem)
        packed = self.packer.pack(arguments)
        handle = stream_handle(stream, packed.arrays)
        try:
            self.packer.check_device(packed, self.device, self.driver)
            if size > self._function.dynamic:
                self._allow(size)
            self.driver.launch(self._function, grid, block, size, handle, packed.address)
        except DriverError as failure:
            raise _launch_failure(failure, self.signature.name, launch_text(grid, block, size)) from None

    def _allow(self, size: int) -> None:
        # only ever raised: a smaller launch must not take the room from one that another thread prepares
        with self._lock:
            if size > self._function.dynamic:
                self.driver.allow_shared(self._function, size)
                self._function = replace(self._function, dynamic=size)


def _launch_failure(failure: DriverError, name: str, shape: str) -> LaunchError:
    if failure.lost_context:
        return launch_error(
            "E0912",
            f"kernel '{name}' ({shape}) was not started: {failure.words}",
            help="launches are asynchronous: this kernel or one launched before it is at fault; the CUDA context is "
            "lost and the process must be started anew",
        )
    return launch_error("E0912", f"the launch of kernel '{name}' ({shape}) failed: {failure.words}")


def _load_failure(
    failure: DriverError, driver: Driver, device: Device, compiled: Compiled, signature: KernelSignature
) -> LaunchError:
    help = None
    if failure.result == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION":
        version = driver.version()
        ptx = re.search(r"^\.version\s+(\S+)", compiled.ptx, re.M)
        help = (
            f"the driver knows CUDA {version // 1000}.{version % 1000 // 10}, the kernel is PTX "
            f"{ptx.group(1) if ptx else '?'}: update the driver or give a lower ptx_version"
        )
    message = f"kernel '{signature.name}' cannot be loaded on {device}: {failure.words}"
    first = Diagnostic("E0911", message, _first_span(failure, compiled), help=help)
    details = [Diagnostic("E0911", line.strip(), severity="note") for line in failure.log.splitlines() if line.strip()]
    return LaunchError([first, *details[:20]])


def _first_span(failure: DriverError, compiled: Compiled) -> Span | None:
    """The kernel's own line for the first PTX line that the driver's compiler names."""
    for match in re.finditer(r"\bline (\d+)", failure.log):
        number = int(match.group(1)) - 1
        if 0 <= number < len(compiled.line_map) and compiled.line_map[number] is not None:
            return compiled.line_map[number]
    return None
