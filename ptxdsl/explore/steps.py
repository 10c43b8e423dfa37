"""What a turn of the simulator does that others may notice: the parts of a step, and which of them commute.

A *part* is what runs between two points at which another entity could have come first: compiled code up to a host
instruction, the instruction itself, a step of asynchronous work. It has the bytes of memory that it reads and writes,
and operations on objects (mbarriers, barriers of the CTA and cluster, groups of asynchronous work).

Operations on an mbarrier, in phase p: ``arrive`` (an arrival, with its bytes, or bytes that came), ``expect`` (bytes
announced without an arrival), ``wait`` (one that has found phase p complete), ``look`` (one that did not find it, and
goes on), ``block`` (one that did not, and stays), ``begin`` and ``end`` of its life. Arrivals of one phase commute:
counts and bytes are sums. One of the next phase does not commute with them, unless something orders it behind them: in
their place it would have counted for theirs. A wait comes after the arrivals of its phase by itself; whether it
commutes with those of the next one hangs on the others: it does unless they complete that phase without it
(``orders``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.races.accesses import Key
from ptxdsl.record import dataclass, field

Array = npt.NDArray[Any]
Object = tuple[Any, ...]

BEGIN, END, ARRIVE, EXPECT, WAIT, LOOK, BLOCK = "begin", "end", "arrive", "expect", "wait", "look", "block"
COME, LEAVE = "come", "leave"  # of a barrier: arrivals commute, and come before those who go on
DO, JOIN = "do", "join"  # of asynchronous work: a step of it, and the wait for it
USE = "use"  # of what only one can use at a time
TAKE = "take"  # of a block's registers: it commutes as long as there are enough for both


@dataclass(frozen=True, slots=True)
class Operation:
    """phase: of an mbarrier; of a barrier its generation. blocks: a wait that waits by itself. count: of an arrival how
    many they are (as many as there can be if later phases need fewer), and room: how many more its phase takes; of a
    wait, count: how many complete the next phase; of registers that are taken, room: how many are left."""

    object: Object
    name: str
    phase: int = 0
    blocks: bool = True
    count: int = 0
    room: int = 0


@dataclass(slots=True, eq=False)
class Access:
    """Bytes of a piece of memory, by their numbers."""

    memory: Key
    bytes: Array
    write: bool


@dataclass(slots=True, eq=False)
class Part:
    accesses: list[Access] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.accesses or self.operations)


def conflict(a: Operation, b: Operation) -> bool:
    """Whether two operations on one object, of different entities, give another state or result the other way round."""
    first, second = (a, b) if a.name <= b.name else (b, a)
    names = (first.name, second.name)
    if names[0] in (BEGIN, END) or names[1] in (BEGIN, END):
        return True
    if names == (USE, USE):
        return True
    if names in ((COME, COME), (ARRIVE, ARRIVE)):  # who comes for the next one might have come in this one's place
        return first.phase != second.phase
    if names == (ARRIVE, WAIT):
        # The waiter would miss its phase; arrivals that nobody has waited for are also told of.
        return first.phase == second.phase + 1 or (first.phase == second.phase and not second.blocks)
    if names == (ARRIVE, BLOCK):  # before that arrival the wait would have passed
        return first.phase == second.phase - 1
    return names in ((ARRIVE, EXPECT), (ARRIVE, LOOK))


def follows(earlier: Operation, later: Operation) -> bool:
    """Whether the later one could not have been done before the earlier one."""
    if later.name == WAIT:
        return later.blocks and earlier.name == ARRIVE and earlier.phase <= later.phase
    if later.name == LEAVE:
        return earlier.name == COME and earlier.phase == later.phase
    return later.name == JOIN and earlier.name == DO


# A turn that ended the run by a fault, of which it is not known what it depends on.
FATAL = Part(operations=[Operation(("everything",), END)])


def _fills(taken: Operation, waiting: Operation) -> bool:
    """Whether an arrival leaves no room in its phase for another one that was to come in the same, or who takes
    registers too few for another one."""
    return taken.name == waiting.name and taken.name in (ARRIVE, TAKE) and waiting.count > taken.room


def commute(waiting: list[Part], taken: list[Part]) -> bool:
    """Whether a turn that could have been taken does and finds the same behind another entity's, which was taken."""
    if FATAL in waiting or FATAL in taken:
        return False
    for mine in waiting:
        for theirs in taken:
            for one in mine.operations:
                for other in theirs.operations:
                    if one.object == other.object and (
                        conflict(one, other) or follows(one, other) or follows(other, one) or _fills(other, one)
                    ):
                        return False
            for access in mine.accesses:
                for touched in theirs.accesses:
                    if (
                        (access.write or touched.write)
                        and access.memory == touched.memory
                        and len(np.intersect1d(access.bytes, touched.bytes))
                    ):
                        return False
    return True
