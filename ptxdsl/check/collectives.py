"""Barriers of threads and warp collectives: all who belong to one must come to it.

A *meeting* is one barrier of a CTA by its id (``barrier()`` is number 0), or the cluster's. What those who come know is
known to all who waited afterwards.
"""

from __future__ import annotations

from ptxdsl.check import blame_meetings as blame
from ptxdsl.check.agents import ORDERING
from ptxdsl.check.aligned import check_cluster_lanes, check_lanes
from ptxdsl.check.context import Context
from ptxdsl.check.expressions import Expressions
from ptxdsl.check.findings import Unproved
from ptxdsl.check.parts import Agent, Meeting
from ptxdsl.check.program import END, WAIT, Step
from ptxdsl.check.states import State
from ptxdsl.check.threads import WARP, Mask, Row, members, warps, whole_warps
from ptxdsl.effects import Kind
from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Op

_NAMED = frozenset({Kind.CTA_SYNC, Kind.NAMED_SYNC, Kind.NAMED_ARRIVE})
_IDS = 16


def collective_step(op: Op, mask: Mask, expressions: Expressions, context: Context, agent: Agent) -> Step | None:
    kind = op.kind
    if kind in _NAMED:
        return Meet(op, mask, expressions)
    if kind is Kind.CLUSTER_ARRIVE:
        return ClusterArrive(op)
    if kind is Kind.CLUSTER_WAIT:
        return ClusterWait(op)
    if kind is Kind.WARP_SYNC:
        return WarpSync(op, mask, expressions)
    return None


class Meet(Step):
    """bar.sync or bar.arrive."""

    led_on = True

    def __init__(self, op: Op, mask: Mask, expressions: Expressions) -> None:
        super().__init__(op.span)
        self.op = op
        self.acting = mask
        self.syncs = op.kind is not Kind.NAMED_ARRIVE
        self.whole = whole_warps(mask, expressions.block.all) == mask
        self.id = expressions.function(op.id) if op.id is not None else None
        self.count = expressions.function(op.count) if op.count is not None else None

    def come(self, context: Context, state: State, agent: Agent) -> tuple[int, int]:
        """How many threads have come to the barrier at which an agent waits, and how many are to come."""
        number = self.id(state.environments[agent.number]) if self.id is not None else 0
        arrived, expected, _ = state.meetings.get(context.meeting((agent.cta, number), state).number, (0, 0, ()))
        return arrived, expected

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        number = self.id(env) if self.id is not None else 0
        needed = self.count(env) if self.count is not None else context.size
        if type(number) is not int or type(needed) is not int:
            raise Unproved(
                self.op.span,
                "the number of the barrier depends on data",
                "choose it by thread ids and launch parameters alone",
            )
        if not 0 <= number < _IDS:
            raise blame.no_such_barrier(context, state, agent, self, number)
        meeting = context.meeting((agent.cta, number), state)
        arrived, expected, waiting = state.meetings.get(meeting.number, (0, 0, ()))
        me = agent.number
        if any(a == me for a, _ in waiting):
            return WAIT
        if expected and expected != needed:
            raise blame.counts_differ(context, state, agent, self, meeting, expected, needed, waiting)
        threads = self.acting.bit_count()
        if arrived + threads > needed:
            raise blame.too_many_at(context, state, agent, self, meeting, arrived + threads, needed)
        hidden = context.hidden(state, agent, self.mask)
        known = state.known[me] & ~hidden
        if state.live & meeting.last and not known & meeting.last:
            raise blame.may_come_early(context, state, agent, self, meeting)
        state.known[meeting.holder] |= known
        state.proxied[meeting.holder] |= state.proxied[me] & known
        waiting = (*waiting, (me, self.number if self.syncs else ~self.number))
        if arrived + threads < needed:
            state.meetings[meeting.number] = arrived + threads, needed, waiting
            return WAIT if self.syncs else self.number + 1
        if not all(_is_whole(context, *who) for who in waiting):
            check_lanes(context, state, waiting, 0)
        _complete(context, state, meeting, waiting)
        return self.number + 1


