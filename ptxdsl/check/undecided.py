"""States in which something must be decided, and the ways in which it can turn out."""

from __future__ import annotations

from ptxdsl.check.context import Context
from ptxdsl.check.facts import Outcome
from ptxdsl.check.findings import Unproved
from ptxdsl.check.parts import Agent
from ptxdsl.check.program import ASK, Step
from ptxdsl.check.states import State
from ptxdsl.hints import Any

# Questions of one step that are decided one after the other.
_MOST_ASKED = 10_000


class Undecided:
    """A state in which an agent's step must be decided, and the ways in which it can turn out. number: of states, in
    the order in which they were come to. pending: the numbers of ways that are to be followed; ended: of those that led
    to no other state, or to nothing new, when they were followed last. forgetful: whether it was known already what is
    of no use (``relevance.py``)."""

    def __init__(
        self, state: State, asked: tuple[Step, Agent, Any, list[Outcome]], number: int, forgetful: bool
    ) -> None:
        self.state = state
        self.step, self.agent, _, self.outcomes = asked
        self.number = number
        self.forgetful = forgetful
        self.pending: set[int] = set()
        self.ended: set[int] = set()

    def ask(self, context: Context) -> bool:
        """Finds the ways by the facts that the state has left; whether they are others."""
        after = self.step.run(context, self.state, self.agent)
        assert after == ASK  # who knows less has more to ask
        outcomes = context.asked[3]
        if outcomes == self.outcomes:
            return False
        self.outcomes = outcomes
        self.pending.clear()
        return True

    def decided(self, context: Context, outcome: Outcome) -> list[State]:
        """The states to which a way leads: one for each way in which the rest turns out that is asked in the same step,
        as in ``a or b``. What is decided there must not be forgotten before the step has gone on, or it might be
        decided again and again, and never what comes after it."""
        found: list[State] = []
        pending = [(self.state, outcome)]
        for _ in range(_MOST_ASKED):
            if not pending:
                return found
            state, outcome = pending.pop()
            state = state.copy()
            state.facts.add(outcome)
            state.path = (state.path, outcome)
            if self.step.run(context, state, self.agent) == ASK:
                pending += [(state, further) for further in context.asked[3]]
            else:
                found.append(state)
        raise Unproved(
            self.step.span or context.kernel.span,
            "a condition has too many parts",
            "put its parts into branches in one another",
        )


def order(way: tuple[Undecided, int]) -> tuple[bool, int, int]:
    """Which way a coarse search follows first: from the state that was come to first, for what is new there is told to
    all behind it, and loops go on before they end. Last what came to nothing, so that it is looked at once for all."""
    asked, number = way
    return number in asked.ended, asked.number, number
