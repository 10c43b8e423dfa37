"""A launch with its arguments bound: checked once, made any number of times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from ptxdsl.cuda.fast import NOT_MINE, OFTEN
from ptxdsl.cuda.launch import LoadedKernel, Plan, recent
from ptxdsl.cuda.library import INVALID_CONTEXT
from ptxdsl.cuda.native import FIXED, PREPARED, Stream, functions, stream_of
from ptxdsl.cuda.streams import library_of
from ptxdsl.diagnostics import launch_error


class Prepared:
    """What ``Kernel.prepare`` gives. Calling it launches: shape and arguments as they were bound, on the stream that
    was given or, where none was, the current one of the arrays' library at the time of the call.

    It keeps its arrays alive. ``bind`` puts other arguments in. A call returns at once and may be captured into a CUDA
    graph; threads may call it at the same time, but not while another binds.
    """

    __slots__ = ("_arguments", "_go", "_handle", "_kernel", "_packed", "_plan", "_stream", "_ticks")

    def __init__(self, kernel: LoadedKernel, plan: Plan, arguments: Sequence[Any], stream: Any) -> None:
        self._kernel = kernel
        self._plan = plan
        self._stream = stream
        self._ticks = repeat(False, OFTEN)
        self._handle, self._packed = kernel.pack(stream, arguments)
        if any(array.donated for _, array in self._packed.arrays):
            raise launch_error(
                "E0906",
                f"a prepared launch of kernel '{kernel.signature.name}' cannot take a donated array: it does not wait",
                help="launch it with kernel[grid, block](…)",
            )
        self._arguments = tuple(arguments)
        self._go = self._interpreted()

    def __call__(self) -> None:
        """Launches. Raises LaunchError where the driver refuses."""
        status = self._go()
        if status:
            self._again(status)

    def bind(self, *arguments: Any) -> Prepared:
        """Puts other arguments, by position, in the place of all; itself. Raises LaunchError, with nothing changed."""
        self._handle, self._packed = self._kernel.pack(self._stream, arguments)
        self._arguments = tuple(arguments)
        self._go = self._interpreted()
        if next(self._ticks, True):
            self._to_machine_code()
        return self

    def _interpreted(self) -> Callable[[], int]:
        """The launch as a function in Python that gives the driver's result."""
        kernel, plan, handle = self._kernel, self._plan, self._handle
        launch, function, parameters, ticks = kernel.driver.launch_ex, kernel.pointer, self._packed.pointer, self._ticks
        current = kernel.current(self._arguments) if self._stream is None else None
        ordinal = kernel.device.ordinal
        device_now = None if kernel.driver.devices == 1 else kernel.driver.current_device

        def go() -> int:
            if device_now is not None and device_now() != ordinal:
                return NOT_MINE
            if next(ticks, True):
                self._to_machine_code()
            recent.append(plan)
            config = plan.config(handle if current is None else current(ordinal))
            return int(launch(config, function, parameters, None))

        return go

    def _to_machine_code(self) -> None:
        kernel = self._kernel
        if kernel.driver.addresses is None or functions() is None:
            return
        stream = stream_of(self._arguments, library_of(self._arguments))
        if self._stream is not None or stream.mode == FIXED:
            stream = Stream(FIXED, self._handle)
        packed = self._packed
        image = bytes(packed.buffer[packed.offset : packed.offset + kernel.packer.size])
        self._go = kernel.natives.make(PREPARED, self._plan, stream, (), image)

    def _again(self, status: int) -> None:
        """A thread without a context gets the device's; whatever else the driver says is an error."""
        own, now = self._kernel.device, self._kernel.driver.current_device()
        if status in (NOT_MINE, INVALID_CONTEXT) and now is None:
            self._kernel.make_current()
            status = self._go()
        elif status == NOT_MINE and now != own.ordinal:
            raise launch_error("E0905", f"the launch was prepared for {own}, and device {now} is current")
        if status == NOT_MINE:  # the library did not say its stream; in Python it says why
            status = self._interpreted()()
        if status:
            self._kernel.refused(self._plan, status)

    def __repr__(self) -> str:
        return f"<prepared launch of {self._plan}>"
