"""How long a configuration takes: on the device, by its events, or in the simulator, by its clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import ceil
from typing import Any

from ptxdsl.api.program import device_arch
from ptxdsl.cuda.driver_interface import Device, Driver
from ptxdsl.cuda.errors import DriverError
from ptxdsl.cuda.launch import LoadedKernel, Plan
from ptxdsl.cuda.waiting import failed, wait
from ptxdsl.diagnostics import launch_error
from ptxdsl.tuning.space import Candidate

_LONGEST = 1e6  # microseconds that the launches of one configuration take together,
_FEWEST = 3  # unless these take longer

# Whether the first launch has left what it should; raises where not.
Check = Callable[[Sequence[Any]], None]


class OnDevice:
    """stream: of the launches, None for the current one of the arrays' library. timeout: seconds for a launch."""

    unit = "us"

    def __init__(
        self, driver: Driver, device: Device, stream: Any, repetitions: int, flush_l2: bool, timeout: float
    ) -> None:
        self.name = device.name
        self.arch = device_arch(device)
        self.settings = (repetitions, flush_l2)
        self._driver = driver
        self._stream = stream
        self._repetitions = repetitions
        self._timeout = timeout
        self._flush = flush_l2
        # Twice the cache: what was in it is gone when all of it has been written. And while that lasts the launch and
        # its events are queued, so that no time of the host is between them.
        self._filled = 2 * driver.l2_bytes(device.ordinal)
        self._room = 0

    def settle(self) -> None:
        """What was launched before is over: its faults are no configuration's. Raises LaunchError E0912."""
        try:
            self._driver.synchronise()
        except DriverError as failure:
            raise launch_error("E0912", f"what was launched before has failed: {failure.words}") from None

    def times(self, candidate: Candidate, arguments: Sequence[Any], check: Check) -> list[float]:
        """Microseconds of each launch but the first, which is checked. Raises LaunchError, DeviceError, CompileError,
        and as ``check`` does."""
        kernel = candidate.kernel.load(arguments)
        plan = kernel.plan(candidate.shape(kernel.signature.block))
        stream, packed = kernel.pack(self._stream, arguments)
        kernel.submit(plan, stream, packed)
        self._wait(plan, stream, 1)
        check(arguments)
        try:
            (first,) = self._timed(kernel, plan, stream, packed, 1)
            runs = max(_FEWEST, min(self._repetitions, ceil(_LONGEST / max(first, 1.0)))) - 1
            return [first, *self._timed(kernel, plan, stream, packed, min(runs, self._repetitions - 1))]
        except DriverError as failure:
            if failure.lost_context:
                raise failed(failure, str(plan)) from None
            raise launch_error("E0912", f"{plan} cannot be measured: {failure.words}") from None

    def _timed(self, kernel: LoadedKernel, plan: Plan, stream: int, packed: Any, runs: int) -> list[float]:
        driver, marks = self._driver, []
        self._room = self._room or driver.allocate(self._filled)
        try:
            for _ in range(runs):
                driver.fill(self._room, self._filled, stream)
                if not self._flush:  # fills the cache again
                    kernel.submit(plan, stream, packed)
                marks.append(driver.mark(stream))
                kernel.submit(plan, stream, packed)
                marks.append(driver.mark(stream))
            self._wait(plan, stream, runs)
            return [driver.microseconds(*pair) for pair in zip(marks[::2], marks[1::2], strict=True)]
        finally:
            for mark in marks:
                with suppress(DriverError):  # the context is gone, and what was wrong is said already
                    driver.forget(mark)

    def _wait(self, plan: Plan, stream: int, runs: int) -> None:
        wait(plan.kernel.driver, stream, runs * self._timeout, plan)

    def close(self) -> None:
        """Gives the memory back, unless it is gone with the context, or a kernel that hangs would be waited for."""
        if self._room and not self._driver.hangs:
            with suppress(DriverError):
                self._driver.free(self._room)
        self._room = 0


class InSimulator:
    unit = "cycles"
    name = "sim"
    settings = ()

    def __init__(self, arch: str) -> None:
        self.arch = arch

    def settle(self) -> None:
        pass

    def times(self, candidate: Candidate, arguments: Sequence[Any], check: Check) -> list[float]:
        """Cycles of the simulator's cost model. Raises as ``OnDevice.times`` does."""
        from ptxdsl.cuda.simulated import raise_unless_finished

        signature = next(iter(candidate.kernel.compile(self.arch).signatures.values()))
        shape = candidate.shape(signature.block)
        report = candidate.kernel.simulate(
            *arguments, grid=shape.grid, block=shape.block, cluster=shape.cluster, smem=shape.smem, arch=self.arch
        )
        raise_unless_finished(report)
        check(arguments)
        return [float(report.statistics.cycles)]

    def close(self) -> None:
        pass
