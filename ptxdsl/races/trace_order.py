"""The trace check's edges: what mbarriers, barriers, fences and groups of asynchronous work order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.races.actors import Actor, Passed, Strand, Work
from ptxdsl.races.clocks import ASYNC_GLOBAL, ASYNC_SHARED, GENERIC, INIT, WAITS, Clock, Domain, nothing
from ptxdsl.races.shadow import Cells, Index
from ptxdsl.races.site_kinds import left
from ptxdsl.races.trace_memory import TraceMemory
from ptxdsl.record import dataclass, field
from ptxdsl.sim.copies.transfer import BULK, CP_ASYNC
from ptxdsl.sim.layout import RANK_SHIFT

if TYPE_CHECKING:
    from ptxdsl.ptx.module import Instruction
    from ptxdsl.sim.barriers.mbarrier import Barrier
    from ptxdsl.sim.host import Group
    from ptxdsl.sim.machine.machine import Machine

Array = npt.NDArray[Any]

_KEPT_GENERATIONS = 4
_STAGE = re.compile(r"of stage (\d+)")
_OFFSET = (1 << RANK_SHIFT) - 1


@dataclass(slots=True, eq=False)
class Gate:
    """An mbarrier. pending: what all arrivals so far have released; done: what those had that the phases which are
    complete consist of. component, time, origin: of its initialisation; cells: where it lies. stage: of a RolePipeline,
    if it is of one. used: the last use by each component. passed: the last phase that each strand's component has
    waited for. waits: for the last phase or the one under way: the phase, who, when and where. knowing: strands'
    components that know of the initialisation. parts: what lanes have told of what they did with others,
    by component and time the lanes. told_by: the asynchronous work that told it last.
    """

    domain: Domain
    pending: Clock
    done: Clock
    component: int
    time: int
    origin: Instruction
    cells: Cells
    stage: int | None
    used: dict[int, tuple[int, Instruction]] = field(default_factory=dict)
    passed: dict[int, int] = field(default_factory=dict)
    waits: list[tuple[int, int, int, Instruction]] = field(default_factory=list)
    knowing: set[int] = field(default_factory=set)
    parts: dict[tuple[int, int], int] = field(default_factory=dict)
    told_by: Work | None = None

    def join(self, strand: Strand) -> None:
        """A strand tells what it knows. What lanes did together is told when each of them has told its part."""
        if not strand.apart:
            self.pending.join(strand.clock)
            return
        clock, parts = strand.tells()
        self.pending.join(clock)
        for component, until, lanes, some in parts:
            told = self.parts.get((component, until), 0) | some
            self.parts[component, until] = told
            if not lanes & ~told:
                self.pending.fit(component + 1)
                own, theirs = self.pending.own, strand.clock.own
                for row in range(len(own)):
                    if theirs[row, component] >= until:
                        own[row, component] = max(own[row, component], until)


class TraceOrder(TraceMemory):
    """Knows what orders accesses."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.gates: dict[Barrier, Gate] = {}
        self.meetings: dict[object, dict[int, Clock]] = {}

    # Instructions

    def executed(self, group: Group) -> None:
        parts = group.instruction.parts
        first = parts[0]
        if first == "fence":
            self._fence(parts)
        elif first == "cp" and len(parts) > 2:
            self._copy_groups(group, parts)
        elif first == "wgmma":
            self._wgmma(group, parts[1])
        elif first == "tcgen05" and parts[1].startswith("wait"):
            how = "read" if parts[1] == "wait::ld" else "write"
            unit = self.units.get((group.cta, (group.warp, how)))
            if unit is not None and unit.last is not None:
                self.strand().know(*unit.last)

    def _fence(self, parts: tuple[str, ...]) -> None:
        strand = self.strand()
        if parts[1] == "mbarrier_init":
            strand.fence(INIT)
        elif parts[1] == "proxy" and any(part.startswith("async") for part in parts[2:]):
            if "global" in parts:
                strand.fence(ASYNC_GLOBAL)
            elif any(part.startswith("shared") or "shared" in part for part in parts):
                strand.fence(ASYNC_SHARED, INIT)
            else:
                strand.fence_all()

    def _copy_groups(self, group: Group, parts: tuple[str, ...]) -> None:
        bulk = parts[2] == "bulk"
        what = parts[3] if bulk and len(parts) > 3 else parts[2]
        if what not in ("commit_group", "wait_group", "wait_all"):
            return
        groups = self.group_of(group.warp, BULK if bulk else CP_ASYNC)
        strand = self.strand()
        if what != "wait_group":
            groups.commit()
        if what == "commit_group":
            return
        keep = left(group.instruction) if what == "wait_group" else 0
        if bulk and parts[-1] == "read":
            # Those whose end is still to be waited for stay where they are.
            for work in groups.read(strand.component, keep):
                strand.know(work.component, work.end)
            return
        for work in groups.waited(keep):
            self._over(work)

    def _over(self, work: Work) -> None:
        """The strand learns that work is over."""
        strand = self.strand()
        strand.know(work.component, work.end)
        if work.writer is not None:
            strand.know(work.writer.component, work.writer.end)

    def _wgmma(self, group: Group, what: str) -> None:
        groups = self.group_of(group.warp, "wgmma")
        unit = self.unit(group.cta, "wgmma", ("wgmma", group.warp))
        if what == "commit_group":
            groups.numbers.append(unit.last[1] if unit.last is not None else 0)
        elif what == "wait_group":
            keep = left(group.instruction)
            last = 0
            while len(groups.numbers) > keep:
                last = groups.numbers.popleft()
            if last and unit.last is not None:
                self.strand().know(unit.last[0], last)

    # mbarriers

    def initialised(self, barrier: Barrier) -> None:
        strand = self.strand()
        self.races.pipelines = True
        domain = strand.domain
        empty = nothing(domain.number)
        cells = self.spaces.shared(strand.warp.cta)
        stage = _STAGE.search(barrier.role)
        number = int(stage[1]) if stage is not None else None
        made = Gate(domain, empty, empty.copy(), strand.component, strand.time, barrier.origin, cells, number)
        self.gates[barrier] = made
        self._on_object(barrier, True)

    def invalidated(self, barrier: Barrier) -> None:
        gate, strand = self.gates.pop(barrier), self.strand()
        own = strand.clock.own
        for component, (time, instruction) in gate.used.items():
            if component != strand.component and (component >= own.shape[1] or own[GENERIC, component] < time):
                self.races.add_live(barrier, strand, self.site(), instruction, component)
                break
        self._on_object(barrier, False)

    def _on_object(self, barrier: Barrier, live: bool) -> None:
        """The object's 8 bytes are written, by a thread of its CTA."""
        strand = self.strand()
        cells = self.spaces.shared(strand.warp.cta)
        index = cells.index(barrier.address & _OFFSET, 8)
        cells.mark(index, False)
        self._access(strand, cells, index, self.site(), False, GENERIC)
        cells.mark(index, live)

    def used(self, barrier: Barrier) -> None:
        gate = self.gates.get(barrier)
        if gate is None:
            return
        actor = self.work or self._strand or self.strand()
        if actor.component != gate.component and actor.component not in gate.knowing:
            self._must_know(actor, barrier, gate)
        doing = self.work or self.group
        assert doing is not None
        gate.used[actor.component] = actor.time, doing.instruction

    def _must_know(self, actor: Actor, barrier: Barrier, gate: Gate) -> None:
        """The initialisation of what it uses."""
        # Copies use it through the async proxy; of tcgen05.commit's arrival the ISA does not say that.
        row = GENERIC if isinstance(actor, Work) and actor.unit.name == "tcgen05" else actor.rows[0]
        component, time, own = gate.component, gate.time, actor.clock.own
        known = component < own.shape[1] and (own[row, component] >= time or own[INIT, component] >= time)
        if known and isinstance(actor, Strand):
            gate.knowing.add(actor.component)
        elif not known:
            generic = component < own.shape[1] and own[GENERIC, component] >= time
            self.races.add_uninitialised(barrier, gate.origin, actor, self.site(), bool(generic))

    def arrives(self, barrier: Barrier, phase: int) -> None:
        gate = self.gates.get(barrier)
        if gate is None:
            return
        if self.work is not None:
            if gate.told_by is not self.work:
                gate.pending.join(self.work.clock)
                gate.told_by = self.work
            return
        strand = self._strand or self.strand()
        assert self.group is not None
        instruction = self.group.instruction
        if ".relaxed" not in instruction.opcode:
            gate.join(strand)
        strand.tick()
        arrival = Passed(strand.time, barrier, phase, instruction, False, None)
        self.races.arrived(strand, arrival)

    def completed(self, barrier: Barrier, phase: int) -> None:
        gate = self.gates.get(barrier)
        if gate is None:
            return
        gate.done = gate.pending.copy()
        gate.parts.clear()
        over = [wait for wait in gate.waits if wait[0] < phase]
        if not over:
            return
        gate.waits = [wait for wait in gate.waits if wait[0] >= phase]
        # Once this phase is complete too, a wait for the one before looks for the wrong one. Lanes of a warp are taken
        # to wait together, though they may have come one after the other.
        own = gate.done.own
        width, item = own.shape[1], own.item
        unknown = [
            wait
            for wait in over
            if wait[1] >= width or (item(GENERIC, wait[1]) < wait[2] and item(WAITS, wait[1]) < wait[2])
        ]
        if not unknown:
            return
        known = {self._waiter(gate, wait) for wait in over if wait not in unknown}
        for wait in unknown:
            if self._waiter(gate, wait) not in known:
                self.races.add_alias(barrier, wait[0], gate.domain, wait[1], wait[3], self.site())

    @staticmethod
    def _waiter(gate: Gate, wait: tuple[int, int, int, Instruction]) -> tuple[object, ...]:
        who = gate.domain.what[wait[1]]
        return wait[0], who.linear, who.warp

    def saw(self, group: Group, barrier: Barrier, phase: int) -> None:
        gate = self.gates.get(barrier)
        if gate is None:
            return
        strand = self._strand or self.strand()
        if ".relaxed" not in group.instruction.opcode:
            strand.clock.join(gate.done)
            strand.told(gate.done)
        strand.tick()
        time, component = strand.time, strand.component
        again = gate.passed.get(component) == phase
        gate.passed[component] = phase
        if not again:
            gate.waits.append((phase, component, time, group.instruction))
        wait = Passed(time, barrier, phase, group.instruction, again, gate.stage)
        self.races.passed(strand, wait)

    def _not_over(self, actor: Actor, cells: Cells, index: Index, sites: int | Array) -> None:
        byte = cells.object_byte(index)
        if byte is None:
            return
        site = sites if isinstance(sites, int) else int(sites[0])
        for barrier in self.gates:
            if self.gates[barrier].cells is cells and 0 <= byte - (barrier.address & _OFFSET) < 8:
                self.races.add_written_over(barrier, actor, site)
                return

    # Barriers of CTAs and clusters

    def comes(self, group: Group, meeting: object, generation: int) -> None:
        strand = self.strand()
        clocks = self.meetings.setdefault(meeting, {})
        clock = clocks.get(generation)
        if clock is None:
            clock = clocks[generation] = nothing(strand.domain.number)
            clocks.pop(generation - _KEPT_GENERATIONS, None)
        if "relaxed" in group.instruction.parts:
            given = nothing(strand.domain.number)
            given.own = np.zeros_like(strand.clock.own)
            given.own[INIT] = strand.clock.own[INIT]
            clock.join(given)
        else:
            clock.join(strand.clock)
        strand.tick()

    def leaves(self, group: Group, meeting: object, generation: int) -> None:
        clock = self.meetings.get(meeting, {}).get(generation)
        if clock is not None:
            strand = self.strand()
            strand.clock.join(clock)
            strand.apart.clear()  # all lanes of its warp have come
            strand.meet()
