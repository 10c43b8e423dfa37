"""The trace check: races in one simulated run, also such as another schedule alone would have shown.

Whatever orders two accesses in every run that takes the same decisions is an edge here (``clocks``, ``actors``): the
order of a program, barriers of warps' lanes, CTAs and clusters, arrivals on mbarriers and the waits that see them,
completions of asynchronous work and the groups or barriers that tell of them, fences and flags in memory. Two accesses
that touch the same memory, one of them a write, without a chain of edges between them are a race, in whatever order
this run made them (Lamport 1978; Flanagan, Freund 2009). What the async proxy does is ordered after what the generic
proxy did only by a chain that has a proxy fence on it.

It says nothing of code that this run did not execute, nor of what another outcome of a race would lead to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.check.accesses import LOAD, Spaces, segments
from ptxdsl.check.actors import Actor, Groups, Passed, Strand, Unit, WarpLanes, Work
from ptxdsl.check.clocks import ASYNC_GLOBAL, ASYNC_SHARED, GENERIC, INIT, Clock, Domain, nothing
from ptxdsl.check.flags import Flags
from ptxdsl.check.races import Races
from ptxdsl.check.shadow import Before, Cells
from ptxdsl.check.site_kinds import Sites
from ptxdsl.record import dataclass, field
from ptxdsl.sim.barriers import ClusterBarrier, NamedBarrier
from ptxdsl.sim.layout import RANK_SHIFT
from ptxdsl.sim.transfer import BULK, CP_ASYNC, Transfer
from ptxdsl.sim.watch import How, Watch
from ptxdsl.sim.wgmma import WARPS, Product

if TYPE_CHECKING:
    from ptxdsl.ptx.module import Instruction
    from ptxdsl.sim.cta import AgentEntity, Cluster, Cta, Warp
    from ptxdsl.sim.host import Agent, Group
    from ptxdsl.sim.machine import Machine
    from ptxdsl.sim.mbarrier import Barrier

Array = npt.NDArray[Any]

_ASYNC_UNITS = frozenset(("tma", "wgmma", "tcgen05"))
_KEPT_GENERATIONS = 4
_OFFSET = (1 << RANK_SHIFT) - 1


@dataclass(slots=True, eq=False)
class Gate:
    """An mbarrier. pending: what all arrivals so far have released; done: what those had that the phases which are
    complete consist of. component, time, origin: of its initialisation; cells: where it
    lies. used: the last use by each component. passed:
    the last phase that each strand's component has waited for."""

    domain: Domain
    pending: Clock
    done: Clock
    component: int
    time: int
    origin: Instruction
    cells: Cells
    used: dict[int, tuple[int, Instruction]] = field(default_factory=dict)
    passed: dict[int, int] = field(default_factory=dict)


