"""What a run tells to whoever watches it: accesses to memory, asynchronous work, and all that orders them.

A ``Watch`` is given to ``launch.simulate``; the machine, barriers, copies and matrix units call it as things happen, in
the order in which they happen in this run. A warp's loads, stores and atomic operations come with ``ran``, in the
access log of ``layout.LOG``; accesses of host instructions and of asynchronous work with ``touches`` and ``tensor``.
Who does something is the one that ``stands`` or ``turn`` has told of last.

Without a watch nothing of this costs anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ptxdsl.sim.layout import ACCESS, LOG, cells, offset

if TYPE_CHECKING:
    from ptxdsl.sim.barriers.mbarrier import Barrier
    from ptxdsl.sim.host import Group
    from ptxdsl.sim.machine.cta import AgentEntity, Cluster, Cta
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.memory import Memory
    from ptxdsl.sim.machine.warp import Warp

_COUNT, _ENTRIES = offset(LOG, "count") // 8, offset(LOG, "entries") // 8

# reduce: an asynchronous reduction, atomic in each element.
How = Literal["read", "write", "reduce"]


class Watch:
    """Does nothing; those who want to know override what they want. in_bulk: whether it takes ``happened``; else all
    turns are the machine's."""

    in_bulk = False

    def happened(self, events: npt.NDArray[Any], phases: npt.NDArray[np.int64], words: memoryview) -> None:
        """Turns have been taken in host code: ``layout.EVENT`` records, the phases that they speak of, and the words of
        the access log, beginning with those of the first event. All is overwritten afterwards."""

    def begin(self, machine: Machine) -> None:
        """Before the first turn."""

    def ran(self, warp: Warp) -> None:
        """Compiled code of a warp has come back."""

    def joined(self, warp: Warp, mask: int) -> None:
        """Lanes that stood at different ``bar.warp.sync`` have met. (Those at the same one: see the access log.)"""

    def stands(self, group: Group) -> None:
        """A group is about to execute its host instruction, or to finish it after a wait."""

    def only(self, mask: int) -> None:
        """What follows of this instruction is done by these of its lanes, and not by all of them together."""

    def executed(self, group: Group) -> None:
        """It has; an instruction that only looked and did not find what it asks for is not told of."""

    def issued(self, entity: AgentEntity) -> None:
        """Asynchronous work has been started."""

    def turn(self, entity: AgentEntity) -> None:
        """Asynchronous work is about to make a step."""

    def part(self, rank: int) -> None:
        """What follows of this work is done for one warp of a warpgroup."""

    def touches(self, cta: Cta, space: str, starts: int | npt.NDArray[Any], size: int, how: How) -> None:
        """Bytes [start, start + size), of several starts those of each. cta: from which space and addresses are seen,
        as ``Memory.view`` has them. An array of starts that cannot be written is kept, and always means the same."""

    def touches_in_parts(self, cta: Cta, space: str, parts: tuple[npt.NDArray[Any], ...], size: int, how: How) -> None:
        """The same of the warps of a warpgroup, of each its own part. The tuple is kept, and always means the same."""
        for rank, starts in enumerate(parts):
            self.part(rank)
            self.touches(cta, space, starts, size, how)

    def tensor(self, cta: Cta, lanes: int, first: int, end: int, how: How) -> None:
        """Tensor memory of a CTA: a mask of 128 lanes, columns [first, end)."""

    def initialised(self, barrier: Barrier) -> None:
        """An mbarrier has begun its life."""

    def invalidated(self, barrier: Barrier) -> None:
        """It ends."""

    def used(self, barrier: Barrier) -> None:
        """Somebody works on an mbarrier without arriving: expect-tx, a test."""

    def arrives(self, barrier: Barrier, count: int) -> None:
        """So many arrivals are about to count; 0: a complete-tx."""

    def completed(self, barrier: Barrier) -> None:
        """A phase is complete; ``barrier.phase`` is the one after it."""

    def saw(self, group: Group, barrier: Barrier) -> None:
        """A wait has found the phase before ``barrier.phase`` complete."""

    def comes(self, group: Group, meeting: object, generation: int) -> None:
        """The group arrives at a barrier of the CTA or cluster, in this generation of it."""

    def leaves(self, group: Group, meeting: object, generation: int) -> None:
        """The group goes on behind it."""

    def takes_registers(self, cta: Cta, count: int, left: int) -> None:
        """A warp gets registers of its block's pool: how many of a thread, and how many are left."""

    def exited(self, cta: Cta) -> None:
        """The last thread of a CTA has exited; asynchronous work of its may be under way."""

    def gone(self, cluster: Cluster) -> None:
        """A cluster's CTAs are done, its memory goes to another."""


class AccessLog:
    """The memory of ``layout.LOG`` for one launch."""

    def __init__(self, memory: Memory, capacity: int = 1 << 17) -> None:
        self._capacity = capacity
        self._entries: npt.NDArray[Any] = np.empty(2 * capacity, ACCESS)  # of turns in host code, of many at once
        self._log: npt.NDArray[Any] = np.zeros(1, LOG)
        self._start = int(self._entries.ctypes.data)
        self._log["capacity"], self._log["entries"] = capacity, self._start
        self._fields = cells(self._log.view(np.uint8), "Q")
        self.words = cells(self._entries.view(np.uint8), "Q")
        self.lost = 0  # accesses for which there was no room
        memory.launch["trace"] = self._log.ctypes.data

    @property
    def count(self) -> int:
        """How many records there are for ``take``, in ``words``."""
        count = self._fields[_COUNT]
        return count if count <= self._capacity else self._capacity

    def clear(self) -> None:
        """Those of ``words`` are done with."""
        count = self._fields[_COUNT]
        if count > self._capacity:
            self.lost += count - self._capacity
        self._fields[_COUNT] = 0

    @property
    def room(self) -> int:
        """Records of turns in host code after which they must come back."""
        return self._capacity

    def rewind(self, lost: int) -> None:
        """The records of turns in host code are done with."""
        self._fields[_ENTRIES] = self._start
        self.lost += lost

    def take(self) -> npt.NDArray[Any] | None:
        """The records since the last call, None if there are none. They are overwritten when a warp runs again."""
        kept = self.count
        self.clear()
        return self._entries[:kept] if kept else None
