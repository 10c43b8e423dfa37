"""The trace check with every lane of a warp a thread of its own, as the PTX memory model has it.

The simulator moves the lanes of a warp together, and the check takes them for ordered (``actors``). The ISA does not:
two lanes know of one another's accesses by ``bar.warp.sync``, or as two warps do, by barriers, mbarriers and flags;
shuffles, votes and ``elect.sync`` only make them wait. Here each lane is a strand of its own, and whatever a group of
lanes does is done by one after the other: its accesses, its arrivals and waits, its copies and their groups. That takes
longer, and no repetition is skipped: it is for small launches.

Two things are not looked at: what one store writes to the same bytes for several lanes (the log has no values), and
which lane it is for which an instruction of the whole warp (wgmma, wmma, ``tcgen05.ld``) touches which bytes: it is
taken to know what all of them know.

Source: PTX ISA, "Memory Consistency Model" (morally strong operations, causality order), "bar.warp.sync".
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from ptxdsl.races.accesses import LOAD, LOCAL, Piece
from ptxdsl.races.actors import Actor, Groups, Strand, WarpLanes, Who, Work
from ptxdsl.races.clocks import Domain
from ptxdsl.races.shadow import Before, Cells
from ptxdsl.races.trace_ends import TraceEnds
from ptxdsl.races.trace_memory import Step
from ptxdsl.sim.layout import ACCESS, SPACES
from ptxdsl.sim.machine.warp import lane_numbers
from ptxdsl.sim.matrix.wgmma import Product

if TYPE_CHECKING:
    from ptxdsl.sim.barriers.mbarrier import Barrier
    from ptxdsl.sim.host import Group
    from ptxdsl.sim.machine.cta import AgentEntity
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.warp import Warp

_NAMES = {number: name for name, number in SPACES.items()} | {SPACES["cluster"]: "shared::cluster"}


class LanesApart(WarpLanes):
    """A warp's strands, one of each lane."""

    def __init__(self, domain: Domain, warp: Warp) -> None:
        self.domain = domain
        self.warp = warp
        self.components = {}
        self.strands = []
        for lane in lane_numbers(warp.live):
            who = Who(warp.cta.id, warp.cta.linear, warp.index, "warp", lane)
            component = self.components[1 << lane] = domain.component(who)
            self.strands.append(Strand(domain, component, domain.clock(), warp, 1 << lane))
            self.strands[-1].tick()
        self._by_mask = {strand.mask: strand for strand in self.strands}

    def of(self, mask: int) -> Strand:
        """Of a single lane."""
        return self._by_mask[mask]

    def each(self, mask: int) -> list[Strand]:
        return [strand for strand in self.strands if strand.mask & mask]

    def meet(self, mask: int) -> None:
        """Each of these lanes learns what all of them know."""
        strands = self.each(mask)
        known = strands[0].clock.copy()
        for strand in strands[1:]:
            known.join(strand.clock)
        for strand in strands:
            strand.clock.join(known)
            strand.meet()


