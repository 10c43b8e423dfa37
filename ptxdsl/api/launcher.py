"""A kernel with its launch shape, as the Python API launches it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxdsl.cuda.configuration import shape_of
from ptxdsl.cuda.launch import Plan
from ptxdsl.cuda.native import Native
from ptxdsl.cuda.shape import dimensions, seconds
from ptxdsl.cuda.streams import stream_handle

if TYPE_CHECKING:
    from ptxdsl.api.kernel import Kernel

_RARE = frozenset({"cluster", "cooperative", "timeout"})  # keywords of launches that few give: others need not look


class Launcher:
    """A kernel with its launch shape, ``kernel[grid, block]``; calling it launches."""

    __slots__ = ("_last", "_native", "block", "given", "grid", "kernel")

    def __init__(self, kernel: Kernel, given: tuple[Any, Any]) -> None:
        self.kernel = kernel
        self.given = given
        self.grid = dimensions(given[0], "grid")
        self.block = dimensions(given[1], "block")
        # the keywords of the last launch and its plan, in one value: threads may launch at the same time
        self._last: tuple[tuple[Any, ...], Plan] | None = None
        self._native: Native | None = None  # that took the arguments of the last launch without keywords

    def __call__(
        self, *arguments: Any, smem: int | None = None, stream: Any = None, pdl: bool = False,
        target: str | None = None, **keywords: Any,
    ) -> None:  # fmt: skip
        """Starts the kernel and returns at once; in the simulator, runs it to its end.

        arguments: arrays of PyTorch, CuPy, JAX, Numba or another library with ``__cuda_array_interface__`` or DLPack
        for pointers, numbers for scalars, tuples or dicts of their fields for structs, a ``TensorMap``; by position, or
        by the parameter's name where that is none of the keywords that follow. smem: dynamic shared memory in bytes,
        None for what the kernel says it uses. stream: None is the current stream of the arrays' library. cluster:
        blocks per cluster, up to 8, or 16 where the device has room. cooperative: all blocks run at the same time.
        pdl: it may begin before the preceding kernel has ended (programmatic dependent launch). target: ``gpu``,
        ``sim``, or None: the simulator if the arrays are NumPy's and no GPU can be used. timeout: seconds; the launch
        waits for the kernel to end, and a fault or a hang is raised here. Raises CompileError, LaunchError, and
        DeviceError for a kernel that fails in the simulator, or on the GPU with ``timeout``.
        """
        native = self._native
        plain = smem is None and target is None and not (pdl or keywords)
        if plain and native is not None and not native(arguments, stream):
            return
        # The classes too, and first: True equals 1 and is no size, and an array of NumPy compares to none of these.
        options: tuple[Any, ...] = smem.__class__, pdl.__class__, target.__class__, smem, pdl, target
        if keywords:
            named = {name: keywords.pop(name) for name in [*keywords] if name not in _RARE}
            arguments = self.kernel._in_order(arguments, named)
            options += (*map(type, keywords.values()), *keywords.items())
            plain = smem is None and target is None and not (pdl or keywords)
        last = self._last
        if last is not None and last[0] == options and self._again(last[1], arguments, stream, plain):
            return
        self._launch(arguments, stream, options, smem, pdl, target, **keywords)

    def _again(self, plan: Plan, arguments: tuple[Any, ...], stream: Any, plain: bool) -> bool:
        """Tries the quick ways of a plan that was launched before; whether one of them took the arguments."""
        for native in plan.native:
            status = native(arguments, stream)
            if status == 0:
                self._native = native if plain else self._native
                return True
            if status > 0:
                self._refused(plan, status)
        for quick in plan.quick:
            status = quick(plan, stream, arguments)
            if status == 0:
                return True
            if status > 0:
                self._refused(plan, status)
        return False

    def _refused(self, plan: Plan, status: int) -> None:
        """Raises for what the driver did not take; returns for a thread without a context, which gets one."""
        driver = plan.kernel.driver
        if driver.error_name(status) != "CUDA_ERROR_INVALID_CONTEXT" or driver.current_device() is not None:
            plan.kernel.refused(plan, status)

    def _launch(
        self, arguments: tuple[Any, ...], stream: Any, options: tuple[Any, ...], smem: int | None, pdl: bool,
        target: str | None, cluster: Any = None, cooperative: bool = False, timeout: float | None = None,
    ) -> None:  # fmt: skip
        from ptxdsl.cuda.simulated import runs_in_simulator

        kernel = self.kernel
        shape = shape_of(self.grid, self.block, smem, cluster, cooperative, pdl)
        # in the simulator too, which has no use for these two: what runs there says the same on the card
        limit = None if timeout is None else seconds(timeout)
        if stream is not None:
            stream_handle(stream)
        if runs_in_simulator(target, arguments, kernel._program.driver is not None):
            from ptxdsl.cuda.simulated import raise_unless_finished

            arch = kernel._program.options.arch
            report = kernel.simulate(
                *arguments, grid=self.grid, block=self.block, cluster=shape.cluster, smem=smem, cooperative=cooperative,
                pdl=pdl, arch=arch,
            )  # fmt: skip
            print(report.output, end="")  # the driver writes what a kernel prints, too
            raise_unless_finished(report)
            return
        loaded = kernel.load(arguments)
        plan = loaded.plan(shape)
        if limit is not None:
            from ptxdsl.cuda.watch import watched

            watched(loaded, plan, stream, arguments, limit)
            return
        self._last = None if isinstance(cluster, list) else (options, plan)  # a list may be another one the next time
        loaded.start(plan, stream, arguments)

    def __repr__(self) -> str:
        return f"{self.kernel!r}[{self.grid}, {self.block}]"
