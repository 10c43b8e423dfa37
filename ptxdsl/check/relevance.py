"""Knowledge that is of no use, which states may forget.

What an agent knows of an event matters if it needs that itself, or passes it on to one who does. Whoever stands apart
(a warp that stores results hears of every stage of the loads, through those who compute) need not keep it: states then
differ in what makes a difference, and are far fewer.

Forgetting is always safe: one who knows less is allowed less. So it does not matter for a proof that the rules here go
by what has been seen so far; a fault that was found after something was forgotten is looked for again without
(``proof.py``).

What all who wait at a barrier know already tells them nothing when it comes from there, so a barrier may hold that,
too: then one that was never waited for and one that often was look alike, and states are fewer (``merging.py``).
``Barrier.told`` has those who were thought of; should another one come to wait, nothing is proved. A barrier of threads
that all must come to has no news, either, that one who is still to come has as well.

Who needs an event: of an access, the agents whose accesses conflict with its; of a wait, those who arrive at the
barrier; of a completed phase, those who use the barrier; of the phase before, those who wait there, who know it
themselves; of an arrival, those who wait there. Who passes it on: agents on a simple path between, along
barriers from those who arrive to those who wait. One that can be reached, or can reach the other, only through an agent
that has known it before is on no such path.

Where a block stands for others, its agents' seats (``Context.seat``) are asked of: an agent may need what happens in
the own block and not what happens in another one.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxdsl.check.barriers import Arrive, Commit, Wait
from ptxdsl.check.collectives import ClusterArrive, ClusterWait, Meet, WarpSync
from ptxdsl.check.context import Context
from ptxdsl.check.copies import Copy
from ptxdsl.check.parts import Barrier
from ptxdsl.check.program import Step
from ptxdsl.check.routes import Agents, Routes
from ptxdsl.check.states import State

_USES = (Arrive, Commit, Copy, Wait)


class Table:
    """Barriers of a CTA that the same steps use: the stages of a ring. arrivers, waiters: agents."""

    def __init__(self) -> None:
        self.barriers: list[Barrier] = []
        self.arrivers: Agents = 0
        self.waiters: Agents = 0


class Relevance:
    def __init__(self, context: Context) -> None:
        self.context = context
        self._waiting = [step for agent in context.agents for step in agent.steps if isinstance(step, _USES)]
        self._seen: tuple[int, int, int] | None = None
        self._routes = Routes([])
        self._kept: list[int] = []
        self._told: list[tuple[list[Barrier], list[int], Agents, int]] = []  # who waits there, the barriers' own bits
        self._meeting = _meeting(context)
        self._others: dict[int, int] = {}

    def forget(self, state: State) -> None:
        """Clears what is of no use to who knows it, and adds to barriers what is no news there."""
        if not self.knows:
            return
        context = self.context
        seen = context.bits, context.related, context.meetings
        if seen != self._seen:
            self._seen = seen
            self._kept = self._masks()
        meeting = context.told_cluster(state)
        if meeting is not None:
            state.known[meeting.holder + 1] = state.proxied[meeting.holder + 1] = 0
        self._told_anyway(state)
        known = state.known = [k & keep for k, keep in zip(state.known, self._kept, strict=True)]
        proxied = state.proxied = [k & keep for k, keep in zip(state.proxied, self._kept, strict=True)]
        for barriers, waiters, told, own in self._told:
            all_know = all_see = ~own
            for number in waiters:
                all_know &= known[number] & ~state.fresh[number]
                all_see &= proxied[number]
            for barrier in barriers:
                barrier.told &= told
                for holder in (barrier.holder, barrier.holder + 1):
                    known[holder] |= all_know
                    proxied[holder] |= all_see

    def _told_anyway(self, state: State) -> None:
        """What those who have come to a barrier of threads know, and one who is still to come knows as well, is told by
        him: he brings it, too, or it happens anew and nobody knows it any more."""
        for holder, to_come in self.context.begun_meetings(state):
            for agent in to_come:
                brings = state.known[agent.number] & ~state.fresh[agent.number]
                state.known[holder] &= ~brings
                state.proxied[holder] &= ~(brings & state.proxied[agent.number])

    @property
    def knows(self) -> bool:
        """Whether all steps on barriers have been run, so that it is known who uses what."""
        if self._waiting:
            self._waiting = [step for step in self._waiting if not step.met]
        return not self._waiting

    def _masks(self) -> list[int]:
        """What each holder keeps."""
        context = self.context
        tables = self._tables()
        self._connect(tables)
        self._stages(tables)
        blocks = context.blocks
        useless = [0] * len(context.agents)

        def keep(bits: int, relevant: Agents) -> None:
            for number in range(len(useless)):
                seats = relevant >> number * blocks.count & blocks.ones
                if not seats:
                    useless[number] |= blocks.everywhere(bits)
                elif seats != blocks.ones:
                    for place in range(blocks.count):
                        if not seats >> blocks.back(place) & 1:
                            useless[number] |= bits << place

        for table in tables:
            users = table.arrivers | table.waiters
            last = before = 0
            waits: dict[int, int] = {}
            for barrier in table.barriers:
                last |= barrier.last
                before |= barrier.before
                for agent, bit in barrier.waits.items():
                    waits[agent] = waits.get(agent, 0) | bit
            keep(last, self._routes.who(users, users))
            keep(before, table.waiters)  # who waits for each phase knows of the one before without being told
            if not context.tracks_uses:
                for agent, bits in waits.items():
                    keep(bits, self._routes.who(context.seat(agent), table.arrivers))
                for barrier in table.barriers:
                    for agent, there, bit in context.uses_of(barrier):
                        keep(
                            bit,
                            self._routes.who(context.seat(agent), blocks.seen_from(blocks.back(there), table.waiters)),
                        )
        sites: dict[Step, tuple[int, Agents]] = {}
        for touch in context.touches.values():
            bits, needers = sites.get(touch.site, (0, 0))
            sites[touch.site] = bits | touch.bit, needers | touch.needers
        for bits, needers in sites.values():
            owner = context.seat(context.touches[bits & -bits].agent)
            if needers & ~owner:
                keep(bits, self._routes.who(owner, needers | owner))
        self._told = []
        masks = [-1] * context.holders
        for number, bits in enumerate(useless):
            masks[number] = ~bits
        for table in tables:
            waiters = [n for n in range(len(useless)) if table.waiters & context.seat(n)]
            if not waiters:
                continue
            bits = -1
            table_own = 0
            for number in waiters:
                bits &= useless[number]
            for barrier in table.barriers:
                own = barrier.last | barrier.before
                for bit in barrier.waits.values():
                    own |= bit
                barrier.carries = (~bits & ~self._others.get(barrier.number, 0)) | own
                masks[barrier.holder] = masks[barrier.holder + 1] = barrier.carries
                table_own |= own
            self._told.append((table.barriers, waiters, sum(1 << n for n in waiters), table_own))
        return masks

    def _stages(self, tables: Iterable[Table]) -> None:
        """What belongs to each stage of rings: by barrier, the bits of all other stages."""
        context = self.context
        of_sites: dict[Step, dict[int, int]] = {}
        for touch in context.touches.values():
            if touch.slot is not None:
                slots = of_sites.setdefault(touch.site, {})
                slots[touch.slot] = slots.get(touch.slot, 0) | touch.bit
        by_count: dict[int, list[tuple[Table, list[tuple[int, Barrier]]]]] = {}
        for table in tables:
            numbered = list(enumerate(sorted(table.barriers, key=lambda barrier: barrier.address)))
            count = len(numbered)
            if count > 1:
                by_count.setdefault(count, []).append((table, numbered))
        self._others.clear()
        for count, alike in by_count.items():
            for table, numbered in alike:
                users = table.arrivers | table.waiters
                own = [0] * count
                for place in range(context.blocks.count):
                    self._of_stages(own, place, users, alike, of_sites)
                for stage, barrier in numbered:
                    others = 0
                    for other_stage, bits in enumerate(own):
                        if other_stage != stage:
                            others |= bits
                    self._others[barrier.number] = others & ~own[stage]

    def _of_stages(
        self,
        own: list[int],
        place: int,
        users: Agents,
        alike: list[tuple[Table, list[tuple[int, Barrier]]]],
        of_sites: dict[Step, dict[int, int]],
    ) -> None:
        """Adds to stages what belongs to them in the block at a place, for the users of a table."""
        context = self.context
        blocks = context.blocks
        back = blocks.back(place)
        for other, barriers in alike:
            if blocks.seen_from(back, other.arrivers | other.waiters) & users:
                for stage, barrier in barriers:
                    bits = barrier.last | barrier.before
                    if not context.tracks_uses:
                        bits |= barrier.uses
                    for bit in barrier.waits.values():
                        bits |= bit
                    own[stage] |= blocks.seen_from(back, bits)
        for slots in of_sites.values():
            touch = context.touches[(first := next(iter(slots.values()))) & -first]
            seats = context.seat(touch.agent) | touch.needers
            if set(slots) <= set(range(len(own))) and len(slots) > 1 and blocks.seen_from(back, seats) & users:
                for stage, bits in slots.items():
                    own[stage] |= bits << place

    def _tables(self) -> list[Table]:
        parent: dict[int, int] = {}

        def find(number: int) -> int:
            while parent[number] != number:
                number = parent[number]
            return number

        context = self.context
        uses: list[tuple[int, int, Agents, Agents]] = []
        for agent in context.agents:
            for step in agent.steps:
                if not isinstance(step, _USES):
                    continue
                first = min(barrier.number for barrier in step.met)
                for barrier in step.met:
                    for number in (first, barrier.number):
                        parent.setdefault(number, number)
                    a, b = find(first), find(barrier.number)
                    parent[max(a, b)] = min(a, b)
                waits = isinstance(step, Wait)
                for barrier in step.met:
                    me = context.seat(agent.number, 0 if barrier.own is None else context.blocks.back(barrier.cta))
                    uses.append((first, barrier.followed.cta, 0 if waits else me, me if waits else 0))
        tables: dict[tuple[int, int], Table] = {}
        for number in parent:
            barrier = context.barriers[number]
            tables.setdefault((find(number), barrier.cta), Table()).barriers.append(barrier)
        for number, cta, arrivers, waiters in uses:
            table = tables[find(number), cta]
            table.arrivers |= arrivers
            table.waiters |= waiters
        return [table for table in tables.values() if table.arrivers and table.waiters]

    def _connect(self, tables: Iterable[Table]) -> None:
        blocks = self.context.blocks
        count = len(self.context.agents) * blocks.count
        edges = [0] * count
        for place in range(blocks.count):
            back = blocks.back(place)
            for table in tables:
                arrivers, waiters = blocks.seen_from(back, table.arrivers), blocks.seen_from(back, table.waiters)
                for number in range(count):
                    if arrivers >> number & 1:
                        edges[number] |= waiters
        meeting = blocks.everywhere(self._meeting)
        for number in range(count):
            if meeting >> number & 1:
                edges[number] |= meeting
        if edges != self._routes.edges:
            self._routes = Routes(edges)


def _meeting(context: Context) -> Agents:
    """Agents that meet others in loops."""
    found = 0
    for agent in context.agents:
        for step in agent.steps:
            if step.nesting and (
                isinstance(step, (Meet, ClusterArrive, ClusterWait)) or (isinstance(step, WarpSync) and step.outside)
            ):
                found |= context.seat(agent.number)
    return found
