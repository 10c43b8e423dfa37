"""A launch with its arguments bound: checked once, made any number of times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxdsl.cuda.errors import launch_error
from ptxdsl.cuda.launch import LoadedKernel, Plan, recent
from ptxdsl.cuda.library import INVALID_CONTEXT
from ptxdsl.cuda.streams import Current


class Prepared:
    """What ``Kernel.prepare`` gives. Calling it launches: shape and arguments as they were bound, on the stream that
    was given or, where none was, the current one of the arrays' library at the time of the call.

    It keeps its arrays alive. ``bind`` puts other arguments in. A call returns at once and may be captured into a CUDA
    graph; threads may call it at the same time, but not while another binds.
    """

    __slots__ = (
        "_arguments", "_config", "_configs", "_current", "_function", "_kernel", "_launch", "_ordinal", "_packed",
        "_parameters", "_plan", "_record", "_stream",
    )  # fmt: skip

    def __init__(self, kernel: LoadedKernel, plan: Plan, arguments: Sequence[Any], stream: Any) -> None:
        self._kernel = kernel
        self._plan = plan
        self._stream = stream
        self._ordinal = kernel.device.ordinal
        self._launch = kernel.driver.launch_ex
        self._function = kernel.pointer
        self._record = recent.append
        self._configs = plan.configs
        handle, self._packed = kernel.pack(stream, arguments)
        if any(array.donated for _, array in self._packed.arrays):
            raise launch_error(
                "E0906",
                f"a prepared launch of kernel '{kernel.signature.name}' cannot take a donated array: it does not wait",
                help="launch it with kernel[grid, block](…)",
            )
        self._parameters = self._packed.pointer
        self._arguments = tuple(arguments)
        self._config = plan.config(handle)
        current = kernel.current(arguments) if stream is None else None
        self._current = current if kernel.driver.devices == 1 else self._on_own_device(current, handle)

    def __call__(self) -> None:
        """Launches. Raises LaunchError where the driver refuses."""
        current = self._current
        if current is None:
            config = self._config
        else:
            handle = current(self._ordinal)
            config = self._configs.get(handle) or self._plan.config(handle)
        self._record(self._plan)
        status = self._launch(config, self._function, self._parameters, None)
        if status:
            self._again(config, status)

    def bind(self, *arguments: Any) -> Prepared:
        """Puts other arguments in the place of all; itself. Raises LaunchError, with nothing changed."""
        _, packed = self._kernel.pack(self._stream, arguments)
        # in place: the driver's pointers stay as they are
        size = self._kernel.packer.size
        own, new = self._packed, packed
        own.buffer[own.offset : own.offset + size] = new.buffer[new.offset : new.offset + size]
        self._arguments = tuple(arguments)
        return self

    def _again(self, config: Any, status: int) -> None:
        """A thread without a context gets the device's; whatever else the driver says is an error."""
        if status == INVALID_CONTEXT and self._kernel.driver.current_device() is None:
            self._kernel.make_current()
            status = self._launch(config, self._function, self._parameters, None)
        if status:
            self._kernel.refused(self._plan, status)

    def _on_own_device(self, current: Current | None, handle: int) -> Current:
        """The stream of a call, where the launch's device is the current one."""
        device_now, own = self._kernel.driver.current_device, self._kernel.device

        def stream(ordinal: int) -> int:
            now = device_now()
            if now != ordinal and now is not None:
                raise launch_error("E0905", f"the launch was prepared for {own}, and device {now} is current")
            return handle if current is None else current(ordinal)

        return stream

    def __repr__(self) -> str:
        return f"<prepared launch of {self._plan}>"
