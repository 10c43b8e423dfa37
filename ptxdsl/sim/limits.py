"""What a run may use, what it used, and how far it is."""

from __future__ import annotations

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.record import dataclass

STEP_LIMIT, MEMORY_LIMIT, LIVELOCK = "E1185", "E1186", "E1188"

_TURN = 1000  # warp-instructions that take as long as a turn with none


@dataclass(frozen=True)
class Limits:
    """Where a simulation ends with status ``limit``; looked at every few hundred turns.

    steps: thread-instructions. turns: of warps and asynchronous operations. memory: bytes of module variables, shared
    and local memory, registers and heap, besides the arguments. idle_rounds: how many times in a row timed waits may
    expire with nothing else happening before that counts as a deadlock. idle_steps: warp-instructions in a row, a turn
    counting as a thousand, that change nothing: no memory, no barrier, no asynchronous operation.
    """

    steps: int = 10**12
    turns: int = 200_000_000
    memory: int = 4 << 30
    idle_rounds: int = 256
    idle_steps: int = 10**10

    def check(self, done: Statistics, memory: int) -> None:
        """Raises LimitReached. memory: bytes in use."""
        for count, limit, what in (
            (done.thread_instructions, self.steps, "thread-instructions"),
            (done.turns, self.turns, "turns"),
        ):
            if count > limit:
                raise LimitReached(
                    STEP_LIMIT,
                    f"stopped after {count:,} {what}; the limit is {limit:,}",
                    "raise the limit (--steps, ptxdsl.Limits), or look where the warps go round: a loop may not end",
                )
        self.check_memory(memory)

    def check_memory(self, used: int, wanted: int = 0) -> None:
        """Raises LimitReached. used: bytes; wanted: those that the next CTA needs beside them."""
        if used + wanted > self.memory:
            next_cta = f"; the next CTA needs {wanted:,}" if wanted else ""
            raise LimitReached(
                MEMORY_LIMIT,
                f"the simulation uses {used:,} bytes beside the arguments{next_cta}; the limit is {self.memory:,}",
                "raise the limit, or launch fewer CTAs that wait for one another",
            )


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


class Idleness:
    """For how long a run has changed nothing."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._version = -1
        self._turns = self._instructions = 0  # when that began

    def look(self, version: int, done: Statistics) -> None:
        """version: of all that there is to change. Raises LimitReached."""
        if version != self._version:
            self._version, self._turns, self._instructions = version, done.turns, done.warp_instructions
            return
        turns, instructions = done.turns - self._turns, done.warp_instructions - self._instructions
        if instructions + _TURN * turns > self._limit:
            raise LimitReached(
                LIVELOCK,
                f"livelock: in {turns:,} turns with {instructions:,} instructions of warps nothing has changed",
                "look at what ends the loops in which the warps are; if they only take long, raise the limit (--steps)",
            )


class LimitReached(Exception):
    def __init__(self, code: str, message: str, help: str) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(code, message, help=help)