def _is_whole(context: Context, number: int, place: int) -> bool:
    """Whether who has come to a barrier of threads is whole warps."""
    step = context.agents[number].steps[place if place >= 0 else ~place]
    return isinstance(step, Meet) and step.whole


def _complete(context: Context, state: State, meeting: Meeting, waiting: tuple[tuple[int, int], ...]) -> None:
    """All have come: those who wait go on, and know what the others knew."""
    everywhere = context.blocks.everywhere(meeting.last)
    context.forget(state, everywhere)
    state.live |= everywhere
    known = state.known[meeting.holder] | meeting.last
    seen = state.proxied[meeting.holder]
    state.known[meeting.holder] = state.proxied[meeting.holder] = 0
    state.meetings.pop(meeting.number, None)
    for number, place in waiting:
        if place < 0:
            continue
        state.places[number] = place + 1
        state.known[number] |= known
        state.proxied[number] |= seen
        state.fresh[number] &= ~known
        state.met[number] &= ~known


def released(context: Context, state: State) -> bool:
    """Whether barriers go on of which only threads are missing that have returned before: those for all threads of a
    block or cluster wait for no others, and a warp that comes counts as a whole (PTX ISA, ``exit``, ``barrier``). What
    those have done is ordered by nothing."""
    gone = [agent for agent in context.agents if state.places[agent.number] == END]
    found = False
    for meeting in context.meetings_of_all(state) if gone else ():
        if meeting.key == "cluster":
            arrived, turn, who = state.meetings[meeting.number]
            left = [a for a in gone if not who >> a.number & 1 and _passes_by(a, ClusterArrive)]
            if arrived + context.blocks.count * sum(a.count for a in left) == context.size * context.ctas:
                _complete_cluster(state, meeting, turn)
                found = True
            continue
        arrived, needed, waiting = state.meetings[meeting.number]
        sites = [context.agents[number].steps[place] for number, place in waiting if place >= 0]
        ops = [site.op for site in sites if isinstance(site, Meet)]
        lanes = sum(a.mask for a in gone if a.cta == meeting.key[0] and all(_passes_by(a, Meet, op) for op in ops))
        if len(ops) < len(waiting) or any(op.count is not None for op in ops):
            lanes &= whole_warps(sum(context.agents[number].mask for number, _ in waiting), context.every)
        if lanes and arrived + lanes.bit_count() == needed:
            check_lanes(context, state, waiting, lanes)
            _complete(context, state, meeting, waiting)
            found = True
    return found


def _passes_by(agent: Agent, kind: type[Step], op: Op | None = None) -> bool:
    """Whether an agent returns before it can come to barriers that are in its program: it may not pass one by in a
    branch."""
    reached, pending = set[int](), [0]
    while pending:
        at = pending.pop()
        if at not in reached:
            reached.add(at)
            pending += agent.steps[at].successors
    sites = [step for step in agent.steps if isinstance(step, kind) and (op is None or step.op is op)]
    return bool(sites) and all(site.number not in reached for site in sites)


class ClusterArrive(Step):
    def __init__(self, op: Op) -> None:
        super().__init__(op.span)
        self.relaxed = op.what.scope is None

    def run(self, context: Context, state: State, agent: Agent) -> int:
        meeting = context.meeting("cluster", state)
        me = agent.number
        arrived, turn, who = state.meetings.get(meeting.number, (0, 0, 0))
        if who >> me & 1 or state.meetings.get(("cluster", me), turn ^ 1) == turn:
            raise blame.cluster_order(context, state, agent, self, "arrives twice without a wait between")
        hidden = context.hidden(state, agent, self.mask)
        known = state.known[me] & ~hidden
        if self.relaxed:  # it orders nothing; of initialisations, the fence of them before it does
            fenced = 0
            for barrier in context.barriers:
                if barrier.init & state.proxied[me]:
                    fenced |= barrier.init | barrier.last | barrier.before
            known &= fenced
        by_any = context.blocks.by_any
        state.known[meeting.holder] |= by_any(known)
        state.proxied[meeting.holder] |= by_any(state.proxied[me] & known)
        state.meetings["cluster", me] = turn
        arrived += self.mask.bit_count() * context.blocks.count
        if arrived < context.size * context.ctas:
            state.meetings[meeting.number] = arrived, turn, who | 1 << me
        else:
            _complete_cluster(state, meeting, turn)
        return self.number + 1


