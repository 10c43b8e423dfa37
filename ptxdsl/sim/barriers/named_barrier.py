"""The named barriers of a CTA, in records that turns in host code change as well (``layout.NAMED``)."""

from __future__ import annotations

import ctypes
from collections.abc import Container
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.host import Group, WaitsFor
from ptxdsl.sim.layout import CTA_WARPS, MOST_PARTIES, NAMED, cells, offset
from ptxdsl.sim.machine.faults import BARRIER_MISUSE
from ptxdsl.sim.machine.memory import aligned_bytes, host_address
from ptxdsl.sim.record_fields import fields_of

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.warp import Warp

BARRIERS = 16  # of a CTA
_KEY = "barriers"
_BY_MACHINE = -1
_KEPT_RESULTS = 4
_LANES, _TOUCHED, _PARTY = (offset(NAMED, name) // 4 for name in ("lanes", "touched", "party"))


class NamedBarrier(ctypes.Structure):
    """One of a CTA's sixteen. arrived: threads of the generation under way; count: for how many it waits, 0 for all.

    results: of a ``.red``, by generation the votes; voted: whether there are some already. parties: which warps (a bit
    each) met in generations with a thread count, and where the first of them arrived.
    """

    _fields_ = fields_of(NAMED, "generation", "parties")
    generation: int
    latest: int
    done_at: int
    arrived: int
    count: int
    first: int
    who: int
    voted: int

    def __new__(cls, machine: Machine, cta: Cta, id: int, memory: npt.NDArray[np.uint8]) -> Self:
        return cls.from_buffer(cells(memory, "Q"))

    __hash__ = object.__hash__  # ctypes has none

    def __init__(self, machine: Machine, cta: Cta, id: int, memory: npt.NDArray[np.uint8]) -> None:
        """memory: of its record."""
        self.machine = machine
        self.cta = cta
        self.id = id
        self.record = host_address(memory)
        self.results: dict[int, list[bool]] = {}
        self.met: dict[int, Instruction] = {}
        self._votes: list[bool] = []
        self._origin: Instruction | None = None
        self._words = cells(memory, "I")
        self._marks = cells(memory, "i")

    # Looking

    @property
    def origin(self) -> Instruction | None:
        """Where the generation under way began."""
        return self.machine.sites[self.first - 1].instruction if self.first > 0 else self._origin

    def lanes_of(self, warp: Warp) -> int:
        """Those of a warp that have arrived."""
        return self._words[_LANES + warp.index]

    def satisfied(self) -> bool:
        if not self.first:
            return False
        if not self.count:
            return self.arrived >= self.cta.live_threads
        return self.arrived == self.count

    def missing(self, used: Container[Warp]) -> tuple[Warp, ...]:
        """The warps that have not arrived; of a barrier with a count, if there are such, those that used it before."""
        found = tuple(warp for warp in self.cta.warps if warp.live & ~self.lanes_of(warp))
        known = tuple(warp for warp in self.cta.warps if warp in used and not self.lanes_of(warp))
        return known or found if self.count else found

    def describe(self, what: str, used: Container[Warp]) -> WaitsFor:
        expected = self.count or self.cta.live_threads
        state = f"{self.arrived} of {expected} threads have arrived"
        return WaitsFor(what, str(self.id), state, key=self, by=self.missing(used))

    # Changing

    def arrive(self, group: Group, count: int | None, threads: int, votes: list[bool]) -> None:
        if not self.first:
            self.count, self.first, self._origin = count or 0, _BY_MACHINE, group.instruction
        elif self.count != (count or 0):
            raise self._other_count(group, count)
        self.arrived += threads
        self._words[_LANES + group.warp.index] |= group.mask
        self.who |= 1 << group.warp.index
        if votes:
            self._votes += votes
            self.voted = 1
        self.latest = max(self.latest, group.time)
        group.touch(self)
        if group.machine.watch is not None:
            group.machine.watch.comes(group, self, self.generation)
        if self.count and self.arrived > self.count:
            raise group.fault(
                BARRIER_MISUSE,
                f"{self.arrived} threads have arrived on barrier {self.id}, which waits for {self.count}",
                "the thread count must be the number of threads in all warps that take part",
            )
        self.complete()

    def _other_count(self, group: Group, count: int | None) -> Exception:
        origin = self.origin
        assert origin is not None
        there = f"{self.count} threads" if self.count else "all threads"
        here = "all threads" if count is None else f"{count} threads"
        return group.fault(
            BARRIER_MISUSE,
            f"'{group.instruction.opcode}' on barrier {self.id} for {here}, while others have arrived on it for "
            f"{there} at {group.machine.places.line_text(origin)}",
            "give a barrier the same thread count everywhere, and each role a barrier id of its own",
            [(origin, f"those others arrived on barrier {self.id} here")],
        )

    def complete(self) -> None:
        """Begins the next generation if this one is complete."""
        if not self.satisfied():
            return
        if self.count:
            self._note_party()
        if self._votes:
            self.results[self.generation] = self._votes
            for old in [g for g in self.results if g <= self.generation - _KEPT_RESULTS]:
                del self.results[old]
        self.generation += 1
        self.done_at = self.latest
        self.arrived = self.count = self.first = self.who = self.voted = 0
        self._origin, self._votes = None, []
        for warp in range(CTA_WARPS):
            self._words[_LANES + warp] = 0

    def _note_party(self) -> None:
        origin = self.origin
        assert origin is not None
        if len(self.met) < MOST_PARTIES and self.who not in self.met:
            self._words[_PARTY + len(self.met)] = self.who
            self.met[self.who] = origin
            self.parties = len(self.met)

    # Who has come, for reports

    def touched(self, warp: Warp) -> None:
        """The machine has noted where a warp has come last."""
        self._marks[_TOUCHED + warp.index] = _BY_MACHINE

    def arrivals_in_host_code(self) -> list[tuple[Warp, int]]:
        """Of warps that have come since the machine noted it: the site where they came last."""
        marks = [(warp, self._marks[_TOUCHED + warp.index]) for warp in self.cta.warps]
        return [(warp, mark - 1) for warp, mark in marks if mark > 0]


def barriers_of(group: Group) -> list[NamedBarrier]:
    """Those of the group's CTA."""
    return group.machine.state(group.cta, _KEY, lambda: _made(group.machine, group.cta))


def barriers_used(cta: Cta) -> list[NamedBarrier]:
    """Those of a CTA, if anybody has come to any."""
    found: list[NamedBarrier] = cta.states.get(_KEY, [])
    return found


def _made(machine: Machine, cta: Cta) -> list[NamedBarrier]:
    size = NAMED.itemsize
    memory: npt.NDArray[Any] = aligned_bytes(BARRIERS * size)
    made = [NamedBarrier(machine, cta, id, memory[id * size : (id + 1) * size]) for id in range(BARRIERS)]
    if machine.host_turns is not None:
        machine.host_turns.named(cta, made)
    return made
