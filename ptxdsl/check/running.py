"""Runs the agents of a state, each as far as it can go, until something must be decided (``search.py``)."""

from __future__ import annotations

from ptxdsl.check import endings
from ptxdsl.check.cluster import Apart
from ptxdsl.check.collectives import released
from ptxdsl.check.context import Context
from ptxdsl.check.counters import Counters
from ptxdsl.check.findings import Unproved
from ptxdsl.check.normal import Normal
from ptxdsl.check.parts import Agent
from ptxdsl.check.program import ASK, END, ROUND, WAIT
from ptxdsl.check.states import State
from ptxdsl.hints import Any
from ptxdsl.protocol.model import Kernel

# Steps of one role between two decisions, and those of them at which it is asked whether it goes round for ever.
MAX_TURN = 20_000
_MOST_COMPARED = 1_000
_MANY_ROUNDS = 128  # without a decision, from which it is asked whether the state is one that was
# Where loops do not repeat.
SAME = "let all roles compute their trip counts and conditions from the same values in the same way"


class Runner:
    """steps: how many were run so far, max_steps: how many may be. going: who goes on."""

    context: Context
    counters: Counters
    normal: Normal

    def __init__(self, kernel: Kernel, max_steps: int) -> None:
        self.kernel = kernel
        self.max_steps = max_steps
        self.steps = 0
        self.going: Agent | None = None

    def advance(self, state: State) -> Any:
        """Runs all agents as far as they go; the test that must be decided, None where all is over."""
        context = self.context
        context.turn_to(state)
        places = state.places
        moved = True
        asked: dict[int, Any] = {}
        met: dict[int, int] = {}  # where agents wait until others lead them on
        going_round: set[int] = set()
        rounds, compared = 0, None
        went: set[int] = set()  # since then
        while moved or (not asked and state.meetings and released(context, state)):
            moved = False
            rounds += 1
            if rounds >= _MANY_ROUNDS and rounds & rounds - 1 == 0:
                from ptxdsl.check.going_round import all_of  # seldom

                compared = all_of(self.normal, state.copy())
                went.clear()
            elif compared is not None and compared == all_of(self.normal, state.copy()):
                if all(place == END or number in went for number, place in enumerate(places)):
                    return None  # so it goes on for ever, and nothing is asked
                raise Unproved(self.kernel.span, "some roles go round without end while others wait", SAME)
            for agent in context.agents:
                number = agent.number
                at = places[number]
                if at == END or number in asked or at == met.get(number):
                    continue
                before = self.steps
                self.going = agent
                after = self.go(state, agent)
                if after == ROUND:
                    going_round.add(number)
                    continue
                going_round.discard(number)
                if self.steps > self.max_steps:
                    raise self._too_long()
                if after == ASK:
                    asked[number] = context.asked
                elif after == WAIT and agent.steps[places[number]].led_on:
                    met[number] = places[number]
                if after == END or self.steps - before > 1:  # it may be back where it was
                    moved = True
                    went.add(number)
        if asked:
            return min(asked.values(), key=lambda found: _behind(state, found))
        self.going = None
        if any(place != END for place in places):
            if context.blocks.count > 1:
                raise Apart
            from ptxdsl.check import deadlock  # where there is one

            raise deadlock.stuck(context, state, going_round)
        endings.check(context, state)
        return None

    def go(self, state: State, agent: Agent) -> int:
        """Runs one agent until it waits, asks, ends or is in a state in which it was; its place is in the state."""
        context, places, steps, number = self.context, state.places, agent.steps, agent.number
        count = 0
        most = min(MAX_TURN, self.max_steps - self.steps)
        alone: Alone | None = None  # where it has gone on for long
        while True:
            at = places[number]
            step = steps[at]
            after = step.run(context, state, agent)
            count += 1
            if after >= 0:
                places[number] = after
                if count > most:
                    if count <= MAX_TURN:
                        self.steps += count
                        raise self._too_long()
                    if alone is None:
                        from ptxdsl.check.going_round import Alone  # seldom

                        alone = Alone(self.normal, self.counters, agent)
                    if alone.is_back(state, after):
                        self.steps += count
                        return ROUND
                    if count > MAX_TURN + _MOST_COMPARED:
                        self.steps += count
                        raise Unproved(
                            step.span or self.kernel.span,
                            "a role goes through too many operations in loops of constant lengths",
                            "let its loop go to a launch parameter: only the turns of constant loops are counted",
                        )
                continue
            if after == END:
                places[number] = END
            self.steps += count
            return after

    def _too_long(self) -> Unproved:
        why = f"following its roles takes more than {self.max_steps} steps"
        return Unproved(
            self.kernel.span,
            why,
            "let long loops go to a launch parameter: only the turns of constant loops are counted",
        )


def _behind(state: State, asked: Any) -> tuple[list[int], int]:
    """The turns of the loops around a test: who is behind is asked first, so that few decisions wait for the others."""
    step, agent = asked[:2]
    return [state.environments[agent.number][variable] for _, variable, _ in step.nesting], agent.number