def _complete_cluster(state: State, meeting: Meeting, turn: int) -> None:
    state.known[meeting.holder + 1] = state.known[meeting.holder]
    state.proxied[meeting.holder + 1] = state.proxied[meeting.holder]
    state.known[meeting.holder] = state.proxied[meeting.holder] = 0
    state.meetings[meeting.number] = 0, turn ^ 1, 0


class ClusterWait(Step):
    def __init__(self, op: Op) -> None:
        super().__init__(op.span)
        self.op = op
        self.whole: bool | None = None  # whether all lanes of the warps come to it, where that was asked

    def run(self, context: Context, state: State, agent: Agent) -> int:
        meeting = context.meeting("cluster", state)
        me = agent.number
        mine = state.meetings.get(("cluster", me))
        if mine is None:
            raise blame.cluster_order(context, state, agent, self, "waits without having arrived")
        if state.meetings.get(meeting.number, (0, 0, 0))[1] == mine:
            return WAIT
        if not self.whole:
            check_cluster_lanes(context, state, agent, self)
        del state.meetings["cluster", me]
        gained = state.known[meeting.holder + 1]
        state.known[me] |= gained
        state.proxied[me] |= state.proxied[meeting.holder + 1]
        state.fresh[me] &= ~gained
        state.met[me] &= ~gained
        return self.number + 1


