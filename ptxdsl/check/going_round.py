"""Agents that go round without a decision: whether a state is one that was there before."""

from __future__ import annotations

from ptxdsl.check.counters import Counters
from ptxdsl.check.normal import Normal, TooFarAhead
from ptxdsl.check.parts import Agent
from ptxdsl.check.program import Next
from ptxdsl.check.states import State
from ptxdsl.hints import Any


def all_of(normal: Normal, state: State) -> Any:
    """All that what comes after a state hangs on, which is put in order for it; None where some are too far ahead to
    tell."""
    try:
        return normal.key(state)
    except TooFarAhead:
        return None


class Alone:
    """The states of an agent that goes on alone, but for how often it has gone round, where it does not ask."""

    def __init__(self, normal: Normal, counters: Counters, agent: Agent) -> None:
        asked = {v for step in agent.steps if not isinstance(step, Next) for v in step.uses}
        self.normal = normal
        self.agent = agent
        self.turns = [turn for turn in counters.turn_of.values() if turn not in asked]
        self.been: dict[int, Any] = {}  # the first state at each place

    def is_back(self, state: State, place: int) -> bool:
        """Whether it was at this place in this very state."""
        state = state.copy()
        env = state.environments[self.agent.number]
        for turn in self.turns:
            if type(env[turn]) is int:
                env[turn] = 0
        now = all_of(self.normal, state)
        if now is None:
            return False
        before = self.been.setdefault(place, now)
        return before is not now and before == now
