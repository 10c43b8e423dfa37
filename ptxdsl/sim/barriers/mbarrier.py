"""The mbarrier object: what its 8 bytes of shared memory mean, and what each operation makes of it.

Source: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier" (contents, lifecycle, phase
completion, arrive-on, expect-tx and complete-tx operations). A phase is complete when no arrivals are pending and its
tx-count is zero; then the next phase begins with the expected count pending.

The object lives in shared memory, in the card's form, so that data written over a live barrier is found: every
operation compares the bytes with what the last one left there. A table for each cluster holds the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.diagnostics import counted
from ptxdsl.sim.barriers.mbarrier_faults import AGAIN, ahead, arriving, runs_ahead, too_many
from ptxdsl.sim.barriers.mbarrier_record import Record
from ptxdsl.sim.barriers.mbarrier_word import pack, token
from ptxdsl.sim.host import Fault, WaitsFor
from ptxdsl.sim.layout import COUNT_LIMIT, RANK_SHIFT, SHARED_WINDOW, TOKEN_PHASE, cells
from ptxdsl.sim.machine.ledger import history
from ptxdsl.sim.machine.memory import CLUSTER_LIMIT, SHARED_SPACES, host_address
from ptxdsl.sim.machine.warp import Warp

if TYPE_CHECKING:
    from ptxdsl.ptx.module import Instruction
    from ptxdsl.sim.host import Wait
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.memory import Bytes, Memory

SIZE = 8


class Barrier(Record):
    """A live mbarrier.

    initial: the count it was initialised with, by ``origin``. name: in messages; role: what
    the barrier is to a RolePipeline (``consumer_mbar of stage 0``), or ""; place: both. initialiser: the warp and lane
    that initialised it; fenced: whether that thread has made it known to the asynchronous proxy since, by a fence.
    waits: how lanes wait that all name this barrier, by their instruction and the parity.
    """

    def __init__(
        self,
        table: Barriers,
        cta: Cta,
        address: int,
        name: str,
        role: str,
        bytes: Bytes,
        count: int,
        origin: Instruction,
    ) -> None:
        self.name = name
        self.role = role
        self.place = f"{name} ({role})" if role else name
        if not 1 <= count <= COUNT_LIMIT:
            raise Fault(
                "E1133",
                f"the mbarrier {self.place} is initialised with {count} arrivals per phase; a count is 1 to "
                f"{COUNT_LIMIT}",
            )
        super().__init__(table.machine, cta.cluster if table.machine is not None else None, host_address(bytes))
        self.table = table
        self.cluster = cta.cluster
        self.address = address
        self.cell = cells(bytes, "Q")
        self.initial = self.expected = self.pending = count
        self.origin = origin
        self.waits: dict[tuple[Instruction, int], Wait] = {}
        self.initialiser: tuple[Warp, int] | None = None
        self.fenced = False
        self._store()

    # Looking

    def completed(self, parity: int) -> bool:
        """Whether the phase of this parity, the one under way or the one before it, is complete."""
        return self.phase & 1 != parity

    def completed_token(self, state: int) -> bool:
        """Whether the phase that a token speaks of is complete. Raises Fault where it is neither of the two last."""
        age = (self.phase - state) & TOKEN_PHASE
        if age > 1:
            raise Fault(
                "E1138",
                f"a wait on the mbarrier {self.place} with the state of phase {state & TOKEN_PHASE}; the barrier is "
                f"in phase {self.phase}, and a state is good for its own phase and the next one",
                "the state must come from an mbarrier.arrive on the same barrier, in this phase or the one before",
            )
        return age == 1

    @property
    def rank(self) -> int:
        """Of its CTA in the cluster."""
        return self.address >> RANK_SHIFT

    @property
    def side(self) -> str:
        """``producer_mbar`` or ``consumer_mbar``, where it is one of a RolePipeline's."""
        return self.role.partition(" of stage")[0].partition("[")[0]

    def saw(self, warp: Warp | None = None, lanes: int = 0, at: Instruction | None = None) -> None:
        """A wait, of lanes of a warp, has found the phase before this one complete."""
        self.seen = phase = self.phase - 1
        if warp is not None and phase >= 0 and self.seen_by(warp, lanes, phase):
            warp.states[AGAIN] = (self, phase, at)

    def state(self, parity: bool = True) -> str:
        """The phase under way in words."""
        if self.cell[0] != self.word:
            return f"its bytes have been overwritten: {self.cell[0]:#018x} instead of {self.word:#018x}"
        parts = [f"phase {self.phase}{f' (parity {self.phase & 1})' if parity else ''}"]
        if self.pending:
            parts.append(f"{self.pending} of {counted(self.expected, 'arrival')} pending")
        else:
            parts.append("all arrivals have come")
        if self.tx > 0:
            parts.append(f"{counted(self.tx, 'byte')} still expected")
        elif self.tx < 0:
            parts.append(f"{counted(-self.tx, 'byte')} more have come than were expected")
        return ", ".join(parts)

    def describe(self, parity: int) -> WaitsFor:
        return WaitsFor("mbarrier", self.place, self.state(parity=False), parity, key=self)

    # Changing

    def arrive(
        self, lanes: int, count: int, *, complete: bool = True, drop: bool = False, expect: int = 0, time: int = 0
    ) -> int:
        """``lanes`` arrive one after another, ``count`` times each. Gives the first one's state; ``tokens`` has all.
        expect: bytes that each expects before it arrives. complete: not ``.noComplete``."""
        if not 1 <= count <= COUNT_LIMIT:
            raise Fault("E1133", f"an arrival of {count} on the mbarrier {self.place}; a count is 1 to {COUNT_LIMIT}")
        total = lanes * count
        if runs_ahead(self):
            ahead(self)
        if total > self.pending:
            raise too_many(self, lanes, count)
        if drop:
            if total > self.expected:
                raise Fault(
                    "E1134",
                    f"arrive_drop of {total} on the mbarrier {self.place}, which expects {self.expected} per phase",
                )
            self.expected -= total
        first = token(self.phase, self.pending)
        if expect:
            self._add(lanes * expect)
        if self.table.watch is not None:
            self.table.watch.arrives(self, total)
        self.pending -= total
        self._note(arrivals=total, expected=lanes * expect)
        if time > self.latest:
            self.latest = time
        if not self.pending and not self.tx:
            if not complete:
                raise Fault("E1137", f"a .noComplete arrival completes phase {self.phase} of the mbarrier {self.place}")
            self._complete()
        self._store()
        return first

    def add_pending(self, lanes: int) -> None:
        """``cp.async.mbarrier.arrive`` without ``.noinc``: arrivals that will come are added to those pending."""
        if self.pending + lanes > COUNT_LIMIT:
            raise Fault(
                "E1134", f"more than {COUNT_LIMIT} arrivals pending on the mbarrier {self.place}: {self.state()}"
            )
        self.pending += lanes
        self._store()

    def expect_tx(self, size: int, time: int = 0) -> None:
        self._add(size)
        self._note(expected=size)
        self._settle(time)

    def complete_tx(self, size: int, time: int = 0) -> None:
        if self.table.watch is not None:
            self.table.watch.arrives(self, 0)
        self._add(-size)
        self._note(came=size)
        self._settle(time)

    def _settle(self, time: int) -> None:
        if time > self.latest:
            self.latest = time
        if not self.pending and not self.tx and self.expected:
            self._complete()
        self._store()

    def _add(self, size: int) -> None:
        tx = self.tx + size
        if not -COUNT_LIMIT <= tx <= COUNT_LIMIT:
            raise Fault(
                "E1135",
                f"the tx-count of the mbarrier {self.place} would be {tx}; it holds {-COUNT_LIMIT} to {COUNT_LIMIT} "
                f"bytes ({self.state()})",
            )
        self.tx = tx

    def _note(self, arrivals: int = 0, expected: int = 0, came: int = 0) -> None:
        origin = arriving(self)
        if origin is not None:
            assert self.table.machine is not None and self.table.machine.current is not None
            self.ledger.add(self.table.machine.current, origin, arrivals, expected, came)

    def history(self, with_phase_before: bool = False) -> list[tuple[Instruction, str]]:
        """Where it began and what has come in this phase, for notes."""
        machine = self.table.machine
        return history(self, machine is not None and machine.cta_count == 1, with_phase_before)

    def _complete(self) -> None:
        self.phase += 1
        self.pending = self.expected
        self.done_at = self.latest
        machine = self.table.machine
        if machine is not None:
            machine.event("phase", f"{self.place} phase {self.phase - 1}", time=self.done_at)
        if self.table.watch is not None:
            self.table.watch.completed(self)

    def _store(self) -> None:
        self.word = self.cell[0] = pack(self.phase, self.pending, self.tx, self.expected)
        self.table.memory.host_writes += 1