class WarpSync(Step):
    """A shuffle, vote or syncwarp: the lanes of each warp that it names meet.

    groups: lanes that meet, as threads, with those of them that the agent has.
    """

    led_on = True

    def __init__(self, op: Op, mask: Mask, expressions: Expressions) -> None:
        super().__init__(op.span)
        self.acting = mask
        self.op = op
        self.orders = op.name in ORDERING
        self.groups = _groups(op.mask, mask, expressions)
        self.outside = [group for group in self.groups or () if group[0] != group[1]]
        self.idle = op.mask is None and not (self.orders or self.outside)  # nobody waits, and nothing is told
        self._met_by_others: dict[Mask, bool] = {}

    def run(self, context: Context, state: State, agent: Agent) -> int:
        if self.groups is None:
            raise Unproved(
                self.op.span,
                f"which lanes of a warp take part in `{self.op.called}` is not known",
                "name them by a constant mask",
            )
        if not self.outside:
            self._met(context, state, agent)
            return self.number + 1
        return self._meet(context, state, agent)

    def _met(self, context: Context, state: State, agent: Agent) -> None:
        """The agent's lanes have met, warp by warp."""
        if not self.orders:
            return
        rest = state.fresh[agent.number]
        met = 0
        while rest:
            bit = rest & -rest
            rest ^= bit
            if not context.masks.get(bit, 0) & ~self.acting:
                met |= bit
        state.met[agent.number] |= met

    def _meet(self, context: Context, state: State, agent: Agent) -> int:
        """Some of the lanes are another agent's: it goes on when all groups are complete."""
        me = agent.number
        if ("warps", me) in state.meetings:
            return WAIT
        for needed, own in self.outside:
            if own & ~needed or not self._others(context, agent, needed & ~own):
                raise blame.diverges(context, state, agent, self, self.op.called)
        self._met(context, state, agent)
        state.meetings["warps", me] = len(self.outside)
        for needed, own in self.outside:
            meeting = context.meeting((agent.cta, "warp", needed), state)
            come, waiting = state.meetings.get(meeting.number, (0, ()))
            for other, place in waiting:
                there = context.agents[other].steps[place]
                if isinstance(there, WarpSync) and not _meets(self, there):
                    raise blame.collectives_differ(state, agent, self.op, context.agents[other], there.op)
            # What the agent's threads all know; of their own doings each warp knows its part alone.
            alone = whole_warps(agent.mask, context.every) == whole_warps(needed, context.every)
            apart = 0 if alone else state.fresh[me]
            apart |= context.hidden(state, agent, own) if self.orders else 0
            apart &= ~context.waits_by_warps  # who goes on has met lanes of all the agent's warps (agents.py)
            # That they have come says of waits that these are over, whatever it says of memory.
            known = state.known[me] & ~(apart if self.orders else apart | context.accesses)
            state.known[meeting.holder] |= known
            state.proxied[meeting.holder] |= state.proxied[me] & known
            waiting = (*waiting, (me, self.number))
            come |= own
            if come != needed:
                state.meetings[meeting.number] = come, waiting
                continue
            state.meetings.pop(meeting.number, None)
            _parted(context, state, meeting, waiting)
        return WAIT if ("warps", me) in state.meetings else self.number + 1

    def _others(self, context: Context, agent: Agent, lanes: Mask) -> bool:
        """Whether all these lanes have somewhere a collective to come to."""
        found = self._met_by_others.get(lanes)
        if found is None:
            found = self._met_by_others[lanes] = self._come(context, agent, lanes)
        return found

    @staticmethod
    def _come(context: Context, agent: Agent, lanes: Mask) -> bool:
        for other in context.agents:
            if other.cta == agent.cta and other is not agent and other.mask & lanes:
                for step in other.steps:
                    if isinstance(step, WarpSync):
                        lanes &= ~step.acting
        return not lanes


def _meets(one: WarpSync, other: WarpSync) -> bool:
    """Whether lanes meet that stand at these two: at any two ``syncwarp``, else at one and the same instruction, since
    values are exchanged there (PTX ISA, ``bar.warp.sync``, ``shfl.sync``, ``redux.sync``)."""
    return one.op.name == other.op.name and (one.orders or one.op.span == other.op.span)


def _parted(context: Context, state: State, meeting: Meeting, waiting: tuple[tuple[int, int], ...]) -> None:
    """The lanes of a warp have all come: agents that wait for no other group go on."""
    known, seen = state.known[meeting.holder], state.proxied[meeting.holder]
    state.known[meeting.holder] = state.proxied[meeting.holder] = 0
    for number, place in waiting:
        if waits := known & ~state.known[number] & context.waits_by_warps:  # here too, of each warp's others
            state.fresh[number] |= waits
            state.met[number] |= waits
        state.known[number] |= known
        state.proxied[number] |= seen
        left = state.meetings.pop(("warps", number)) - 1
        if left:
            state.meetings["warps", number] = left
        else:
            state.places[number] = place + 1


def _groups(lanes: Expr | None, mask: Mask, expressions: Expressions) -> list[tuple[Mask, Mask]] | None:
    """The threads that meet, and those of a mask among them; None where the lanes are not known."""
    row: Row | None = -1 if lanes is None else expressions.row(lanes)
    if row is None:
        return None
    found: dict[Mask, Mask] = {}
    if row == -1:
        for number in warps(mask):
            warp = 0xFFFFFFFF << (WARP * number)
            found[warp & expressions.block.all] = warp & mask
        return list(found.items())
    for t in members(mask):
        named = (row if isinstance(row, int) else row[t]) & 0xFFFFFFFF
        needed = named << (t // WARP * WARP) & expressions.block.all
        found[needed] = found.get(needed, 0) | 1 << t
    return list(found.items())
