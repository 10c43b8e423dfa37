"""One kernel on one device: loaded once, launched any number of times."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from ctypes import byref
from typing import Any

from ptxdsl.artifact import Compiled
from ptxdsl.cuda.arguments import Packed, Packer
from ptxdsl.cuda.configuration import Shape, build_config, check, shape_of
from ptxdsl.cuda.driver_interface import Device, Dim3, Driver
from ptxdsl.cuda.errors import DeviceError, DriverError, forked
from ptxdsl.cuda.fast import Quick, build, write
from ptxdsl.cuda.library import LaunchConfig, pointer_to
from ptxdsl.cuda.loading import load_function
from ptxdsl.cuda.native import Native, Natives, latest
from ptxdsl.cuda.streams import Current, current_of, exported_stream, library_of, stream_handle
from ptxdsl.diagnostics import LaunchError, launch_error
from ptxdsl.record import replace
from ptxdsl.signature import KernelSignature
from ptxdsl.source import Span

_DEFAULT_DYNAMIC = 48 << 10  # bytes of shared memory, static included, that need no opting in
_MOST_PLANS = 256  # shapes of a kernel that are kept
_MOST_CONFIGS = 64  # streams of a shape that are kept
_MOST_QUICK = 8  # classes of arguments of a kernel that have a fast path

# What was launched last in this process: a fault shows at a later call, and names these.
recent: deque[Plan] = deque(maxlen=8)


class Plan:
    """A launch shape that has been checked, with the driver's configurations for the streams it went to."""

    __slots__ = ("__weakref__", "configs", "kernel", "native", "number", "quick", "shape", "shared")

    def __init__(self, kernel: LoadedKernel, shape: Shape, shared: int) -> None:
        self.kernel = kernel
        self.native: list[Native] = []
        self.number = 0
        self.shape = shape
        self.shared = shared
        self.configs: dict[int, Any] = {}
        self.quick = kernel.quick

    def config(self, stream: int) -> Any:
        """The configuration for a stream; the same for every launch, whichever thread makes it."""
        known = self.configs.get(stream)
        if known is None:
            if len(self.configs) >= _MOST_CONFIGS:
                self.configs.clear()
            known = self.configs[stream] = byref(self.structure(stream))
        return known

    def structure(self, stream: int) -> LaunchConfig:
        own = self.kernel.signature.cluster
        return build_config(self.shape, self.shared, stream, self.shape.cluster if own is None else None)

    def __str__(self) -> str:
        return f"kernel '{self.kernel.signature.name}' ({self.shape})"


