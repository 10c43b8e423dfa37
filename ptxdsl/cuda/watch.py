"""Launches that are waited for: a fault and a hang are said of the kernel that has them, and can be replayed.

A launch with ``timeout=`` first copies its arrays to the host. When the kernel has failed, the memory of the device is
gone; the copies are what the simulator runs the launch with again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptxdsl.cuda.arrays import ArrayView, Donated
from ptxdsl.cuda.errors import DeviceError, DriverError
from ptxdsl.cuda.launch import LoadedKernel, Plan
from ptxdsl.cuda.waiting import Simulate, failed, wait
from ptxdsl.diagnostics import Diagnostic, launch_error
from ptxdsl.signature import Param, PointerParam, StructParam, TensorMapParam

if TYPE_CHECKING:
    from ptxdsl.cuda.assertions import Assertion
    from ptxdsl.sim.launch import Report

REPLAY_BYTES = 256 << 20  # of arrays that a watched launch copies


def watched(kernel: LoadedKernel, plan: Plan, stream: Any, arguments: Sequence[Any], timeout: float) -> None:
    """Launches and waits for the end. Raises DeviceError: E0915 for a kernel that has not ended in time, E0916 for one
    that failed; LaunchError E0915 while the stream is being captured."""
    handle, packed = kernel.pack(stream, arguments)
    if _is_captured(plan, handle):
        raise launch_error("E0915", f"{plan} cannot be waited for while its stream is being captured into a graph")
    wait(kernel.driver, handle, timeout, "what was launched before")
    try:
        again = keep(kernel, plan, arguments, packed.arrays)
    except DriverError as failure:
        raise launch_error("E0912", f"the arrays of {plan} cannot be copied: {failure.words}") from None
    from ptxdsl.cuda.assertions import failed_assertion, listening

    try:
        with listening() as output:
            kernel.submit(plan, handle, packed)
            wait(kernel.driver, handle, timeout, plan, again)
    except DeviceError as problem:
        assertion = failed_assertion(output.text, kernel.compiled)
        if assertion is None:
            raise
        raise _asserted(problem, assertion, plan, again) from None


def _is_captured(plan: Plan, stream: int) -> bool:
    try:
        return plan.kernel.driver.is_capturing(stream)
    except DriverError as failure:
        raise failed(failure, "what was launched before") from None


def _asserted(problem: DeviceError, assertion: Assertion, plan: Plan, again: Simulate | None) -> DeviceError:
    """The same with what the driver printed of an assertion."""
    more = f", in {assertion.threads} threads" if assertion.threads > 1 else ""
    message = f'{plan} failed: its debug_assert "{assertion.words}" does not hold{more}'
    result = re.search(r" \(CUDA_ERROR_\w+\)$", problem.diagnostics[0].message)
    message += result[0] if result else ""
    return DeviceError(Diagnostic("E0916", message, assertion.span, help=problem.diagnostics[0].help), again)


def keep(
    kernel: LoadedKernel, plan: Plan, arguments: Sequence[Any], arrays: Sequence[tuple[str, ArrayView]]
) -> Simulate | None:
    """The launch with its arrays as they are now, for the simulator; None where it has no way to be replayed: arrays
    that are too large together, or a tensor map of bytes."""
    if sum(array.nbytes for _, array in arrays) > REPLAY_BYTES:
        return None
    from ptxdsl.cuda.host_copies import Copies

    copies = Copies(kernel.driver, [array for _, array in arrays])
    try:
        host = [_host(p, v, copies) for p, v in zip(kernel.signature.params, arguments, strict=True)]
    except _CannotReplayError:
        return None
    shape, compiled, spans = plan.shape, kernel.compiled, kernel.spans

    def again(**options: Any) -> Report:
        from ptxdsl.cuda.simulated import simulate_kernel

        return simulate_kernel(
            compiled, spans, host, grid=shape.grid, block=shape.block, cluster=shape.cluster, smem=shape.smem, **options
        )

    return again


class _CannotReplayError(Exception):
    pass


def _host(param: Param, value: Any, copies: Any) -> Any:
    """An argument with copies in the place of its arrays."""
    if isinstance(param, StructParam):
        if isinstance(value, Mapping):
            return {f.name: _host(f, value[f.name], copies) for f in param.fields}
        return tuple(_host(f, v, copies) for f, v in zip(param.fields, value, strict=True))
    if isinstance(param, PointerParam):
        return copies.of(value.array if isinstance(value, Donated) else value)
    if isinstance(param, TensorMapParam):
        made = copies.map_of(value)
        if made is None:
            raise _CannotReplayError
        return made
    return value
