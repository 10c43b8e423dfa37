"""What a launch asks of a driver, and what it is told: ``driver`` has the one that calls CUDA, tests play others."""

from __future__ import annotations

from typing import Any, Protocol

from ptxdsl.cuda.code import Code
from ptxdsl.record import dataclass

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Device:
    """One GPU and its limits; sizes in bytes, block and grid limits by dimension, max_warps: of a multiprocessor."""

    ordinal: int
    name: str
    capability: tuple[int, int]
    max_threads: int = 1024
    max_block: tuple[int, int, int] = (1024, 1024, 64)
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    max_shared: int = 48 * 1024
    multiprocessors: int = 132
    max_warps: int = 64

    def __str__(self) -> str:
        return f"device {self.ordinal} ({self.name}, compute capability {self.capability[0]}.{self.capability[1]})"


@dataclass(frozen=True)
class Function:
    """A loaded kernel. max_threads: what its registers allow; shared: static bytes; dynamic: bytes allowed so far.

    handle: of the driver, valid in every context and thread of the process. device: the ordinal that the numbers are
    of. code: is loaded while something refers to it.
    """

    handle: int
    max_threads: int
    registers: int
    shared: int
    dynamic: int
    device: int = 0
    code: Code | None = None


class Driver(Protocol):
    """What is asked of a driver.

    launch_ex: cuLaunchKernelEx with byref objects or None for its four pointers, giving a CUresult. devices: how many
    the process may use. process: the id of the one that opened it. hangs: whether a launch was found not to end.
    addresses: of cuLaunchKernelEx and cuCtxGetDevice, for machine code; None where there are none.
    """

    launch_ex: Any
    addresses: tuple[int, int] | None
    devices: int
    process: int
    hangs: bool

    def version(self) -> int: ...

    def error_name(self, status: int) -> str: ...

    def context(self, ordinal: int | None) -> tuple[int, Device]: ...

    def describe(self, ordinal: int) -> Device: ...

    def current_device(self) -> int | None: ...

    def load(self, image: bytes, name: str) -> Function: ...

    def allow_shared(self, function: Function, size: int) -> None: ...

    def allow_large_clusters(self, function: Function) -> None: ...

    def resident_blocks(self, function: Function, threads: int, shared: int) -> int: ...

    def resident_clusters(self, function: Function, config: Any) -> int: ...

    def largest_cluster(self, function: Function, config: Any) -> int: ...

    def pointer_device(self, address: int) -> int | None: ...

    def is_capturing(self, stream: int) -> bool: ...

    def record(self, stream: int) -> int: ...

    def reached(self, event: int) -> bool: ...

    def forget(self, event: int) -> None: ...

    def mark(self, stream: int) -> int: ...

    def microseconds(self, start: int, end: int) -> float: ...

    def allocate(self, size: int) -> int: ...

    def free(self, address: int) -> None: ...

    def fill(self, address: int, size: int, stream: int) -> None: ...

    def l2_bytes(self, ordinal: int) -> int: ...

    def copy_out(self, host: int, device: int, size: int) -> None: ...

    def synchronise(self, stream: int | None = None) -> None: ...
