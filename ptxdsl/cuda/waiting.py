"""Waiting for what runs on the device: a fault and a hang become a DeviceError that can be replayed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxdsl.cuda.driver_interface import Driver
from ptxdsl.cuda.errors import DeviceError, DriverError
from ptxdsl.diagnostics import Diagnostic

if TYPE_CHECKING:
    from ptxdsl.sim.launch import Report

_LONGEST_SLEEP = 0.01  # seconds between two looks

Simulate = Callable[..., "Report"]


def wait(driver: Driver, stream: int, timeout: float | None, what: object, again: Simulate | None = None) -> None:
    """Waits until a stream has come so far; without a time limit (seconds) not for what is being captured.

    what: that which runs, as messages call it. again: how to replay it. Raises DeviceError: E0915 for what has not
    ended in time, E0916 for what failed.
    """
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
                raise _hangs(str(what), timeout, again)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_SLEEP)
        driver.forget(event)
    except DriverError as failure:
        raise failed(failure, str(what), again) from None


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


def _offer(again: Simulate | None) -> str:
    if again is None:
        return "kernel.simulate(…) runs the same kernel in the simulator, which says where and why"
    return "problem.replay() on this exception runs the launch again in the simulator, which says where and why"
