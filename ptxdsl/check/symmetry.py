"""Rings whose stages are alike: states that differ in how far a ring has been turned are the same.

A program that comes to a ring's barriers and slots by the number of the stage alone does at stage ``i + 1`` what it did
at stage ``i``. Let *turning* a state back by a stage rename it everywhere: the numbers in variables (a parity flips
where its number passes the ring's end), the barriers with what they have and hold, the events at slots. If each step of
every agent, run on a turned state, gives the turned result, then turning is an automorphism of all that can happen: a
fault can be reached from a state if, and only if, it can be reached from the turned one, and one of them is enough. So
every state is turned until its rings stand at their beginning, and how many stages they have makes no difference.

That steps and turning commute is not read off the text but tried: a step is asked for its barriers, parities, bytes and
events with all values that its ring's variables can have, and what it answers for a value and for the turned one must
correspond, in one renaming for all steps of all agents. All steps are looked at that can be reached from the state at
hand; one that is something else (a barrier by its constant address, an initialisation, a slot that overlaps with what
is no slot) breaks the correspondence, and the ring is not turned.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ptxdsl.check.barriers import Arrive, Commit, Copy, Initialise, Invalidate, OnBarrier, Wait
from ptxdsl.check.collectives import ClusterArrive, ClusterWait, Meet, WarpSync
from ptxdsl.check.context import Context
from ptxdsl.check.findings import Fault, Unproved
from ptxdsl.check.groups import CommitGroup, Fence, Start, WaitGroup
from ptxdsl.check.liveness import live_variables
from ptxdsl.check.parts import Agent, Barrier
from ptxdsl.check.program import Advance, Assignment, Cannot, Choose, End, Enter, Go, Head, Leave, Next, Step, Turned
from ptxdsl.check.ring_variables import RingVariables, ring_variables
from ptxdsl.check.slots import Access
from ptxdsl.check.states import State
from ptxdsl.check.tensor import Allocation, Relinquishment, TensorFence
from ptxdsl.check.turns import Different, Names, Ring, Turn, flipped, orbits
from ptxdsl.check.values import Value
from ptxdsl.hints import Any

# Combinations of values of its rings' variables that a step is tried with.
_MOST_TRIED = 160

_FREE = (
    Advance, Cannot, ClusterArrive, ClusterWait, CommitGroup, End, Enter, Fence, Go, Head, Leave, Meet, Next,
    Relinquishment, TensorFence, Turned, WaitGroup, WarpSync,
)  # fmt: skip


class Symmetry:
    """The rings of a kernel that can be turned, from a state on."""

    def __init__(self, context: Context, state: State) -> None:
        self.context = context
        self.tried = state.copy()  # its environments get the values that steps are tried with
        self.variables: list[RingVariables] = []
        self.region: list[frozenset[int]] = []
        self.live: list[list[int]] = []
        for agent in context.agents:
            self.variables.append(ring_variables(agent.steps))
            self.region.append(_reached(agent, state.places[agent.number]))
            self.live.append(live_variables(agent.steps))
        self.rings = [ring for ring in self._assembled() if self._alike(ring)]
        context.fit(state)

    # ---------------------------------------------------------------------------------------------------- turning

    def turn(self, state: State) -> None:
        """Turns the rings of a state to where they begin."""
        places = state.places
        if not all(place < 0 or place in region for place, region in zip(places, self.region, strict=True)):
            return
        for ring in self.rings:
            if any(barrier.relied is not None or len(barrier.of_lives) > 1 for barrier in ring.barriers):
                raise Unproved(self.context.kernel.span, "stages of a ring are used by different roles")
            by = self._position(ring, state)
            if by:
                self._turn(ring, state, by)

    def _position(self, ring: Ring, state: State) -> int:
        """How far a ring has been turned, by the first of its variables that matter; 0 where none does."""
        found: int | None = None
        for number, v in ring.variables:
            place = state.places[number]
            if place < 0 or not self.live[number][place] >> v & 1:
                continue
            variables, env = self.variables[number], state.environments[number]
            value = env[v]
            other = variables.partner.get(v)
            if type(value) is not int or not 0 <= value < variables.stages[v]:
                return 0
            if other is not None:
                if not self.live[number][place] >> other & 1 or type(env[other]) is not int:
                    return 0  # what the parity belongs to is not known
                value = value * variables.stages[other] + env[other]
            if found is None and (other is not None or variables.stages[v] == ring.order):
                found = value
        return found or 0

    def _turn(self, ring: Ring, state: State, by: int) -> None:
        turn = ring.turns.get(by)
        if turn is None:
            turn = ring.turns[by] = self._composed(ring, by)
        for number, variables in enumerate(self.variables):
            env = state.environments[number]
            values = {v: env[v] for owner, v in ring.variables if owner == number and type(env[v]) is int}
            values = {v: x for v, x in values.items() if variables.partner.get(v, v) in values}
            for v, value in variables.turned(values, by).items():
                env[v] = value
        renamed, known, proxied, phases = turn.events.renamed, state.known, state.proxied, state.phases
        new_known, new_proxied, new_phases = list(map(renamed, known)), list(map(renamed, proxied)), phases[:]
        for barrier, other in turn.barriers.items():
            flips = turn.flips[barrier]
            old = phases[barrier.number]
            new_phases[other.number] = flipped(old) if flips else old
            if old.unclear:
                self.context.unclear.setdefault(other.number, self.context.unclear[barrier.number])
            for at in (0, 1):
                new_known[other.holder + at] = renamed(known[barrier.holder + at])
                new_proxied[other.holder + at] = renamed(proxied[barrier.holder + at])
        state.known, state.proxied, state.phases = new_known, new_proxied, new_phases
        state.live = renamed(state.live)
        state.fresh = list(map(renamed, state.fresh))
        state.met = list(map(renamed, state.met))
        state.fenced = list(map(renamed, state.fenced))
        touches, names = self.context.touches, turn.events.bits
        state.fill.turned(
            turn.bytes.renamed, renamed, turn.numbers, lambda touch: touches[names.get(touch.bit, touch.bit)]
        )
        state.groups = [{name: tuple(map(renamed, work)) for name, work in own.items()} for own in state.groups]

    def _composed(self, ring: Ring, by: int) -> Turn:
        barriers = {barrier: barrier for barrier in ring.barriers}
        flips = dict.fromkeys(barriers, 0)
        bits = {bit: bit for bit in ring.bits}
        bytes = {bit: bit for bit in ring.bytes}
        for _ in range(by):
            flips = {b: f ^ ring.flips.get(barriers[b], 0) for b, f in flips.items()}
            barriers = {b: ring.barriers[other] for b, other in barriers.items()}
            bits = {bit: ring.bits[other] for bit, other in bits.items()}
            bytes = {bit: ring.bytes[other] for bit, other in bytes.items()}
        return Turn(barriers, flips, bits, bytes)

    # --------------------------------------------------------------------------------------------------- assembling

    def _assembled(self) -> list[Ring]:
        """Rings with their variables: those by which the same barriers are come to, or that one step looks at."""
        parent: dict[Any, Any] = {}

        def find(item: Any) -> Any:
            parent.setdefault(item, item)
            while parent[item] is not item:
                item = parent[item]
            return item

        for agent in self.context.agents:
            variables = self.variables[agent.number]
            items = {v: (agent.number, kin) for v, kin in variables.kin.items()}
            items = {v: find(item) and item for v, item in items.items()}
            for v, other in variables.partner.items():
                parent[find(items[v])] = find(items[other])
            for step in self._steps(agent):
                used = [items[v] for v in step.uses if v in items]
                if not used or not isinstance(step, OnBarrier):
                    continue
                if not step.met and all(v in items or v in variables.constants for v in step.uses):
                    self._answers(step, agent, {v: variables.constants.get(v, 0) for v in step.uses})
                for barrier in step.met:
                    parent[find(barrier)] = find(used[0])
        context = self.context
        looks = {
            bit: [(touch.agent, kin[v]) for v in touch.site.uses if v in kin]
            for bit, touch in context.touches.items()
            for kin in (self.variables[touch.agent].kin,)
        }
        for bit, touch in context.touches.items():
            rest = touch.conflicts if looks[bit] else 0
            while rest:
                other = rest & -rest
                rest ^= other
                if looks[other]:
                    parent[find(looks[other][0])] = find(looks[bit][0])
        rings: dict[Any, Ring] = {}
        for agent in self.context.agents:
            variables = self.variables[agent.number]
            for v, kin in sorted(variables.kin.items()):
                ring = rings.setdefault(find((agent.number, kin)), Ring())
                ring.variables.append((agent.number, v))
                ring.order = max(ring.order, variables.order([v]))
        return list(rings.values())

    def _steps(self, agent: Agent) -> Iterator[Step]:
        for place in self.region[agent.number]:
            yield agent.steps[place]

    # ----------------------------------------------------------------------------------------------------- trying

    def _alike(self, ring: Ring) -> bool:
        """Whether all steps commute with turning a ring; finds what that renames."""
        try:
            for agent in self.context.agents:
                own = {v for number, v in ring.variables if number == agent.number}
                for step in self._steps(agent):
                    self._try(ring, agent, step, own)
            self._complete(ring)
        except (Different, Unproved, Fault):
            return False
        return True

    def _try(self, ring: Ring, agent: Agent, step: Step, own: set[int]) -> None:
        if isinstance(step, (Initialise, Invalidate)):
            raise Different
        if isinstance(step, _FREE):
            if not own.isdisjoint([*step.uses, *step.assigns]):
                raise Different
            return
        if isinstance(step, Assignment):
            self._try_assignment(agent, step, own)
            return
        if not isinstance(step, (Access, Start, Allocation, Choose, OnBarrier)):
            raise Different
        used, whole = _looked_at(step, own)
        for values, turned in self._values(agent, step, used, own):
            before = self._answers(step, agent, values, whole=whole)
            after = self._answers(step, agent, turned, whole=whole) if values != turned else before
            self._compare(ring, step, before, after)

    def _values(
        self, agent: Agent, step: Step, used: set[int], own: set[int]
    ) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
        """Values of the variables of a ring and of others that a step looks at, as they are and turned by a stage."""
        variables = self.variables[agent.number]
        used = used | {variables.partner[v] for v in used if v in variables.partner}
        turning, others = sorted(used & own), sorted(used - own)
        fixed = {v: variables.constants[v] for v in others if v in variables.constants}
        free = [v for v in others if v not in fixed]
        if any(v not in variables.stages for v in free):
            if not isinstance(step, Choose) or turning:
                raise Different  # it looks at what is no ring's
            return
        domains = [range(variables.stages[v]) for v in (*turning, *free)]
        count = 1
        for domain in domains:
            count *= len(domain)
        if count > _MOST_TRIED:
            raise Different
        for values in product(*domains):
            of_ring = dict(zip(turning, values, strict=False))
            rest = fixed | dict(zip(free, values[len(turning) :], strict=True))
            yield of_ring | rest, variables.turned(of_ring, 1) | rest

    def _answers(
        self, step: Step, agent: Agent, values: dict[int, int], *, whole: bool = True
    ) -> tuple[list[Barrier], int, list[int], Any]:
        """The barriers that a step comes to, a wait's parity, the events that it makes; whole: counts and bytes too."""
        context, state = self.context, self.tried
        env = state.environments[agent.number]
        for v, value in values.items():
            env[v] = value
        context.fit(state)
        barriers: list[Barrier] = []
        touches: list[Any] = []
        parity = 0
        rest: Any = None
        if isinstance(step, OnBarrier):
            targets = step.targets(context, state, agent)
            barriers = [barrier for barrier, _ in targets]
            rest = [mask for _, mask in targets]
            for barrier in barriers:
                self._prepare(step, agent, barrier)
        if isinstance(step, Wait):
            parity = step.number_of(step.parity(env), "the parity") & 1
        elif not whole:
            pass
        elif isinstance(step, Arrive):
            rest = rest, step.each(env), step.bytes(env)
        elif isinstance(step, (Commit, Copy)):
            rest = rest, step.bytes(env)
        elif isinstance(step, Choose):
            rest = step.condition(env)
        if isinstance(step, (Access, Allocation, Copy, Start)):
            touches = step.touches(context, state, agent)
            if any(context.under(touch) for touch in touches):
                raise Different
        return barriers, parity, [touch.bit for touch in touches], rest

    def _prepare(self, step: Step, agent: Agent, barrier: Barrier) -> None:
        """Makes the events that a step has at a barrier, so that they have names."""
        context = self.context
        if isinstance(step, Wait):
            context.wait_bit(barrier, agent.number)
        elif isinstance(step, Commit) and not step.is_bytes:
            context.use_bit(barrier, agent, step, later=True)
        if not isinstance(step, Wait) and (context.tracks_uses or barrier.cta != agent.cta):
            context.use_bit(barrier, agent, step)

    @staticmethod
    def _compare(ring: Ring, step: Step, before: Any, after: Any) -> None:
        if len(before[0]) != len(after[0]) or len(before[2]) != len(after[2]) or before[3] != after[3]:
            raise Different
        for barrier, other in zip(before[0], after[0], strict=True):
            ring.becomes(barrier, other)
            if isinstance(step, Wait):
                ring.flip(barrier, before[1] ^ after[1])
        for bit, other in zip(before[2], after[2], strict=True):
            ring.rename(bit, other)

    def _try_assignment(self, agent: Agent, step: Assignment, own: set[int]) -> None:
        variables = self.variables[agent.number]
        env = self.tried.environments[agent.number][:]
        for target, function, value in zip(step.targets, step.functions, step.values, strict=True):
            used = set(step.used(value))
            if target not in own and used.isdisjoint(own):
                continue
            other = variables.partner.get(target)
            sources = [(target, function)]
            if other is not None:
                if other not in step.targets:
                    raise Different
                at = step.targets.index(other)
                sources.append((other, step.functions[at]))
                used |= set(step.used(step.values[at]))
            for values, turned in self._values(agent, step, used, own):
                results = []
                for some in (values, turned):
                    for v, x in some.items():
                        env[v] = x
                    results.append({v: _number(f(env)) for v, f in sources})
                before, after = results
                expected = variables.turned(before, 1) if target in own else before
                if expected[target] != after[target]:
                    raise Different

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
        one = Names(ring.bits)
        for bit, touch in context.touches.items():
            same = context.touches[ring.bits.get(bit, bit)]
            if (
                same.conflicts != one.renamed(touch.conflicts)
                or same.within != one.renamed(touch.within)
                or same.across != one.renamed(touch.across)
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


def _reached(agent: Agent, place: int) -> frozenset[int]:
    """The places that an agent may come to."""
    pending, found = [place] if place >= 0 else [], set[int]()
    while pending:
        at = pending.pop()
        if at not in found:
            found.add(at)
            pending.extend(agent.steps[at].successors)
    return frozenset(found)
