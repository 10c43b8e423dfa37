"""The trace check's actors: strands of warps and asynchronous work, from what a run tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ptxdsl.races.accesses import Piece, Spaces
from ptxdsl.races.actors import Actor, Groups, Strand, Unit, WarpLanes, Work
from ptxdsl.races.clocks import Domain
from ptxdsl.races.flags import Flags
from ptxdsl.races.races import Races
from ptxdsl.races.ranges import Ranges
from ptxdsl.races.shadow import Cells
from ptxdsl.races.site_kinds import Sites
from ptxdsl.record import dataclass
from ptxdsl.sim.copies.transfer import BULK, CP_ASYNC, Transfer
from ptxdsl.sim.matrix.warpgroup import WARPS
from ptxdsl.sim.matrix.wgmma import Product

if TYPE_CHECKING:
    from ptxdsl.ptx.module import Instruction
    from ptxdsl.sim.host import Group
    from ptxdsl.sim.machine.cta import AgentEntity, Cluster, Cta
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.warp import Warp

Access = tuple[Actor, int, int | npt.NDArray[Any]]  # by whom, his time, the site or sites

_ASYNC_UNITS = frozenset(("tma", "wgmma", "tcgen05"))


# An address or (None) which array or tuple of them, bytes, the space, and how.
TileKey = tuple[int | None, int, int, str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """Shared memory to which a program comes again and again by the same instruction. given: the addresses, which are
    kept. parts: the pieces, of what warps of a warpgroup touch together those of each."""

    given: object
    parts: list[list[Piece[Cells]]]


class TraceActors:
    """Knows who does what happens now. warp_lanes: how a warp's lanes are divided into strands."""

    warp_lanes = WarpLanes

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.sites = Sites([site.instruction for site in machine.sites])
        strong = self.sites.strong
        self.spaces: Spaces[Cells] = Spaces(machine.memory, lambda _, size, own: Cells(size, own, strong))
        self.flags = Flags(self.sites)
        apart = self.flags.orders.tolist() if self.sites.orders else [False] * len(self.sites.kinds)
        self.ranges = Ranges(self.spaces, apart)
        self.tiles: dict[Cta, dict[TileKey, Tile]] = {}
        self.trail: list[Access] | None = None  # to global memory, if that is asked for
        self.domains: dict[Cluster, Domain] = {}
        self.lanes: dict[Warp, WarpLanes] = {}
        self.units: dict[tuple[Cta, object], Unit] = {}
        self.groups: dict[tuple[Warp, str], Groups] = {}
        self.works: dict[int, Work] = {}  # by the agent's number
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
            lanes = self.lanes[warp] = self.warp_lanes(self.domain(warp.cta.cluster), warp)
        return lanes

    def strand(self) -> Strand:
        """Of the group that stands."""
        if self._strand is None:
            group = self.group
            assert group is not None
            self._strand = self.lanes_of(group.warp).of(group.mask)
        return self._strand

    def issuer(self, strand: Strand) -> object:
        """Whose asynchronous work of one kind is over in order."""
        return strand.warp

    def unit(self, cta: Cta, name: str, key: object = None) -> Unit:
        found = self.units.get((cta, key or name))
        if found is None:
            made = Unit(self.domain(cta.cluster), cta, name, name in _ASYNC_UNITS)
            found = self.units[cta, key or name] = made
        return found

    def group_of(self, warp: Warp, kind: str) -> Groups:
        found = self.groups.get((warp, kind))
        if found is None:
            found = self.groups[warp, kind] = Groups(self.sites.most_left)
        return found

    def actor(self) -> Actor:
        return self.work if self.work is not None else self.strand()

    def site(self) -> int:
        if self.work is not None:
            return self.work.site
        assert self.group is not None
        return self.sites.of(self.group.instruction)

    def stands(self, group: Group, issued: int | None) -> None:
        """issued: of a product of a warpgroup, how many the warp has issued before."""
        self.group, self.work, self._strand = group, None, None
        if issued is not None:
            self._issues_product(group, issued)

    # Asynchronous work

    def _issues_product(self, group: Group, issued: int) -> None:
        """A warp's part of a product of its warpgroup: it sees what the warp sees, and its end is known to the warp."""
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
            unit = self.unit(cta, entity.unit, (entity.unit, self.issuer(strand)))
            component, time = unit.in_order()
        work = self.works[entity.number] = Work(
            unit, component, time, strand.tells()[0].copy(), strand, instruction, site
        )
        self.races.remember(work)
        if isinstance(agent, Transfer):
            if agent.leaves and entity.unit == "tma":
                writers = self.unit(cta, entity.unit, ("tma writes", self.issuer(strand)))
                second, end = writers.in_order()
                clock = work.clock.copy()
                work.writer = Work(writers, second, end, clock, strand, instruction, site, in_order=False)
                self.races.remember(work.writer)
                self.group_of(strand.warp, BULK).add(work)
            elif entity.unit == "cp.async":
                self.group_of(strand.warp, CP_ASYNC).add(work)
        if not (isinstance(agent, Transfer) and agent.elsewhere):
            self.unfinished.setdefault(cta, {})[component] = work.end, instruction
        strand.tick()

    def turn(self, entity: AgentEntity, read_done: bool) -> None:
        """read_done: of a copy, whether it has read what it writes now."""
        agent, number = entity.agent, entity.number
        self.group, self._strand = None, None
        if isinstance(agent, Product):
            first = WARPS * agent.warpgroup.index
            self.parts = [self.products[warp].pop(0) for warp in agent.cta.warps[first : first + WARPS]]
            self.work = self.parts[0]
            return
        work = self.works[number]
        if isinstance(agent, Transfer):
            if read_done:
                del self.works[number]
                if work.unit.last is None:
                    work.unit.free.append((work.component, work.end))
                if work.writer is not None:
                    work = work.writer
        else:
            del self.works[number]
        self.work = work