class Barriers:
    """The live barriers of a cluster, by shared address with the CTA's rank; of dead ones, how they ended.

    machine: knows whose turn it is, for reports, and is told of completed phases.
    """

    def __init__(
        self,
        memory: Memory,
        machine: Machine | None = None,
    ) -> None:
        self.memory = memory
        self.machine = machine
        self.watch = machine.watch if machine is not None else None
        self.host_turns = machine.host_turns if machine is not None else None
        self.live: dict[int, Barrier] = {}
        self.ended: dict[int, str] = {}
        self.fences: dict[Cta, Instruction] = {}  # the first fence.mbarrier_init of each CTA

    def find(self, cta: Cta, address: int, operation: str) -> Barrier:
        """The barrier at a shared address. Raises Fault, or memory's AccessFault."""
        barrier = self.live.get(address)
        if barrier is None or (address >> RANK_SHIFT != cta.rank and cta.cluster.ctas[address >> RANK_SHIFT].exited):
            raise self._absent(cta, address, operation)
        if barrier.cell[0] != barrier.word:
            raise Fault(
                "E1131",
                f"{operation}: the 8 bytes of the mbarrier {barrier.place} have been overwritten since its last "
                f"operation: {barrier.cell[0]:#018x} instead of {barrier.word:#018x}",
                "something writes over the barrier; end its life by mbarrier.inval before its memory is used otherwise",
                barrier.history(),
            )
        if self.watch is not None:
            self.watch.used(barrier)
        return barrier

    def _absent(self, cta: Cta, address: int, operation: str) -> Fault:
        self.memory.view(cta, "shared::cluster", address, SIZE, write=True, align=SIZE)  # is it shared memory at all
        place = self.name(cta, address)
        how = self.ended.get(address)
        if how is not None:
            return Fault("E1130", f"{operation} on {place}: the mbarrier there {how}")
        remote = address >> RANK_SHIFT != cta.rank
        return Fault(
            "E1130",
            f"{operation} on {place}: no mbarrier has been initialised there",
            "the other CTA must have passed its mbarrier.init: put barrier.cluster between"
            if remote
            else "mbarrier.init comes first, by one thread, with a barrier for the threads that use it after it",
        )

    def name(self, cta: Cta, address: int) -> str:
        """A shared address in words: ``full[1]``, ``buffer+16``."""
        name = self.memory.shared.place(address)
        return name + (f" of the CTA of rank {address >> RANK_SHIFT}" if len(cta.cluster.ctas) > 1 else "")

    def init(self, cta: Cta, address: int, count: int, origin: Instruction) -> Barrier:
        bytes = self.memory.view(cta, "shared::cta", address, SIZE, write=True, align=SIZE)
        name, role = self.name(cta, address), self.memory.shared.role(address)
        old = self.live.get(address)
        if old is not None:
            overwritten = old.cell[0] != old.word
            raise Fault(
                "E1132",
                f"mbarrier.init on {old.place}, where a barrier lives that was initialised with "
                f"{counted(old.initial, 'arrival')}"
                + ("; its bytes have been overwritten since" if overwritten else f": {old.state()}"),
                "initialise a barrier once, by one thread, and end it by mbarrier.inval before its memory is reused",
                [(old.origin, f"{old.name} was initialised here before")],
            )
        barrier = Barrier(self, cta, address, name, role, bytes, count, origin)
        self.live[address] = barrier
        self.ended.pop(address, None)
        if self.host_turns is not None:
            self.host_turns.born(cta, barrier)
        if self.watch is not None:
            self.watch.initialised(barrier)
        return barrier

    def inval(self, cta: Cta, address: int) -> None:
        barrier = self.find(cta, address, "mbarrier.inval")
        if self.watch is not None:
            self.watch.invalidated(barrier)
        del self.live[address]
        self.ended[address] = "has been invalidated"
        if barrier.initialiser is not None and not barrier.fenced:
            barrier.initialiser[0].unfenced -= 1
        if self.host_turns is not None:
            self.host_turns.died(cta, barrier)

    def is_spare(self, address: int, size: int) -> bool:
        """Whether no byte of [address, address + size) is a live barrier's."""
        return not any(at < address + size and address < at + SIZE for at in self.live)

    def spare(self, address: int, size: int, operation: str) -> None:
        """Raises Fault where [address, address + size), which is about to be written, has a byte of a live barrier."""
        for at, barrier in self.live.items():
            if at < address + size and address < at + SIZE:
                raise Fault(
                    "E1131",
                    f"{operation} of {size} bytes to shared address {address:#x} writes over the live mbarrier "
                    f"{barrier.place} at {at:#x} ({barrier.state()})",
                    "end the barrier's life by mbarrier.inval before its memory is used otherwise",
                    barrier.history(),
                )


def barriers_of(machine: Machine, cta: Cta) -> Barriers:
    """The table of a CTA's cluster."""
    table: Barriers | None = cta.cluster.states.get(Barriers)
    if table is None:
        table = machine.state(cta.cluster, Barriers, lambda: Barriers(machine.memory, machine))
    return table


def shared_address(space: str, address: int) -> int:
    """A shared address of one given in a shared space, or of a generic one. Raises Fault where it is no shared one."""
    if space in SHARED_SPACES:
        return address
    if not SHARED_WINDOW <= address < SHARED_WINDOW + (CLUSTER_LIMIT << RANK_SHIFT):
        raise Fault("E1130", f"the generic address {address:#x} is not in shared memory, where mbarriers are")
    return address - SHARED_WINDOW