class LoadedKernel:
    """A compiled kernel, loaded for the device of the current context.

    spans: where the parameters are declared, for errors. quick: launches for classes of arguments seen before. Raises
    LaunchError E0911 where the driver refuses the code.
    """

    def __init__(
        self, driver: Driver, device: Device, compiled: Compiled, signature: KernelSignature, spans: Mapping[str, Span]
    ) -> None:
        self.driver = driver
        self.device = device
        self.compiled = compiled
        self.signature = signature
        self.spans = spans
        self.packer = Packer(signature, spans)
        self.quick: list[Quick] = []
        self.natives = Natives(driver, device, self.packer)
        self._keys: set[tuple[Any, ...]] = set()
        self._plans: dict[Shape, Plan] = {}
        self._lock = threading.Lock()
        function = load_function(driver, device, compiled, signature)
        room = min(function.dynamic, max(_DEFAULT_DYNAMIC - function.shared, 0))
        self.function = replace(function, dynamic=room)
        self.pointer = pointer_to(function.handle)

    def launch(
        self, grid: Dim3, block: Dim3, arguments: Sequence[Any], smem: int | None, stream: Any,
        cluster: Dim3 | None = None,
    ) -> None:  # fmt: skip
        """Checks everything, then starts the kernel; does not wait for it. Raises LaunchError."""
        self.start(self.plan(shape_of(grid, block, smem, cluster)), stream, arguments)

    def plan(self, shape: Shape) -> Plan:
        """The plan of a shape. Raises LaunchError where the kernel or the device does not allow it."""
        known = self._plans.get(shape)
        if known is not None:
            return known
        try:
            shared = check(shape, self.signature, self.device, self.function, self.driver, self._allow)
        except DriverError as failure:
            raise self._failed(failure, f"kernel '{self.signature.name}' ({shape})") from None
        with self._lock:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            known = self._plans.setdefault(shape, Plan(self, shape, shared))
            self.natives.add_to(known)
            return known

    def _allow(self, size: int) -> None:
        # only ever raised: a smaller launch must not take the room from one that another thread prepares
        with self._lock:
            if size > self.function.dynamic:
                self.driver.allow_shared(self.function, size)
                self.function = replace(self.function, dynamic=size)

    def start(self, plan: Plan, stream: Any, arguments: Sequence[Any]) -> None:
        """A launch by the general way; the classes of its arguments get a quick one."""
        handle, packed = self.pack(stream, arguments)
        self.submit(plan, handle, packed)
        self._remember(arguments)
        if any(array.donated for _, array in packed.arrays):
            from ptxdsl.cuda.waiting import wait

            wait(self.driver, handle, None, plan)

    def pack(self, stream: Any, arguments: Sequence[Any]) -> tuple[int, Packed]:
        """The handle of the stream, and the arguments as they go to the driver. Raises LaunchError."""
        if os.getpid() != self.driver.process:
            raise forked()
        given = None if stream is None else stream_handle(stream)
        current = self.current(arguments)

        def handle() -> int:
            if given is not None:
                return given
            return current(self.device.ordinal) if current is not None else exported_stream(arguments)

        packed = self.packer.pack(arguments, handle)
        try:
            self.packer.check_device(packed.arrays, self.device, self.driver)
        except DriverError as failure:
            raise self._failed(failure, f"kernel '{self.signature.name}'") from None
        return handle(), packed

    def current(self, arguments: Sequence[Any]) -> Current | None:
        """How to ask for the current stream of the library that the first array comes from."""
        library = library_of(arguments)
        return None if library is None else current_of(library)

    def submit(self, plan: Plan, stream: int, packed: Packed) -> None:
        """Hands a launch to the driver. Raises LaunchError."""
        recent.append(plan)
        status = self.driver.launch_ex(plan.config(stream), self.pointer, packed.pointer, None)
        if status:
            self.refused(plan, status)

    def refused(self, plan: Plan, status: int) -> None:
        """Raises LaunchError for a launch that the driver did not take."""
        if os.getpid() != self.driver.process:
            raise forked()
        failure = DriverError("cuLaunchKernelEx", self.driver.error_name(status))
        raise self._failed(failure, str(plan), plan) from None

    def release(self) -> None:
        """Its code is unloaded when no plan of it is kept any more."""
        with self._lock:
            self._plans.clear()
            self.quick.clear()
        recent.clear()
        if self.function.code is not None:
            self.function.code.release()

    def make_current(self) -> None:
        """Gives a thread without a context that of the kernel's device. Raises LaunchError."""
        try:
            self.driver.context(self.device.ordinal)
        except DriverError as failure:
            raise self._failed(failure, f"kernel '{self.signature.name}'") from None

    def _remember(self, arguments: Sequence[Any]) -> None:
        """Makes a fast path for arguments of these classes, which were just accepted."""
        if len(self.quick) >= _MOST_QUICK:
            return
        try:
            writer = write(self.packer, arguments, self.device.ordinal)
        except Exception:  # of a library's object that is like no other: the launch has been made, and stays so
            return
        if writer is None:
            return
        key = tuple(writer.key)
        with self._lock:
            if key in self._keys:
                return
            self._keys.add(key)
        ordinal, current_device = self.device.ordinal, self.driver.current_device
        quick = build(
            writer,
            launch=self.driver.launch_ex,
            function=self.pointer,
            room=self._room,
            current=self.current(arguments),
            stream_handle=stream_handle,
            record=recent.append,
            other_device=None if self.driver.devices == 1 else lambda: current_device() != ordinal,
            often=self._to_machine_code,
        )
        with self._lock:
            self.quick.append(quick)
            self.natives.describe(arguments, library_of(arguments))
            self._add_natives()

    def _to_machine_code(self) -> None:
        with self._lock:
            if not self.natives.wanted:
                self.natives.wanted = True
                self._add_natives()

    def _add_natives(self) -> None:
        for plan in self._plans.values():
            self.natives.add_to(plan)

    def _room(self) -> tuple[bytearray, int, Any]:
        room = self.packer.empty()
        return room.buffer, room.offset, room.pointer

    def _failed(self, failure: DriverError, what: str, own: Plan | None = None) -> LaunchError:
        if not failure.lost_context:
            return launch_error("E0912", f"the launch of {what} failed: {failure.words}")
        before = [p for p in (*latest(), *reversed(recent)) if p is not own]
        names = list(dict.fromkeys(str(p) for p in before))[:4]
        culprits = (
            f"one of those launched before is at fault, such as {', '.join(names)}"
            if names
            else "this kernel or one launched before it is at fault"
        )
        help = (
            f"launches are asynchronous: {culprits}; a launch with timeout=… waits and says it of its own kernel. The "
            "CUDA context is lost and the process must be started anew"
        )
        problem = launch_error("E0912", f"{what} was not started: {failure.words}", help=help)
        return DeviceError(problem.diagnostics)
