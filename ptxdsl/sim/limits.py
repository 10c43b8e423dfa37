"""What a run may use, what it used, and how far it is."""

from __future__ import annotations

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.record import dataclass


@dataclass(frozen=True)
class Limits:
    """Where a simulation ends with status ``limit``; looked at every few hundred turns.

    steps: thread-instructions. turns: of warps and asynchronous operations. memory: bytes of module variables, shared
    and local memory, registers and heap, beside the arguments. idle_rounds: how often in a row timed waits may give up
    in vain before that counts as a deadlock.
    """

    steps: int = 10**12
    turns: int = 200_000_000
    memory: int = 4 << 30
    idle_rounds: int = 256


@dataclass(slots=True, eq=False)
class Statistics:
    """What a run has done. thread_instructions, warp_instructions: executed; one of a warp counts once in the latter.

    host_instructions: those of them (of warps) that wait, communicate or start asynchronous work. turns: taken by warps
    and asynchronous operations under the schedule. cycles: the latest clock under the cost model (``sim.timeline``).
    ctas: finished blocks. agents: asynchronous operations started.
    """

    thread_instructions: int = 0
    warp_instructions: int = 0
    turns: int = 0
    host_instructions: int = 0
    cycles: int = 0
    ctas: int = 0
    agents: int = 0


@dataclass(slots=True, eq=False)
class Progress:
    """What a progress bar shows. ctas: finished, of ``grid``."""

    ctas: int
    grid: int
    thread_instructions: int
    turns: int


class LimitReached(Exception):
    def __init__(self, code: str, message: str, help: str) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(code, message, help=help)
