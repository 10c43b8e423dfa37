"""Turns in host code (``translate.runtime_turns``): the memory that they share with the machine, and their results.

The queue and the lists of those who wait are kept where both sides see them: entities are numbers (*slots*) there.
Only warps of which host code knows all have a record in the table of slots; the turns of others, and of asynchronous
work, are the machine's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.barriers.cta_barriers import waits_for as waits_for_threads
from ptxdsl.sim.barriers.mbarrier import Barrier
from ptxdsl.sim.barriers.mbarrier_instructions import waits_for
from ptxdsl.sim.barriers.named_barrier import NamedBarrier
from ptxdsl.sim.layout import CLUSTER, EVENT, INERT, MOST_EVENTS, NEXT, NOT_KNOWN, SITE, TURNS, WARP, cells, offset
from ptxdsl.sim.machine.cta import AgentEntity, Cluster, Cta
from ptxdsl.sim.machine.group import WarpGroup
from ptxdsl.sim.machine.host_sites import host_site
from ptxdsl.sim.machine.memory import aligned_bytes, host_address
from ptxdsl.sim.machine.waits import HANDLER, POLL, Blocked
from ptxdsl.sim.machine.warp import WAIT_QUAD, Warp
from ptxdsl.sim.translate.runtime import address

if TYPE_CHECKING:
    from ptxdsl.sim.host import Wait
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.matrix.warpgroup import Warpgroup
    from ptxdsl.sim.watch import Watch

Entity = Warp | AgentEntity

_LOOKED_AT = (HANDLER, POLL)  # waits that may end without their warp having a turn
_MOST_TURNS = 256  # at once
_FIRST_ROOM = 64  # slots; a power of two
_WAIT_AT_QUAD = offset(WARP, "wait_at") // 8
_WAIT_MASK, _WAIT_FOR = offset(WARP, "wait_mask") // 4, offset(WARP, "wait_for") // 4
_LOW = (1 << 32) - 1  # of a generation
_HEAD, _COUNT, _LEFT, _SLOT, _CODE, _REASON = (
    offset(TURNS, name) // 4 for name in ("head", "count", "left", "slot", "code", "reason")
)
_HOSTS, _CHANGES, _WRITES = (offset(TURNS, name) // 4 for name in ("hosts", "changes", "writes"))
_ISSUED, _RETIRED, _BEFORE = (offset(TURNS, name) // 8 for name in ("issued", "retired", "before"))
_HAPPENED, _LOGGED, _LOST = (offset(TURNS, name) // 4 for name in ("happened", "logged", "lost"))
_BLOCKED_COUNT = offset(CLUSTER, "count") // 4


class Queue:
    """Those that can move, round robin."""

    def __init__(self, turns: HostTurns) -> None:
        self._turns = turns
        self._words = turns.words
        self.cells = cells(aligned_bytes(4 * _FIRST_ROOM), "I")
        self._ring = _FIRST_ROOM - 1

    def add(self, entity: Entity) -> None:
        words = self._words
        count = words[_COUNT]
        self.cells[words[_HEAD] + count & self._ring] = entity.slot
        words[_COUNT] = count + 1

    def take(self) -> Entity:
        words = self._words
        head = words[_HEAD]
        words[_HEAD] = head + 1 & self._ring
        words[_COUNT] -= 1
        return self._turns.entity(self.cells[head & self._ring])

    def waiting(self) -> list[Entity]:
        head = self._words[_HEAD]
        slots = [self.cells[head + k & self._ring] for k in range(len(self))]
        return [self._turns.entity(slot) for slot in slots]

    def __len__(self) -> int:
        return self._words[_COUNT]

    def widen(self, room: int) -> npt.NDArray[np.uint8]:
        """Makes room for so many slots, a power of two."""
        head = self._words[_HEAD]
        slots = [self.cells[head + k & self._ring] for k in range(len(self))]
        memory = aligned_bytes(4 * room)
        self.cells, self._ring = cells(memory, "I"), room - 1
        for k, slot in enumerate(slots):
            self.cells[k] = slot
        self._words[_HEAD] = 0
        return memory


class Waiting(MutableMapping[Any, None]):
    """Those of a cluster that wait, in the order in which they began to. record: host address of its CLUSTER."""

    def __init__(self, turns: HostTurns, warps: int) -> None:
        self._turns = turns
        self._warps = warps  # of the cluster: host code adds no others
        self._record = aligned_bytes(CLUSTER.itemsize)
        self._words = cells(self._record, "I")
        self.record = host_address(self._record)
        self._cells = memoryview(b"").cast("I")
        self._widen(2 * warps + 16)

    def _widen(self, room: int) -> None:
        slots: list[int] = self._cells[: len(self)].tolist()
        self._room, self._memory = room, aligned_bytes(4 * room)
        self._cells = cells(self._memory, "I")
        for k, slot in enumerate(slots):
            self._cells[k] = slot
        self._record.view(CLUSTER)["blocked"] = host_address(self._memory)

    def __setitem__(self, entity: Entity, _: None) -> None:
        count = len(self)
        if count + self._warps >= self._room:
            self._widen(2 * self._room)
        self._cells[count] = entity.slot
        self._words[_BLOCKED_COUNT] = count + 1

    def __delitem__(self, entity: Entity) -> None:
        slots = self._cells[: len(self)].tolist()
        try:
            at = slots.index(entity.slot)
        except ValueError:
            raise KeyError(entity) from None
        for k, slot in enumerate(slots[at + 1 :], at):
            self._cells[k] = slot
        self._words[_BLOCKED_COUNT] = len(slots) - 1

    def __getitem__(self, entity: Entity) -> None:
        if entity.slot not in self._cells[: len(self)].tolist():
            raise KeyError(entity)

    def __iter__(self) -> Iterator[Entity]:
        return map(self._turns.entity, self._cells[: len(self)].tolist())

    def __len__(self) -> int:
        return self._words[_BLOCKED_COUNT]


class HostTurns:
    """Of one machine under round robin. barriers: the live mbarriers by the host address of their record; meetings: the
    named barriers; warpgroups: those that have executed ``wgmma``."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.barriers: dict[int, Barrier] = {}
        self.meetings: dict[int, NamedBarrier] = {}
        self.warpgroups: dict[int, Warpgroup] = {}
        self._entities: list[Entity | None] = [None]  # slot 0 is nobody's
        self._free: list[int] = []
        self._record = aligned_bytes(TURNS.itemsize)
        self.words, self._quads = cells(self._record, "I"), cells(self._record, "Q")
        self._codes = cells(self._record, "i")
        self.queue = Queue(self)
        self._sites = aligned_bytes(SITE.itemsize * len(machine.sites))
        for number, site in enumerate(machine.sites):
            host_site(machine, self._sites.view(SITE)[number], number, site)
        self._executed = self._sites.view(SITE)["executed"]
        fields = self._record.view(TURNS)
        fields["run"] = machine.code.address
        fields["launch"] = host_address(machine.memory.record_bytes)
        fields["sites"] = self._first_site = host_address(self._sites)
        fields["fuel"] = machine.fuel
        self._known = memoryview(b"").cast("Q")  # by slot: the record of a warp, or 0
        self._widen(_FIRST_ROOM)
        self._watch = machine.watch
        if machine.watch is not None and machine.log is not None:
            self._events = aligned_bytes(EVENT.itemsize * MOST_EVENTS * _MOST_TURNS).view(EVENT)
            self._phases = aligned_bytes(8 * MOST_EVENTS * _MOST_TURNS).view(np.int64)
            fields["events"], fields["phases"] = host_address(self._events), host_address(self._phases)
            fields["log_room"] = machine.log.room
        self._address = host_address(self._record)
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address("turns"))

    @property
    def useful(self) -> bool:
        """Whether the program has instructions that host code can execute."""
        return bool(self._sites.view(SITE)["kind"].any())

    # Entities

    def _widen(self, room: int) -> None:
        """Makes room for so many slots, a power of two."""
        table = aligned_bytes(8 * room)
        known = cells(table, "Q")
        for slot, record in enumerate(self._known):
            known[slot] = record
        self._room, self._table, self._known = room, table, known
        self._ring = self.queue.widen(room)
        fields = self._record.view(TURNS)
        fields["warps"], fields["queue"], fields["ring"] = host_address(table), host_address(self._ring), room - 1

    def entity(self, slot: int) -> Entity:
        found = self._entities[slot]
        assert found is not None
        return found

    def enter(self, entity: Entity) -> None:
        """Gives a new one a slot."""
        if self._free:
            entity.slot = self._free.pop()
            self._entities[entity.slot] = entity
            return
        entity.slot = len(self._entities)
        if entity.slot == self._room:
            self._widen(2 * self._room)
        self._entities.append(entity)

    def leave(self, entity: Entity) -> None:
        """It is done."""
        self._known[entity.slot] = NOT_KNOWN
        self._entities[entity.slot] = None
        self._free.append(entity.slot)

    def begin(self, cluster: Cluster) -> None:
        """A cluster has been started."""
        warps = [warp for cta in cluster.ctas for warp in cta.warps]
        waiting = Waiting(self, len(warps))
        cluster.blocked, cluster.host_turns = waiting, self
        for warp in warps:
            self.enter(warp)
            warp.storage.fields["cluster"] = waiting.record
            self._known[warp.slot] = warp.address

    def gone(self, cluster: Cluster) -> None:
        """A cluster is done."""
        for cta in cluster.ctas:
            for warp in cta.warps:
                self.leave(warp)
        self.barriers = {at: barrier for at, barrier in self.barriers.items() if barrier.cluster is not cluster}
        self.meetings = {at: named for at, named in self.meetings.items() if named.cta.cluster is not cluster}
        self.warpgroups = {at: group for at, group in self.warpgroups.items() if group.cta.cluster is not cluster}

    # Turns

    def run(self, most: int) -> int:
        """Takes turns, at most so many, as long as they are such as host code knows. Gives their number."""
        words, quads, machine = self.words, self._quads, self.machine
        words[_LEFT] = min(most, _MOST_TURNS)
        words[_HOSTS] = words[_CHANGES] = words[_WRITES] = 0
        quads[_ISSUED] = quads[_RETIRED] = 0
        self._call(self._address)
        turns = min(most, _MOST_TURNS) - words[_LEFT]
        if not turns:
            return 0
        statistics = machine.statistics
        done = words[_REASON] == NEXT
        statistics.turns += turns if done else turns - 1
        statistics.host_instructions += words[_HOSTS]
        statistics.warp_instructions += quads[_ISSUED]
        statistics.thread_instructions += quads[_RETIRED]
        machine.changes += words[_CHANGES]
        machine.memory.host_writes += words[_WRITES]
        warp = self._entities[words[_SLOT]]
        assert isinstance(warp, Warp)
        machine.current = warp
        if self._watch is not None:
            self._tell(self._watch)
        if not done:
            machine.turns.finish(warp, words[_REASON], self._codes[_CODE], quads[_BEFORE])
            statistics.turns += 1
        return turns

    def _tell(self, watch: Watch) -> None:
        """Whoever watches is told of what has happened."""
        words, log = self.words, self.machine.log
        count, words[_HAPPENED] = words[_HAPPENED], 0
        assert log is not None
        if count:
            watch.happened(self._events[:count], self._phases[:count], log.words)
        log.rewind(words[_LOST])
        words[_LOGGED] = words[_LOST] = 0

    def settle(self, warp: Warp) -> None:
        """The machine has taken a turn of a warp: whether the next one can be host code's. Lanes that wait for others
        of their warp stand in nobody's way."""
        knows, inert = not warp.parked and not warp.probe, False
        if warp.has_waits and not warp.quads[WAIT_QUAD]:
            *others, last = warp.waits
            if last.kind in _LOOKED_AT:
                knows = knows and self._hand_over(warp, last)
                inert = not others and last.kind is HANDLER and _waits_for_threads(last.instruction)
            knows = knows and not any(blocked.kind in _LOOKED_AT for blocked in others)
        self._known[warp.slot] = warp.address if knows else INERT if inert else NOT_KNOWN

    def _hand_over(self, warp: Warp, blocked: Blocked) -> bool:
        """Lets host code keep a warp's last wait, if it can."""
        wait = blocked.wait
        if blocked.kind is not HANDLER or wait is None or not self._sites.view(SITE)["kind"][blocked.site]:
            return False
        record, number = self._kept(wait)
        if not record:
            return False
        warp.words[_WAIT_MASK], warp.words[_WAIT_FOR] = blocked.mask, number & _LOW
        warp.quads[_WAIT_AT_QUAD] = self._first_site + SITE.itemsize * blocked.site
        warp.waits.pop()
        warp.quads[WAIT_QUAD] = record
        return True

    def _kept(self, wait: Wait) -> tuple[int, int]:
        """The record of what is waited for, 0 if host code does not keep it, and the parity or generation."""
        if wait.phase is not None:
            barrier, parity = wait.phase
            return barrier.record if barrier.record in self.barriers else 0, parity
        if wait.meeting is not None:
            named, generation = wait.meeting
            return named.record, generation
        if wait.product is not None:
            warpgroup, product = wait.product
            return warpgroup.record, product
        return 0, 0

    def take_back(self, warp: Warp) -> Blocked:
        """A wait that host code has kept, which the machine keeps from now on."""
        record, number = warp.quads[WAIT_QUAD], warp.words[_WAIT_FOR]
        site = (warp.quads[_WAIT_AT_QUAD] - self._first_site) // SITE.itemsize
        warp.quads[WAIT_QUAD] = 0
        self._known[warp.slot] = NOT_KNOWN
        machine = self.machine
        group = WarpGroup(machine, warp, machine.sites[site].instruction, warp.words[_WAIT_MASK])
        if record in self.meetings:
            named = self.meetings[record]
            wait = waits_for_threads(group, named, named.generation - (named.generation - number & _LOW))
        elif record in self.warpgroups:
            wait = self.warpgroups[record].wait_of(group, number)
        else:
            wait = waits_for(group, self.barriers[record], number)
        return Blocked(HANDLER, group, site, wait=wait)

    def ready(self, warp: Warp) -> bool:
        """Whether what host code keeps as the wait of a warp is there."""
        record, number = warp.quads[WAIT_QUAD], warp.words[_WAIT_FOR]
        if record in self.meetings:
            named = self.meetings[record]
            return named.generation & _LOW != number or named.satisfied()
        if record in self.warpgroups:
            return self.warpgroups[record].reached(number)
        return self.barriers[record].completed(number)

    # Barriers

    def named(self, cta: Cta, barriers: Sequence[NamedBarrier]) -> None:
        """Somebody has come to a named barrier of a CTA for the first time. barriers: all of them, by number."""
        cta.storage.fields["named"] = barriers[0].record
        self.meetings.update((barrier.record, barrier) for barrier in barriers)

    def issues(self, cta: Cta, warpgroup: Warpgroup) -> None:
        """A warpgroup of a CTA has come to its first instruction."""
        cta.storage.fields["warpgroups"][0, warpgroup.index] = warpgroup.record
        self.warpgroups[warpgroup.record] = warpgroup

    def born(self, cta: Cta, barrier: Barrier) -> None:
        """The life of an mbarrier of a CTA has begun."""
        cta.storage.place_barrier(barrier.address, barrier.record)
        self.barriers[barrier.record] = barrier

    def died(self, cta: Cta, barrier: Barrier) -> None:
        """It has ended. Who waits for it is told by the machine."""
        cta.storage.place_barrier(barrier.address, 0)
        for peer in barrier.cluster.ctas:
            for warp in peer.warps:
                if warp.quads[WAIT_QUAD] == barrier.record:
                    warp.waits  # noqa: B018  # takes it back
        del self.barriers[barrier.record]

    def take_in(self) -> None:
        """Before a report: what host code has noted of sites and of arrivals is noted by the machine."""
        machine = self.machine
        for number in np.flatnonzero(self._executed).tolist():
            machine.sites[number].executed = True
        for barrier in (*self.barriers.values(), *self.meetings.values()):
            for warp, site in barrier.arrivals_in_host_code():
                machine.touches[barrier][warp] = machine.sites[site].instruction
                barrier.touched(warp)


def _waits_for_threads(instruction: Instruction) -> bool:
    """Whether an instruction waits for threads that come by the machine's turns alone."""
    parts = instruction.parts
    return parts[0] in ("bar", "barrier") and ("cluster" in parts or "red" in parts)