class TraceCheck(Watch):
    """Watches a run. races: what it has found."""

    def begin(self, machine: Machine) -> None:
        self.machine = machine
        self.sites = Sites([site.instruction for site in machine.sites])
        self.spaces = Spaces(machine.memory, self.sites.strong)
        self.flags = Flags(self.sites, self.spaces)
        self.domains: dict[Cluster, Domain] = {}
        self.lanes: dict[Warp, WarpLanes] = {}
        self.gates: dict[Barrier, Gate] = {}
        self.meetings: dict[object, dict[int, Clock]] = {}
        self.units: dict[tuple[Cta, object], Unit] = {}
        self.groups: dict[tuple[Warp, str], Groups] = {}
        self.works: dict[Agent, Work] = {}
        self.products: dict[Warp, list[Work]] = {}  # of each warp, its parts of those that are not carried out
        self.parts: list[Work] = []  # of the product that is carried out now
        self.unfinished: dict[Cta, dict[int, tuple[int, Instruction]]] = {}  # the last work of each component
        self.races = Races(machine, self.sites)
        self.group: Group | None = None
        self.work: Work | None = None
        self._strand: Strand | None = None
        self._count = 0

    # Who

    def domain(self, cluster: Cluster) -> Domain:
        domain = self.domains.get(cluster)
        if domain is None:
            warps = sum(len(cta.warps) for cta in cluster.ctas)
            domain = self.domains[cluster] = Domain(self._count, 2 * warps + 16)
            self._count += 1
            self.races.domains.append(domain)
        return domain

    def lanes_of(self, warp: Warp) -> WarpLanes:
        lanes = self.lanes.get(warp)
        if lanes is None:
            lanes = self.lanes[warp] = WarpLanes(self.domain(warp.cta.cluster), warp)
        return lanes

    def strand(self) -> Strand:
        """Of the group that stands."""
        if self._strand is None:
            group = self.group
            assert group is not None
            self._strand = self.lanes_of(group.warp).of(group.mask)
        return self._strand

    def unit(self, cta: Cta, name: str, key: object = None) -> Unit:
        found = self.units.get((cta, key or name))
        if found is None:
            made = Unit(self.domain(cta.cluster), cta, name, name in _ASYNC_UNITS)
            found = self.units[cta, key or name] = made
        return found

    def group_of(self, warp: Warp, kind: str) -> Groups:
        found = self.groups.get((warp, kind))
        if found is None:
            found = self.groups[warp, kind] = Groups()
        return found

    def actor(self) -> Actor:
        return self.work if self.work is not None else self.strand()

    def site(self) -> int:
        if self.work is not None:
            return self.work.site
        assert self.group is not None
        return self.sites.of(self.group.instruction)

    # Accesses

    def ran(self, warp: Warp) -> None:
        log = self.machine.log
        records = log.take() if log is not None else None
        if records is None:
            return
        for mask, part in segments(records):
            strand = self.lanes_of(warp).of(mask)
            if not self.sites.orders:
                self._records(strand, part)
                continue
            for orders, some in self.flags.split(part):
                if orders:
                    self.flags.order(strand, some)
                self._records(strand, some)

    def joined(self, warp: Warp, mask: int) -> None:
        self.lanes_of(warp).of(mask)

    def _records(self, strand: Strand, records: Array) -> None:
        for piece in self.spaces.pieces(strand.warp.cta, records):
            cells = piece.cells
            index = cells.index(piece.starts, piece.size)
            sites = piece.sites
            if not isinstance(sites, int):
                count = index.stop - index.start if isinstance(index, slice) else len(index)
                if count != len(sites):
                    sites = np.repeat(sites, count // len(sites))
            if piece.kind == LOAD:
                found = cells.access_read(strand, GENERIC, index, sites)
            else:
                if cells.objects is not None and cells.objects[index].any():
                    self._written_over(strand, cells, index, sites)
                found = cells.access_write(strand, GENERIC, index, sites)
            if found:
                self._tell(strand, cells, found, piece.kind == LOAD)

    def touches(self, cta: Cta, space: str, starts: int | Array, size: int, how: How) -> None:
        actor, site = self.actor(), self.site()
        for cells, offsets in self.spaces.places(cta, space, starts, size):
            self._access(actor, cells, cells.index(offsets, size), site, how)

    def tensor(self, cta: Cta, lanes: int, first: int, end: int, how: How) -> None:
        # A cell is a column of 16 lanes: less than that no two units can have for themselves.
        rows = np.array([row for row in range(8) if lanes >> 16 * row & 0xFFFF])
        index = (rows[:, None] * 512 + np.arange(first, end)).reshape(-1)
        actor = self.actor()
        if isinstance(actor, Strand):  # tcgen05.ld and .st are over when they are waited for
            actor = self._moving(actor, how)
        self._access(actor, self.spaces.tensor(cta), index, self.site(), how, GENERIC)

    def _moving(self, strand: Strand, how: How) -> Work:
        assert self.group is not None
        unit = self.unit(strand.warp.cta, f"tcgen05.{'ld' if how == 'read' else 'st'}", (strand.warp, how))
        component, time = unit.in_order()
        work = Work(unit, component, time, strand.clock.copy(), strand, self.group.instruction, self.site())
        self.races.remember(work)
        return work

    def _access(self, actor: Actor, cells: Cells, index: Any, site: int, how: How, row: int | None = None) -> None:
        if row is None:
            row = actor.rows[0 if cells.own else 1]
        if how != "read" and cells.objects is not None and cells.objects[index].any():
            self._written_over(actor, cells, index, site)
        access = cells.access_read if how == "read" else cells.access_write
        found = access(actor, row, index, site)
        if found:
            self._tell(actor, cells, found, how == "read")

    def _written_over(self, actor: Actor, cells: Cells, index: Any, sites: int | Array) -> None:
        """Data over a live mbarrier."""
        where = np.flatnonzero(cells.objects[index])[0]  # type: ignore[index]
        cell = index.start + where if isinstance(index, slice) else index[where]
        byte = cells.byte(int(cell))
        site = sites if isinstance(sites, int) else int(sites[where])
        for barrier in self.gates:
            if self.gates[barrier].cells is cells and 0 <= byte - (barrier.address & _OFFSET) < 8:
                self.races.add_written_over(barrier, actor, site)
                return

    def _tell(self, actor: Actor, cells: Cells, found: list[Before], read: bool) -> None:
        for before in found:
            self.races.add(actor, cells, before, read, self.spaces)

    # Host instructions

    def stands(self, group: Group) -> None:
        self.group, self.work, self._strand = group, None, None
        if group.instruction.opcode.startswith("wgmma.mma_async"):
            self._issues_product(group)

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
        if what != "wait_group":
            groups.commit()
        if what == "commit_group":
            return
        keep = group.instruction.operands[0].value if what == "wait_group" else 0  # type: ignore[union-attr]
        if bulk and parts[-1] == "read":
            # Those whose end is still to be waited for stay where they are.
            for works in list(groups.committed)[: max(len(groups.committed) - keep, 0)]:
                for work in works:
                    self.strand().know(work.component, work.end)
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
            keep = group.instruction.operands[0].value  # type: ignore[union-attr]
            last = 0
            while len(groups.numbers) > keep:
                last = groups.numbers.popleft()
            if last and unit.last is not None:
                self.strand().know(unit.last[0], last)

    # Asynchronous work

    def _issues_product(self, group: Group) -> None:
        """A warp's part of a product of its warpgroup: it sees what the warp sees, and its end is known to the warp."""
        warpgroup = group.cta.states.get(("wgmma", group.warp.index // WARPS))
        issued = warpgroup.issued[group.warp.index % WARPS] if warpgroup is not None else 0
        unit = self.unit(group.cta, "wgmma", ("wgmma", group.warp))
        if unit.last is not None and unit.last[1] > issued:
            return  # the instruction stands here once more
        strand = self.strand()
        component, time = unit.in_order()
        work = Work(unit, component, time, strand.clock.copy(), strand, group.instruction, self.site())
        self.races.remember(work)
        self.products.setdefault(group.warp, []).append(work)
        self.unfinished.setdefault(group.cta, {})[component] = work.end, group.instruction
        strand.tick()

    def part(self, rank: int) -> None:
        self.work = self.parts[rank]

    def issued(self, entity: AgentEntity) -> None:
        agent, cta = entity.agent, entity.cta
        strand = self.strand()
        assert self.group is not None
        instruction, site = self.group.instruction, self.site()
        if isinstance(agent, Product):
            return  # each warp's part is issued by itself
        if isinstance(agent, Transfer) and entity.unit != "cp.async":
            unit = self.unit(cta, entity.unit)
            component, time = unit.any_order(strand.clock)
        else:
            unit = self.unit(cta, entity.unit, (entity.unit, strand.warp))
            component, time = unit.in_order()
        work = self.works[agent] = Work(unit, component, time, strand.clock.copy(), strand, instruction, site)
        self.races.remember(work)
        if isinstance(agent, Transfer):
            if agent.leaves and entity.unit == "tma":
                writers = self.unit(cta, entity.unit, "tma writes")
                second, first = writers.any_order(strand.clock)
                work.writer = Work(writers, second, first, work.clock.copy(), strand, instruction, site)
                self.races.remember(work.writer)
                self.group_of(strand.warp, BULK).open.append(work)
            elif entity.unit == "cp.async":
                self.group_of(strand.warp, CP_ASYNC).open.append(work)
        if entity.unit != "st.async":
            self.unfinished.setdefault(cta, {})[component] = work.end, instruction
        strand.tick()

    def turn(self, entity: AgentEntity) -> None:
        agent = entity.agent
        self.group, self._strand = None, None
        if isinstance(agent, Product):
            first = WARPS * agent.warpgroup.index
            self.parts = [self.products[warp].pop(0) for warp in agent.cta.warps[first : first + WARPS]]
            self.work = self.parts[0]
            return
        work = self.works[agent]
        if isinstance(agent, Transfer):
            if agent.read_done:
                del self.works[agent]
                if work.unit.last is None:
                    work.unit.free.append((work.component, work.end))
                if work.writer is not None:
                    work = work.writer
                    work.unit.free.append((work.component, work.end))
        else:
            del self.works[agent]
        self.work = work

    # mbarriers

    def initialised(self, barrier: Barrier) -> None:
        strand = self.strand()
        domain = strand.domain
        empty = nothing(domain.number)
        cells = self.spaces.shared(strand.warp.cta)
        self.gates[barrier] = Gate(domain, empty, empty.copy(), strand.component, strand.time, barrier.origin, cells)
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
        self._access(strand, cells, index, self.site(), "write")
        cells.mark(index, live)

    def used(self, barrier: Barrier) -> None:
        gate = self.gates.get(barrier)
        if gate is None:
            return
        actor = self.actor()
        component, time = gate.component, gate.time
        own = actor.clock.own
        if component != actor.component:
            row = actor.rows[0]
            known = component < own.shape[1] and (own[row, component] >= time or own[INIT, component] >= time)
            if not known:
                generic = component < own.shape[1] and own[GENERIC, component] >= time
                self.races.add_uninitialised(barrier, gate.origin, actor, self.site(), bool(generic))
        gate.used[actor.component] = actor.time, self.sites.instructions[self.site()]

    def arrives(self, barrier: Barrier) -> None:
        gate = self.gates.get(barrier)
        if gate is None:
            return
        if self.work is not None:
            gate.pending.join(self.work.clock)
            return
        strand = self.strand()
        assert self.group is not None
        if "relaxed" not in self.group.instruction.parts:
            gate.pending.join(strand.clock)
        strand.tick()

    def completed(self, barrier: Barrier) -> None:
        gate = self.gates.get(barrier)
        if gate is not None:
            gate.done = gate.pending.copy()

    def saw(self, group: Group, barrier: Barrier) -> None:
        gate = self.gates.get(barrier)
        if gate is None:
            return
        strand = self.strand()
        if "relaxed" not in group.instruction.parts:
            strand.clock.join(gate.done)
        strand.tick()
        phase = barrier.phase - 1
        again = gate.passed.get(strand.component) == phase
        gate.passed[strand.component] = phase
        self.races.passed(strand, Passed(strand.time, barrier.name, phase, group.instruction, again))

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
            self.strand().clock.join(clock)

    # Ends

    def exited(self, cta: Cta) -> None:
        domain = self.domain(cta.cluster)
        known = domain.clock()
        for warp in cta.warps:
            if warp in self.lanes:
                known.join(self.lanes[warp].all())
        known.fit(domain.capacity)
        for component, (end, instruction) in self.unfinished.pop(cta, {}).items():
            if known.own[GENERIC, component] < end:
                self.races.add_exit(cta, instruction, domain.what[component].unit)
        if len(cta.cluster.ctas) > 1:
            self._remote_at_exit(cta, known)

    def _remote_at_exit(self, cta: Cta, known: Clock) -> None:
        """What others of the cluster do to a CTA's memory and barriers must be over when it exits."""
        for barrier, gate in self.gates.items():
            if barrier.table is cta.cluster.states.get(type(barrier.table)) and barrier.rank == cta.rank:
                for component, (time, instruction) in gate.used.items():
                    if known.own[GENERIC, component] < time:
                        self.races.add_exit_use(cta, barrier, instruction, component)
                        break
        cells = self.spaces.shared_cells.get(cta)
        if cells is None:
            return
        for actor, site in cells.unknown_to(known.own[GENERIC]):
            self.races.add_exit_access(cta, actor, site)

    def gone(self, cluster: Cluster) -> None:
        for cta in cluster.ctas:
            self.spaces.forget(cta)
            self.unfinished.pop(cta, None)
            for warp in cta.warps:
                self.lanes.pop(warp, None)
                self.products.pop(warp, None)
        ctas = set(cluster.ctas)
        self.gates = {b: g for b, g in self.gates.items() if g.domain is not self.domains.get(cluster)}
        self.units = {key: unit for key, unit in self.units.items() if key[0] not in ctas}
        self.groups = {key: groups for key, groups in self.groups.items() if key[0].cta not in ctas}
        self.meetings = {m: c for m, c in self.meetings.items() if not self._of(m, cluster)}
        self.domains.pop(cluster, None)

    @staticmethod
    def _of(meeting: object, cluster: Cluster) -> bool:
        if isinstance(meeting, ClusterBarrier):
            return meeting.cluster is cluster
        return isinstance(meeting, NamedBarrier) and meeting.cta.cluster is cluster
