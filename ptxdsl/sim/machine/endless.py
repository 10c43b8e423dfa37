"""Runs that never end: nothing changes for long, or the machine is in a state in which it was before.

The second is looked for when for long nothing but memory has changed: no barrier, no asynchronous operation, no thread
that waits or exits. What the warps do next then follows from where they stand, their registers (those that decide,
``program.deciding``) and memory; with turns that are taken in order, a state that comes back goes on coming back.
States are compared with one that is kept, and that is renewed after twice as long each time: a period of any length is
found (Brent, "An Improved Monte Carlo Factorization Algorithm", 1980). Kernels that read a clock are left out. If there
are clusters that have not begun, they may be what the others wait for: some begin then.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from ptxdsl.record import dataclass
from ptxdsl.sim.layout import WARP, offset
from ptxdsl.sim.limits import LIVELOCK, Idleness, LimitReached
from ptxdsl.sim.machine.schedule import RoundRobin
from ptxdsl.sim.translate.runtime_fields import own

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.warp import Warp

_LONG = 10**8  # warp-instructions in which nothing but memory changes
_WARPS_AT_ONCE = 4  # so many are compared each time that limits are looked at, or as many times fewer
# Compiled code's own words in a warp's record, but for those that count.
_COUNTED = range(own("marked") // 4, own("marked") // 4 + 2)
_KEPT_WORDS = [word for word in range(offset(WARP, "own") // 4, offset(WARP, "wide") // 4) if word not in _COUNTED]


@dataclass(slots=True, eq=False)
class State:
    """turn: when it was; warps, memory: digests."""

    turn: int
    warps: bytes
    memory: bytes


class Endless:
    """``look`` is called now and then, after a number of turns that is always the same."""

    def __init__(self, machine: Machine, idle_steps: int) -> None:
        self._machine = machine
        self._idleness = Idleness(idle_steps)
        self._others = -1  # of all changes but those of memory by compiled code
        self._since = 0
        self._looks, self._next, self._span = 0, 0, 1
        self._kept: State | None = None

    def look(self) -> None:
        """Raises LimitReached."""
        machine = self._machine
        self._idleness.look(machine.version, machine.statistics)
        others, executed = machine.changes + machine.memory.host_writes, machine.statistics.warp_instructions
        if others != self._others:
            self._others, self._since = others, executed
            self._begin()
        elif executed - self._since > _LONG and self._in_order() and not machine.snapshots.reads_clock:
            self._compare()

    def _begin(self) -> None:
        self._looks, self._next, self._span, self._kept = 0, 0, 1, None

    def _in_order(self) -> bool:
        """Whether turns are taken in the order in which they were asked for."""
        machine = self._machine
        return machine.host_turns is not None or isinstance(machine.picker, RoundRobin)

    def _compare(self) -> None:
        warps = [
            warp
            for cluster in self._machine.resident.values()
            for cta in cluster.ctas
            for warp in cta.warps
            if warp.live
        ]
        if self._machine.pollers or any(warp.polls for warp in warps):
            return  # what they do depends on how often they have looked
        self._looks += 1
        if self._looks % (1 + len(warps) // _WARPS_AT_ONCE):
            return
        digest, kept, turn = self._digest(warps), self._kept, self._machine.statistics.turns
        if kept is not None and digest == kept.warps and self._memory() == kept.memory:
            if self._start_clusters():
                self._begin()
                return
            raise LimitReached(
                LIVELOCK,
                f"livelock: the warps and the memory are as they were {turn - kept.turn:,} turns before, and nothing "
                "else has happened since",
                "look at what ends the loops in which the warps are: nobody brings it about",
            )
        if self._looks >= self._next:
            self._kept = State(turn, digest, self._memory())
            self._span *= 2
            self._next = self._looks + self._span * (1 + len(warps) // _WARPS_AT_ONCE)

    def _start_clusters(self) -> bool:
        """As many more as there are, so that the last one of many comes soon."""
        stall = self._machine.stall
        started = [stall.start_cluster() for _ in range(len(self._machine.resident))]
        return any(started)

    def _digest(self, warps: list[Warp]) -> bytes:
        machine = self._machine
        found = blake2b(" ".join(entity.name for entity in machine.picker.waiting()).encode())
        for warp in warps:
            found.update(machine.snapshots.take(warp, warp.live, 0).state)
            found.update(warp.status.tobytes())
            words = [warp.words[word] for word in _KEPT_WORDS]
            found.update(repr((words, warp.blocked, warp.parked, warp.patience, warp.patience_left)).encode())
        return found.digest()

    def _memory(self) -> bytes:
        machine = self._machine
        found = blake2b(machine.memory.digest())
        for cluster in machine.resident.values():
            for cta in cluster.ctas:
                found.update(cta.window.data)
                found.update(cta.local.data)
        return found.digest()
