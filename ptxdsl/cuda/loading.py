"""From PTX to a kernel in the driver: by ptxas where it is installed, else by the driver's own compiler.

ptxas' machine code is kept in the cache (``cubin_cache.py``), and its words come at the kernel's own lines. Both keep
what a kernel says of registers (``setmaxnreg``), which linking compilers drop. ``PTXDSL_ASSEMBLER`` chooses: ``ptxas``,
``driver``, or nothing for the first that does.
"""

from __future__ import annotations

import os
import re

from ptxdsl.artifact import Compiled
from ptxdsl.compiled import Compiled as HandedOut
from ptxdsl.cuda.driver_interface import Device, Driver, Function
from ptxdsl.cuda.errors import DriverError
from ptxdsl.diagnostics import CompileError, Diagnostic, LaunchError, launch_error
from ptxdsl.signature import KernelSignature
from ptxdsl.source import Span

ASSEMBLERS = ("ptxas", "driver")
_LOG_LINES = 20


def load_function(driver: Driver, device: Device, compiled: Compiled, signature: KernelSignature) -> Function:
    """The kernel, loaded. Raises LaunchError E0911 and CompileError where no compiler takes it, E0919 for an unknown
    PTXDSL_ASSEMBLER."""
    chosen = os.environ.get("PTXDSL_ASSEMBLER", "")
    if chosen not in ("", *ASSEMBLERS):
        raise launch_error("E0919", f"PTXDSL_ASSEMBLER is '{chosen}'", help="it is one of ptxas, driver, or empty")
    refused: CompileError | None = None
    if chosen != "driver":
        from ptxdsl.backend.cubin_cache import assembled

        try:
            # one of another process may have brought its machine code with it
            image = compiled.cubin() if isinstance(compiled, HandedOut) else assembled(compiled).cubin
            try:
                return driver.load(image, signature.name)
            except DriverError as failure:
                # machine code of a newer ptxas than the driver knows: the PTX may do
                if chosen or failure.lost_context or failure.result not in _OF_THE_IMAGE:
                    raise _load_failure(failure, driver, device, compiled, signature) from None
        except CompileError as problem:
            if chosen:
                raise
            # No ptxas (E0803), or one that is too old for this PTX; what else it says, the driver's compiler says too.
            refused = None if problem.diagnostics[0].code == "E0803" else problem
    try:
        return driver.load(compiled.ptx.encode() + b"\0", signature.name)
    except DriverError as failure:
        if refused is not None:
            raise refused from None
        raise _load_failure(failure, driver, device, compiled, signature) from None


_OF_THE_IMAGE = frozenset(
    {
        "CUDA_ERROR_INVALID_IMAGE",
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "CUDA_ERROR_INVALID_SOURCE",
        "CUDA_ERROR_NOT_SUPPORTED",
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    }
)


def _load_failure(
    failure: DriverError, driver: Driver, device: Device, compiled: Compiled, signature: KernelSignature
) -> LaunchError:
    help = None
    if failure.result == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION":
        version = driver.version()
        ptx = re.search(r"^\.version\s+(\S+)", compiled.ptx, re.M)
        help = (
            f"the driver knows CUDA {version // 1000}.{version % 1000 // 10}, the kernel is PTX "
            f"{ptx.group(1) if ptx else '?'}, the lowest that will do: update the driver"
        )
        if compiled.options.ptx_version is not None:
            help = help.replace(", the lowest that will do: update the driver", ": leave ptx_version out")
    message = f"kernel '{signature.name}' cannot be loaded on {device}: {failure.words}"
    first = Diagnostic("E0911", message, _first_span(failure, compiled), help=help)
    details = [Diagnostic("E0911", line.strip(), severity="note") for line in failure.log.splitlines() if line.strip()]
    return LaunchError([first, *details[:_LOG_LINES]])


def _first_span(failure: DriverError, compiled: Compiled) -> Span | None:
    """The kernel's own line for the first PTX line that the driver's compiler names."""
    for match in re.finditer(r"\bline (\d+)", failure.log):
        number = int(match.group(1)) - 1
        if 0 <= number < len(compiled.line_map) and compiled.line_map[number] is not None:
            return compiled.line_map[number]
    return None
