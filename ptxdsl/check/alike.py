"""Whether the steps of all agents commute with turning a ring by a stage (``symmetry.py``).

That is not read off the text but tried. A step is asked for its barriers, parities, bytes and events with all values
that the variables of rings can have, once; what it answers for a value and for the turned one must correspond, in one
renaming for all steps of all agents. How many bytes are touched may hang on more: that is as it is when a step is
tried, and must not become another (``Symmetry.check``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from ptxdsl.check.answers import Answered, Asked
from ptxdsl.check.barriers import Arrive, Commit, Initialise, Invalidate, OnBarrier, Wait
from ptxdsl.check.collectives import ClusterArrive, ClusterWait, Meet, WarpSync
from ptxdsl.check.context import Context
from ptxdsl.check.copies import Copy
from ptxdsl.check.expressions import Environment
from ptxdsl.check.findings import Fault, Unproved
from ptxdsl.check.groups import CommitGroup, Fence, Start, WaitGroup
from ptxdsl.check.held import Drawn, Loaded, Written
from ptxdsl.check.parts import Agent, Barrier
from ptxdsl.check.program import (
    Advance,
    Assignment,
    Cannot,
    Choose,
    End,
    Enter,
    Follow,
    Go,
    Head,
    Leave,
    Next,
    Step,
    Turned,
)
from ptxdsl.check.ring_variables import RingVariables
from ptxdsl.check.slots import Access
from ptxdsl.check.states import State
from ptxdsl.check.tensor import Allocation, Relinquishment, TensorFence
from ptxdsl.check.touched import of_widths
from ptxdsl.check.trial_answers import Answer, Answers, Untouched
from ptxdsl.check.turns import Different, Names, Ring, orbits
from ptxdsl.check.values import Sum, Value
from ptxdsl.check.warpgroups import WarpgroupSync
from ptxdsl.hints import Any

# Combinations of values of its rings' variables that a step is tried with.
_MOST_TRIED = 160

_FREE = (
    Advance, Answered, Asked, Cannot, ClusterArrive, ClusterWait, CommitGroup, Drawn, End, Enter, Fence, Follow, Go,
    Head, Leave, Loaded, Meet, Next, Relinquishment, TensorFence, Turned, WaitGroup, WarpSync,
    WarpgroupSync, Written,
)  # fmt: skip


class Trial:
    """variables, region: of each agent, those of its rings and the places that it may come to. state: any that has all
    barriers; a copy gets the values that steps are tried with."""

    def __init__(
        self,
        context: Context,
        state: State,
        variables: Sequence[RingVariables],
        region: Sequence[frozenset[int]],
    ) -> None:
        self.context = context
        self.state = state.copy()
        self.variables = variables
        self.region = region
        self._known: dict[tuple[Step, bool], Answers | None] = {}
        self._apart: dict[int, Untouched] = {}  # of agents that have no part in a ring

    def steps(self, agent: Agent) -> Iterator[Step]:
        for place in self.region[agent.number]:
            yield agent.steps[place]

    def alike(self, ring: Ring) -> bool:
        """Whether all steps commute with turning a ring; finds what that renames."""
        try:
            found = []
            for agent in self.context.agents:
                own = {v for number, v in ring.variables if number == agent.number}
                found.append(self._tried(ring, agent, own) if own else self._without(agent))
            if any(apart.moved_by(ring) for apart in found):
                raise Different
            self._complete(ring)
        except (Different, Unproved, Fault):
            return False
        return True

    def _without(self, agent: Agent) -> Untouched:
        """What an agent comes to that has no part in a ring."""
        found = self._apart.get(agent.number)
        if found is None:
            found = self._apart[agent.number] = self._tried(Ring(), agent, set())
        return found

    def _tried(self, ring: Ring, agent: Agent, own: set[int]) -> Untouched:
        """Finds what turning a ring renames for an agent with these variables of it; what it must leave as it is."""
        apart = Untouched()
        for step in self.steps(agent):
            answers = self._try(ring, agent, step, own)
            if answers is not None:
                apart.add(answers, waits=isinstance(step, Wait))
        return apart

    def _try(self, ring: Ring, agent: Agent, step: Step, own: set[int]) -> Answers | None:
        """Gives what a step answers that looks at no variable of the ring."""
        if isinstance(step, (Initialise, Invalidate)):
            raise Different
        if isinstance(step, _FREE):
            if not own.isdisjoint([*step.uses, *step.assigns]):
                raise Different
            return None
        if isinstance(step, Assignment):
            self._try_assignment(agent, step, own)
            return None
        if not isinstance(step, (Access, Start, Allocation, Choose, OnBarrier)):
            raise Different
        answers = self._asked(agent, step, own)
        if answers is None:
            return None
        turning = [at for at, v in enumerate(answers.variables) if v in own]
        if not turning:
            return answers
        waits = isinstance(step, Wait)
        names = [answers.variables[at] for at in turning]
        for values, before in answers.by_values.items():
            of_ring = {v: values[at] for v, at in zip(names, turning, strict=True)}
            other = list(values)
            for at, value in zip(turning, self.variables[agent.number].turned(of_ring, 1).values(), strict=True):
                other[at] = value
            _compare(ring, before, answers.by_values[tuple(other)], waits)
        return None

    # ------------------------------------------------------------------------------------------------------ asking

    def _asked(self, agent: Agent, step: Step, own: set[int]) -> Answers | None:
        """What a step answers; None where that hangs on no ring."""
        used, whole = _looked_at(step, own)
        variables = self.variables[agent.number]
        used |= {variables.partner[v] for v in used if v in variables.partner}
        others = {v for v in used if v not in variables.stages and v not in variables.constants}
        if others:  # it looks at what is no ring's
            if isinstance(step, Choose) and own.isdisjoint(used):
                return None
            env = self.state.environments[agent.number]
            if not others <= of_widths(step) or not all(isinstance(env[v], (int, Sum)) for v in others):
                raise Different
            used -= others
        key = step, whole
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._answered(agent, step, used, whole)
        found = self._known[key]
        if found is None:
            raise Different
        return found

    def _answered(self, agent: Agent, step: Step, used: set[int], whole: bool) -> Answers:
        variables = self.variables[agent.number]
        fixed = {v: variables.constants[v] for v in used if v not in variables.stages}
        free = tuple(sorted(used - fixed.keys()))
        found = {
            values: self.answer(step, agent, fixed | dict(zip(free, values, strict=True)), whole=whole)
            for values in _combinations(variables, free)
        }
        barriers = frozenset(barrier for answer in found.values() for barrier in answer.barriers)
        events = 0
        for answer in found.values():
            for bit in answer.events:
                events |= bit
        return Answers(free, found, barriers, events)

    def answer(self, step: Step, agent: Agent, values: dict[int, int], *, whole: bool = True) -> Answer:
        """What a step does with some values of variables; whole: with its counts and bytes."""
        context, state = self.context, self.state
        env = state.environments[agent.number]
        for v, value in values.items():
            env[v] = value
        context.fit(state)
        barriers: list[Barrier] = []
        touches: list[Any] = []
        parity = 0
        same: Any = None
        if isinstance(step, OnBarrier):
            targets = step.targets(context, state, agent)
            barriers = [barrier.followed for barrier, _ in targets]
            same = [(barrier.cta - barrier.followed.cta, mask) for barrier, mask in targets]
            for barrier, _ in targets:
                self._prepare(step, agent, barrier, env)
        if isinstance(step, Wait):
            parity = step.number_of(step.parity(env), "the parity") & 1
        elif not whole:
            pass
        elif isinstance(step, Arrive):
            same = same, step.each(env), step.bytes(env)
        elif isinstance(step, (Commit, Copy)):
            same = same, step.bytes(env)
        elif isinstance(step, Choose):
            same = step.condition(env)
        if isinstance(step, (Access, Allocation, Copy, Start)):
            touches = step.touches(context, state, agent)
            if any(context.under(touch) for touch in touches):
                raise Different
        return Answer(tuple(barriers), parity, tuple([touch.bit for touch in touches]), same)

    def _prepare(self, step: Step, agent: Agent, barrier: Barrier, env: Environment) -> None:
        """Makes the events that a step has at a barrier, so that they have names."""
        context = self.context
        if isinstance(step, Wait):
            context.wait_bit(barrier, agent.number)
        elif isinstance(step, Commit) and not step.is_bytes:
            context.use_bit(barrier, agent, step, later=True)
        if not isinstance(step, Wait) and (context.tracks_uses or barrier.cta != agent.cta):
            context.use_bit(barrier, agent, step)
        if barrier.detailed and (
            step.each(env) if isinstance(step, Arrive) else isinstance(step, Commit) and step.counts
        ):
            context.each_bits(barrier, agent.number)

    def _try_assignment(self, agent: Agent, step: Assignment, own: set[int]) -> None:
        variables = self.variables[agent.number]
        env = self.state.environments[agent.number][:]
        for target, function, value in zip(step.targets, step.functions, step.values, strict=True):
            used = set(value.variables)
            if target not in own and used.isdisjoint(own):
                continue
            other = variables.partner.get(target)
            sources = [(target, function)]
            if other is not None:
                if other not in step.targets:
                    raise Different
                at = step.targets.index(other)
                sources.append((other, step.functions[at]))
                used |= step.values[at].variables
            for values, turned in self._values(agent, used, own):
                results = []
                for some in (values, turned):
                    for v, x in some.items():
                        env[v] = x
                    results.append({v: _number(f(env)) for v, f in sources})
                before, after = results
                expected = variables.turned(before, 1) if target in own else before
                if expected[target] != after[target]:
                    raise Different

    def _values(self, agent: Agent, used: set[int], own: set[int]) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
        """Values of variables that are looked at, as they are and with those of a ring turned by a stage."""
        variables = self.variables[agent.number]
        used = used | {variables.partner[v] for v in used if v in variables.partner}
        fixed = {v: variables.constants[v] for v in used - own if v in variables.constants}
        free = sorted(used - fixed.keys())
        if any(v not in variables.stages for v in free):
            raise Different  # it looks at what is no ring's
        for combination in _combinations(variables, free):
            values = fixed | dict(zip(free, combination, strict=True))
            yield values, values | variables.turned({v: values[v] for v in free if v in own}, 1)

    # -------------------------------------------------------------------------------------------------- completing

    def _complete(self, ring: Ring) -> None:
        """Renames all that barriers have, and asks whether what is renamed is alike."""
        context = self.context
        barriers = ring.barriers
        if set(barriers) != set(barriers.values()):
            raise Different
        for barrier, other in [*barriers.items()] * 2:  # the second time all have what one has
            ring.flips.setdefault(barrier, 0)
            if (
                barrier.relied is not None
                or len(barrier.of_lives) > 1
                or barrier.detailed != other.detailed
                or context.masks.get(barrier.init) != context.masks.get(other.init)
            ):
                raise Different
            for name in ("init", "last", "before"):
                ring.rename(getattr(barrier, name), getattr(other, name))
            for agent in barrier.waits:
                ring.rename(barrier.waits[agent], context.wait_bit(other, agent))
            for agent, bits in barrier.each.items():
                for bit, to in zip(bits, context.each_bits(other, agent), strict=True):
                    ring.rename(bit, to)
            for bit, to in context.use_bits(barrier, other):
                ring.rename(bit, to)
        if set(ring.bits) != set(ring.bits.values()):
            raise Different
        one = Names(ring.bits, context.blocks.ones)
        for bit, touch in context.touches.items():
            same = context.touches[ring.bits.get(bit, bit)]
            moved = touch is not same or (touch.conflicts | touch.within | touch.across) & one.moved
            if moved and (
                same.conflicts != one[touch.conflicts]
                or same.within != one[touch.within]
                or same.across != one[touch.across]
                or (same.array, same.cta) != (touch.array, touch.cta)
            ):
                raise Different
            if touch.bytes and ring.bytes.setdefault(touch.bytes, same.bytes) != same.bytes:
                raise Different
        if set(ring.bytes) != set(ring.bytes.values()):
            raise Different
        for orbit in orbits(barriers):
            arrivals, waiters = orbit[0].arrivals, orbit[0].waiters
            for barrier in orbit[1:]:
                for agent, sites in barrier.arrivals.items():
                    arrivals.setdefault(agent, {}).update(sites)
                waiters.update(barrier.waiters)
                orbit[0].shared |= barrier.shared
                barrier.arrivals, barrier.waiters = arrivals, waiters
            for barrier in orbit:
                barrier.shared = orbit[0].shared
                barrier.of_lives[barrier.initialised] = arrivals


def _combinations(variables: RingVariables, free: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All that variables of rings can be together."""
    stages = [variables.stages[v] for v in free]
    if prod(stages) > _MOST_TRIED:
        raise Different
    return product(*map(range, stages))


def _compare(ring: Ring, before: Answer, after: Answer, waits: bool) -> None:
    if (
        len(before.barriers) != len(after.barriers)
        or len(before.events) != len(after.events)
        or before.same != after.same
    ):
        raise Different
    for barrier, other in zip(before.barriers, after.barriers, strict=True):
        ring.becomes(barrier, other)
        if waits:
            ring.flip(barrier, before.parity ^ after.parity)
    for bit, other_bit in zip(before.events, after.events, strict=True):
        ring.rename(bit, other_bit)


def _number(value: Value) -> int:
    if type(value) is not int:
        raise Different
    return value


def _looked_at(step: Step, own: set[int]) -> tuple[set[int], bool]:
    """The variables to try a step with, and whether all that it says hangs on them: counts and bytes need not, where
    they are the same for all stages by their variables."""
    used = set(step.uses)
    if isinstance(step, (Arrive, Commit, Copy)):
        addressed = {*step.variables, *(step.part_variables if isinstance(step, Copy) else ())}
        if own.isdisjoint(used - addressed):
            return addressed, False
    return used, True
