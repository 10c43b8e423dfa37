"""Launches that are waited for: a fault and a hang are said of the kernel that has them, and can be replayed.

A launch with ``timeout=`` first copies its arrays to the host. When the kernel has failed, the memory of the device is
gone; the copies are what the simulator runs the launch with again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptxdsl.cuda.arrays import ArrayView, Donated
from ptxdsl.cuda.errors import DeviceError, DriverError
from ptxdsl.cuda.launch import LoadedKernel, Plan
from ptxdsl.diagnostics import Diagnostic, launch_error
from ptxdsl.signature import Param, PointerParam, StructParam, TensorMapParam

if TYPE_CHECKING:
    from ptxdsl.cuda.assertions import Assertion
    from ptxdsl.sim.launch import Report

REPLAY_BYTES = 256 << 20  # of arrays that a watched launch copies
_LONGEST_SLEEP = 0.01  # seconds between two looks

Simulate = Callable[..., "Report"]


def watched(kernel: LoadedKernel, plan: Plan, stream: Any, arguments: Sequence[Any], timeout: float) -> None:
    """Launches and waits for the end. Raises DeviceError: E0915 for a kernel that has not ended in time, E0916 for one
    that failed; LaunchError E0915 while the stream is being captured."""
    handle, packed = kernel.pack(stream, arguments)
    if _is_captured(plan, handle):
        raise launch_error("E0915", f"{plan} cannot be waited for while its stream is being captured into a graph")
    wait(plan, handle, timeout, "what was launched before", None)
    try:
        again = keep(kernel, plan, arguments, packed.arrays)
    except DriverError as failure:
        raise launch_error("E0912", f"the arrays of {plan} cannot be copied: {failure.words}") from None
    from ptxdsl.cuda.assertions import failed_assertion, listening

    try:
        with listening() as output:
            kernel.submit(plan, handle, packed)
            wait(plan, handle, timeout, str(plan), again)
    except DeviceError as problem:
        assertion = failed_assertion(output.text, kernel.compiled)
        if assertion is None:
            raise
        raise _asserted(problem, assertion, plan, again) from None


def wait(
    plan: Plan, stream: int, timeout: float | None, what: str | None = None, again: Simulate | None = None
) -> None:
    """Waits until a stream has come so far; without a time limit not for what is being captured. Raises DeviceError as
    ``watched`` does.

    what: that which runs, as messages call it. again: how to replay it.
    """
    driver = plan.kernel.driver
    try:
        if timeout is None:
            if not driver.is_capturing(stream):
                driver.synchronise(stream)
            return
        event = driver.record(stream)
        deadline, pause = time.monotonic() + timeout, 1e-5
        while not driver.reached(event):
            if time.monotonic() > deadline:
                driver.hangs = True
                raise _hangs(what or str(plan), timeout, again)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_SLEEP)
        driver.forget(event)
    except DriverError as failure:
        raise failed(failure, what or str(plan), again) from None


def _is_captured(plan: Plan, stream: int) -> bool:
    try:
        return plan.kernel.driver.is_capturing(stream)
    except DriverError as failure:
        raise failed(failure, "what was launched before") from None


def _hangs(what: str, timeout: float, again: Simulate | None) -> DeviceError:
    return DeviceError(
        Diagnostic(
            "E0915",
            f"{what} has not ended within {timeout:g} s: it hangs, or needs longer",
            help="the kernel still occupies the device, so its CUDA context is lost: end the process (os._exit(1) "
            f"where it does not end). {_offer(again)}",
        ),
        again,
    )


def failed(failure: DriverError, what: str, again: Simulate | None = None) -> DeviceError:
    """The error E0916 of what ran, from the driver's result. again: how to replay it."""
    lost = "the CUDA context is lost and the process must be started anew. " if failure.lost_context else ""
    return DeviceError(
        Diagnostic("E0916", f"{what} failed: {failure.words}", help=lost + _offer(again)),
        again,
    )


def _asserted(problem: DeviceError, assertion: Assertion, plan: Plan, again: Simulate | None) -> DeviceError:
    """The same with what the driver printed of an assertion."""
    more = f", in {assertion.threads} threads" if assertion.threads > 1 else ""
    message = f'{plan} failed: its debug_assert "{assertion.words}" does not hold{more}'
    result = re.search(r" \(CUDA_ERROR_\w+\)$", problem.diagnostics[0].message)
    message += result[0] if result else ""
    return DeviceError(Diagnostic("E0916", message, assertion.span, help=problem.diagnostics[0].help), again)


def _offer(again: Simulate | None) -> str:
    if again is None:
        return "kernel.simulate(…) runs the same kernel in the simulator, which says where and why"
    return "problem.replay() on this exception runs the launch again in the simulator, which says where and why"


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
