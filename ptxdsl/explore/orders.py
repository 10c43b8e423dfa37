"""The order of the parts of one run: which happens before which, and which could have come the other way round.

Happens-before here is that of the run's equivalence class: the order of each entity's parts, and of any two that do
not commute. Two that do not commute, of different entities and with nothing between them that orders them, are
*reversible*: another class of runs has them the other way round (Flanagan, Godefroid 2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.explore.steps import ARRIVE, COME, LEAVE, WAIT, Object, Operation, Part, conflict, follows
from ptxdsl.races.accesses import Key
from ptxdsl.record import dataclass

Array = npt.NDArray[Any]
Clock = list[int]  # by entity the number of its parts that happen before

Late = tuple[int, Operation, list[Operation]]  # a wait, and the operations of a part up to a later phase's arrival

_PHASES_KEPT = 4
_PASSING = (ARRIVE, WAIT, COME, LEAVE)  # what older phases do not matter for


@dataclass(slots=True, eq=False)
class Event:
    """A part. number: of its entity's, from 1. turn: the number of the turn it belongs to."""

    entity: int
    number: int
    turn: int
    clock: Clock


class Memory:
    """Of a piece of memory, for each byte the last event (from 1) that wrote it, and by entity the last that read
    it."""

    def __init__(self) -> None:
        self.size = 0
        self.writes: Array = np.zeros(0, np.int32)
        self.reads: dict[int, Array] = {}

    def fit(self, size: int) -> None:
        if size > self.size:
            self.size = max(size, 2 * self.size)
            self.writes = np.concatenate([self.writes, np.zeros(self.size - len(self.writes), np.int32)])
            for entity, read in self.reads.items():
                self.reads[entity] = np.concatenate([read, np.zeros(self.size - len(read), np.int32)])


class Orders:
    """Of one run. events: in the order in which they happened."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._last: dict[int, Clock] = {}  # by entity, its clock after its last part
        self._born: dict[int, Clock] = {}  # of asynchronous work, that of its issue
        self._memory: dict[Key, Memory] = {}
        self._objects: dict[Object, list[tuple[int, Operation]]] = {}

    def born(self, entity: int) -> None:
        """Asynchronous work begins with what has been added last."""
        if self.events:
            self._born[entity] = self.events[-1].clock

    def add(self, entity: int, turn: int, part: Part) -> tuple[list[Event], Clock]:
        """The earlier events that could have come after this one, and what happens before it whichever comes first."""
        clock = list(self._last.get(entity) or self._born.get(entity) or [])
        before, rivals, late = self._operations(part)
        for index in before:
            _join(clock, self.events[index].clock)
        rivals.update(index for index, wait, done in late if self._overtakes(clock, index, wait, done))
        rivals |= self._accesses(entity, part)
        number = 1 + (clock[entity] if entity < len(clock) else 0)
        event = Event(entity, number, turn, clock)
        reversible = []
        for index in rivals:
            earlier = self.events[index]
            if earlier.entity != entity and not happened(clock, earlier):
                reversible.append(earlier)
        alone = clock[:]
        for earlier in reversible:
            _join(clock, earlier.clock)
        clock.extend([0] * (entity + 1 - len(clock)))
        clock[entity] = number
        self._last[entity] = clock
        self.events.append(event)
        self._remember(len(self.events) - 1, entity, part)
        return reversible, alone

    def _operations(self, part: Part) -> tuple[set[int], set[int], list[Late]]:
        """What must have come before, what does not commute, and waits of which that hangs on other arrivals."""
        before: set[int] = set()
        rivals: set[int] = set()
        late: list[Late] = []
        for at, operation in enumerate(part.operations):
            for index, earlier in self._objects.get(operation.object, ()):
                if follows(earlier, operation):
                    before.add(index)
                elif operation.name == ARRIVE and earlier.name == WAIT and operation.phase > earlier.phase:
                    late.append((index, earlier, part.operations[: at + 1]))
                elif conflict(earlier, operation):
                    rivals.add(index)
        return before, rivals, late

    def _overtakes(self, clock: Clock, index: int, wait: Operation, done: list[Operation]) -> bool:
        """Whether an earlier wait would miss its phase, or would not have been waited for by anybody, if what may come
        before it did. done: the operations of the part up to this arrival; clock: what comes before them.

        To complete the next phase takes as many arrivals as the wait says: those that come after the wait in any case
        do not count.
        """
        known = self._objects[wait.object]
        waited = self.events[index]
        if happened(clock, waited):
            return False
        first = done[-1].phase == wait.phase + 1
        if first and not any(o.name == WAIT and o.phase == wait.phase and self._comes(clock, i) for i, o in known):
            return True
        own = sum(o.count for o in done if o.object == wait.object and o.name == ARRIVE)
        others = sum(
            o.count
            for i, o in known
            if o.name == ARRIVE and o.phase > wait.phase and not happened(self.events[i].clock, waited)
        )
        return own + others >= wait.count

    def _comes(self, clock: Clock, index: int) -> bool:
        return happened(clock, self.events[index])

    def _accesses(self, entity: int, part: Part) -> set[int]:
        found: set[int] = set()
        for access in part.accesses:
            memory = self._memory.setdefault(access.memory, Memory())
            memory.fit(int(access.bytes.max(initial=-1)) + 1)
            found.update(np.unique(memory.writes[access.bytes]).tolist())
            if access.write:
                for other, reads in memory.reads.items():
                    if other != entity:
                        found.update(np.unique(reads[access.bytes]).tolist())
        return {index - 1 for index in found if index}

    def _remember(self, index: int, entity: int, part: Part) -> None:
        for access in part.accesses:
            memory = self._memory[access.memory]
            if access.write:
                memory.writes[access.bytes] = index + 1
                continue
            reads = memory.reads.get(entity)
            if reads is None:
                reads = memory.reads[entity] = np.zeros(memory.size, np.int32)
            reads[access.bytes] = index + 1
        for operation in part.operations:
            known = self._objects.setdefault(operation.object, [])
            known.append((index, operation))
            if operation.name in _PASSING and len(known) > 64:
                oldest = operation.phase - _PHASES_KEPT
                self._objects[operation.object] = [
                    k for k in known if k[1].phase >= oldest or k[1].name not in _PASSING
                ]


def happened(clock: Clock, event: Event) -> bool:
    """Whether an event happens before whatever has this clock."""
    return _at(clock, event.entity) >= event.number


def _at(clock: Clock, entity: int) -> int:
    return clock[entity] if entity < len(clock) else 0


def _join(clock: Clock, other: Clock) -> None:
    for entity, number in enumerate(other):
        if entity == len(clock):
            clock.extend(other[entity:])
            return
        if clock[entity] < number:
            clock[entity] = number