class ByLanes(TraceEnds):
    """All that the check does with the events of a run, lane by lane."""

    warp_lanes = LanesApart

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._mask = 0  # the lanes of the group that stands which do what happens now
        self._works: list[Work] = []  # of the asynchronous work that makes a step now, each lane's
        self._under_way: dict[int, list[Work]] = {}  # the same of all, by the agent's number

    # Who

    def _apart(self, warp: Warp) -> LanesApart:
        lanes = self.lanes_of(warp)
        assert isinstance(lanes, LanesApart)
        return lanes

    def _strands(self) -> list[Strand]:
        assert self.group is not None
        return self._apart(self.group.warp).each(self._mask)

    def _each(self) -> Iterator[Actor]:
        """Those who do what happens now: each in turn is the one whom the rest of the check takes it to be."""
        if self.work is not None:
            first = self.work
            for work in self._works or [first]:
                self.work = work
                yield work
            self.work = first
            return
        for strand in self._strands():
            self._strand = strand
            yield strand
        self._strand = None

    def strand(self) -> Strand:
        """Of several lanes that do something together, one that knows what they all do."""
        if self._strand is not None:
            return self._strand
        first, *others = self._strands()
        return _together(first, others) if others else first

    def only(self, mask: int) -> None:
        self._mask = mask

    def group_of(self, warp: Warp, kind: str) -> Groups:
        """A lane's own."""
        return super().group_of(warp, f"{kind} {self.strand().mask}")

    def issuer(self, strand: Strand) -> object:
        return strand.warp, strand.mask

    # Accesses

    def steps_of(self, warp: Warp, words: memoryview) -> list[Step]:
        """Instruction by instruction, lane by lane."""
        steps: list[Step] = []
        records = np.frombuffer(words, ACCESS)
        for at, (_, site, size, kind, space, first, mask, _, group, addresses) in enumerate(records.tolist()):
            found = self.sites.kinds[site]
            if found.meets:
                steps.append((group, records[at : at + 1].copy()))
            elif found.fence:
                steps += [(1 << lane, records[at : at + 1].copy()) for lane in lane_numbers(group)]
            elif space != LOCAL:
                for bit in lane_numbers(mask):
                    if self.flags.orders[site]:
                        own = records[at : at + 1].copy()
                        own["mask"] = 1 << bit
                        steps.append((1 << first + bit, own))
                    places = self.spaces.places(warp.cta, _NAMES[space], int(addresses[bit]), size)
                    pieces = [Piece(cells, start, size, site, kind) for cells, start in places]
                    steps.append((1 << first + bit, pieces))
        return steps

    def ran(self, warp: Warp, steps: list[Step]) -> None:
        for mask, what in steps:
            site = -1 if isinstance(what, list) else int(what["site"][0])
            if site < 0 or not self.sites.kinds[site].meets:
                super().ran(warp, [(mask, what)])
            elif self.sites.instructions[site].opcode.startswith(("bar.warp", "barrier.warp")):
                self.joined(warp, mask)

    def joined(self, warp: Warp, mask: int) -> None:
        self._apart(warp).meet(mask)

    def touches(self, pieces: list[Piece[Cells]]) -> None:
        """Where there is an address for each lane, it is that lane's access."""
        doers = list(self._each())
        for piece in pieces:
            if isinstance(piece.starts, int) or len(doers) == 1 or len(piece.starts) != len(doers):
                super().touches([piece])
                continue
            for doer, start in zip(doers, piece.starts.tolist(), strict=True):
                index = piece.cells.index(start, piece.size)
                row = doer.rows[0 if piece.cells.own else 1]
                self._access(doer, piece.cells, index, self.site(), piece.kind == LOAD, row)

    def _tell(self, actor: Actor, cells: Cells, found: list[Before], read: bool) -> None:
        strands = self._apart(actor.warp).strands if isinstance(actor, Strand) else []
        clocks = [actor.met] if isinstance(actor, Work) else [strand.clock for strand in strands]
        kept = []
        for before in found:
            mine = any(strand.number == before.actor for strand in strands)
            if mine and not read and not before.read and before.site == before.site_now:
                continue  # one store has written for two lanes, now or in two turns of a loop
            before.met = not before.fenced and any(c and c.knows(before.actor, before.time) for c in clocks)
            kept.append(before)
        super()._tell(actor, cells, kept, read)

    # Instructions

    def stands(self, group: Group, issued: int | None) -> None:
        self._mask, self._works = group.mask, []
        super().stands(group, issued)
        if issued is not None:
            for strand in self._strands():
                strand.tick()

    def executed(self, group: Group) -> None:
        self._mask = group.mask
        for _ in self._each():
            super().executed(group)

    def comes(self, group: Group, meeting: object, generation: int) -> None:
        for _ in self._each():
            super().comes(group, meeting, generation)

    def leaves(self, group: Group, meeting: object, generation: int) -> None:
        for _ in self._each():
            super().leaves(group, meeting, generation)

    # Asynchronous work

    def issued(self, entity: AgentEntity) -> None:
        if isinstance(entity.agent, Product):
            return
        works = self._under_way[entity.number] = []
        met = self.strand().clock.copy()
        for _ in self._each():
            super().issued(entity)
            work = self.works.pop(entity.number)
            work.met = met
            if work.writer is not None:
                work.writer.met = met
            works.append(work)

    def turn(self, entity: AgentEntity, read_done: bool) -> None:
        if isinstance(entity.agent, Product):
            super().turn(entity, read_done)
            self._works = []
            return
        self._works = []
        for work in self._under_way[entity.number]:
            self.works[entity.number] = work
            super().turn(entity, read_done)
            assert self.work is not None
            self._works.append(self.work)
        if self.works.pop(entity.number, None) is None:
            del self._under_way[entity.number]
        self.work = self._works[0]

    # mbarriers

    def used(self, barrier: Barrier) -> None:
        for _ in self._each():
            super().used(barrier)

    def arrives(self, barrier: Barrier, phase: int) -> None:
        for _ in self._each():
            super().arrives(barrier, phase)

    def saw(self, group: Group, barrier: Barrier, phase: int) -> None:
        for _ in self._each():
            super().saw(group, barrier, phase)


def _together(first: Strand, others: list[Strand]) -> Strand:
    """One that knows what several do, and acts as the first of them."""
    strand = copy(first)
    strand.clock = first.clock.copy()
    for other in others:
        strand.clock.join(other.clock)
    return strand
