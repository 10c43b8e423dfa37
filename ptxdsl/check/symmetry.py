"""Rings whose stages are alike: states that differ in how far a ring has been turned are the same.

A program that comes to a ring's barriers and slots by the number of the stage alone does at stage ``i + 1`` what it did
at stage ``i``. Let *turning* a state back by a stage rename it everywhere: the numbers in variables (a parity flips
where its number passes the ring's end), the barriers with what they have and hold, the events at slots. If each step of
every agent, run on a turned state, gives the turned result (``alike.py`` tries that), then turning is an automorphism
of all that can happen: a fault can be reached from a state if, and only if, it can be reached from the turned one, and
one of them is enough. So every state is turned until its rings (``rings.py``) stand at their beginning, and how many
stages they have makes no difference.

All steps are looked at that can be reached from the state at hand; one that is something else (a barrier by its
constant address, an initialisation, a slot that overlaps with what is no slot) breaks the correspondence, and the ring
is not turned.
"""

from __future__ import annotations

from ptxdsl.check.alike import Trial
from ptxdsl.check.context import Context
from ptxdsl.check.findings import Unproved
from ptxdsl.check.liveness import live_variables
from ptxdsl.check.parts import Agent
from ptxdsl.check.ring_variables import RingVariables, ring_variables
from ptxdsl.check.rings import rings
from ptxdsl.check.states import State
from ptxdsl.check.turns import Ring, Turn, flipped


class Symmetry:
    """The rings of a kernel that can be turned, from a state on."""

    def __init__(self, context: Context, state: State) -> None:
        self.context = context
        self.variables: list[RingVariables] = []
        self.region: list[frozenset[int]] = []
        self.live: list[list[int]] = []
        for agent in context.agents:
            self.variables.append(ring_variables(agent.steps))
            self.region.append(_reached(agent, state.places[agent.number]))
            self.live.append(live_variables(agent.steps))
        trial = Trial(context, state, self.variables, self.region)
        self.rings = [ring for ring in rings(trial) if trial.alike(ring)]
        self._turns: dict[tuple[int, ...], Turn] = {}
        self._touches = len(context.touches)  # all that the steps have, with all values of the rings' variables
        context.fit(state)

    def check(self) -> None:
        """Raises Unproved where a step has touched what it was not tried with."""
        if self.rings and len(self.context.touches) > self._touches:
            raise Unproved(
                self.context.kernel.span,
                "how much of a stage is touched is not the same in all turns",
                "let each turn copy as many bytes of a stage as the others",
            )

    def turn(self, state: State) -> None:
        """Turns the rings of a state to where they begin."""
        self.check()
        places = state.places
        if not all(place < 0 or place in region for place, region in zip(places, self.region, strict=True)):
            return
        for ring in self.rings:
            if any(barrier.relied is not None or len(barrier.of_lives) > 1 for barrier in ring.barriers):
                raise Unproved(
                    self.context.kernel.span,
                    "stages of a ring are used by different roles",
                    "give each role a ring of its own, or let all roles go round all stages",
                )
        by = tuple([self._position(ring, state) for ring in self.rings])
        if any(by):
            self._turn(by, state)

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

    def _turn(self, by: tuple[int, ...], state: State) -> None:
        """Turns each ring by so many stages."""
        turn = self._turns.get(by)
        if turn is None:
            turn = self._turns[by] = Turn(zip(self.rings, by, strict=True), self.context.blocks.ones)
        for ring, stages in zip(self.rings, by, strict=True):
            if stages:
                self._turn_variables(ring, state, stages)
        events, known, proxied, phases = turn.events, state.known, state.proxied, state.phases
        new_known, new_proxied, new_phases = [events[k] for k in known], [events[k] for k in proxied], phases[:]
        for barrier, other in turn.barriers.items():
            flips = turn.flips[barrier]
            old = phases[barrier.number]
            new_phases[other.number] = flipped(old) if flips else old
            if old.unclear:
                self.context.unclear.setdefault(other.number, self.context.unclear[barrier.number])
            for at in (0, 1):
                new_known[other.holder + at] = events[known[barrier.holder + at]]
                new_proxied[other.holder + at] = events[proxied[barrier.holder + at]]
        state.known, state.proxied, state.phases = new_known, new_proxied, new_phases
        state.live = events[state.live]
        state.fresh = [events[k] for k in state.fresh]
        state.met = [events[k] for k in state.met]
        state.fenced = [events[k] for k in state.fenced]
        state.fill.turned(turn, self.context.touches)
        state.groups = [{name: tuple([events[k] for k in work]) for name, work in own.items()} for own in state.groups]

    def _turn_variables(self, ring: Ring, state: State, by: int) -> None:
        of_agents: dict[int, dict[int, int]] = {}
        for number, v in ring.variables:
            value = state.environments[number][v]
            if type(value) is int:
                of_agents.setdefault(number, {})[v] = value
        for number, values in of_agents.items():
            variables = self.variables[number]
            values = {v: x for v, x in values.items() if variables.partner.get(v, v) in values}
            env = state.environments[number]
            for v, value in variables.turned(values, by).items():
                env[v] = value


def _reached(agent: Agent, place: int) -> frozenset[int]:
    """The places that an agent may come to."""
    pending, found = [place] if place >= 0 else [], set[int]()
    while pending:
        at = pending.pop()
        if at not in found:
            found.add(at)
            pending.extend(agent.steps[at].successors)
    return frozenset(found)
