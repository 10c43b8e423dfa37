"""Answers of cluster launch control: one role asks, all that read an answer decide alike by it.

    while work.more():        # whether a cluster was cancelled
        ...
        work.next()           # reads the next answer

Whether there was a cluster to be cancelled is not known before the launch, but it is one truth value for all that read
the same answer. Which one that is, is followed: of each place in the array of answers a state has the turn of the
asker's loop in which it was asked for. Who reads it in the same turn of a loop of his own gets *the answer of that
turn*; to others it is unknown.

*Why the one schedule tells.* The asker's loop is in no other and asks once a turn, so a turn names an answer. A read
comes after the copy that it reads and before the one that overwrites it in every schedule, or the search finds a race;
so which answers have been written to a place before a read is the same in all of them.
"""

from __future__ import annotations

from ptxdsl.check.cluster import Apart
from ptxdsl.check.context import Context
from ptxdsl.check.expressions import Expressions, Function
from ptxdsl.check.findings import Unproved
from ptxdsl.check.parts import Agent
from ptxdsl.check.program import Nesting, Step
from ptxdsl.check.states import State
from ptxdsl.check.threads import Mask
from ptxdsl.check.values import UNKNOWN, Sum
from ptxdsl.protocol.answers import array_of
from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Op

Loop = tuple[int, int, int]  # its group, the counter of its turns, which of its like it is


class Asked(Step):
    """An answer is on its way to a place: of which turn of the asker's it is; loop None: of whom cannot be told. again:
    whether it may be asked for more than once."""

    def __init__(
        self, op: Op, array: int, address: Function, variables: frozenset[int], loop: Loop | None, again: bool
    ) -> None:
        super().__init__(op.span)
        self.array, self.address, self.loop, self.again = array, address, loop, again
        self.uses = variables if loop is None else (loop[1], *variables)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        at = self.address(env)
        if not self._granted(context, state, agent):
            assert self.span is not None
            raise Unproved(
                self.span,
                "it may ask for another cluster after the answer that there is none, which has no meaning",
                "ask once a turn of a loop that the last answer ends (`clusterlaunchcontrol_query_cancel(…).canceled`)",
            )
        if type(at) is int:
            state.answers[at] = None if self.loop is None else (self.loop[0], env[self.loop[1]])
        else:
            state.answers.clear()
        return self.number + 1

    def _granted(self, context: Context, state: State, agent: Agent) -> bool:
        """Whether it is the first question, or there was a cluster for the one before, of the turn before."""
        only = len(context.asked_for) == 1
        if only and not self.again:
            return True
        if self.loop is None or not only:
            return False
        group, counter, _ = self.loop
        turn = state.environments[agent.number][counter]
        return turn == 0 or self.settle(context, state, agent, _answer(self.array, group, turn, context)) == 1


def _answer(array: int, group: int, turn: int, context: Context) -> Sum:
    """Whether a cluster was cancelled for the question of the turn before; it may be asked about until then."""
    symbols = context.symbols
    until = symbols.index(turn, ((group, 1, 1),))
    return Sum(0, ((symbols.atom("answer", array, (until,), 0, 1), 1),))


class Answered(Step):
    """A variable gets what the answer at a place says."""

    def __init__(self, target: int, array: int, address: Function, variables: frozenset[int], loop: Loop) -> None:
        super().__init__(None)
        self.target, self.array, self.address, self.loop = target, array, address, loop
        self.uses, self.assigns = (loop[1], *variables), (target,)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        group, counter, _ = self.loop
        at, turn = self.address(env), env[counter]
        env[self.target] = UNKNOWN
        if type(at) is int and state.answers.get(at) == (group, turn):
            env[self.target] = _answer(self.array, group, turn + 1, context)
        return self.number + 1


def asked(op: Op, mask: Mask, expressions: Expressions, context: Context, around: Nesting) -> Step:
    """What comes after a ``try_cancel``."""
    if context.blocks.count > 1:
        raise Apart  # one block asks for all
    (place,) = op.writes
    assert place.address is not None
    array = array_of(place.address)
    names = array not in context.asked_for and mask.bit_count() == 1
    context.asked_for.add(array)
    for_all = op.mask is not None or context.ctas == 1
    address, _, variables = expressions.split(place.address, mask)
    loop = around[0] if names and for_all and len(around) == 1 else None
    return Asked(op, array, address, variables, loop, bool(around) or not names)


def answered(target: int, value: Expr, mask: Mask, expressions: Expressions, around: Nesting) -> Step | None:
    """What a read of an answer gives; None of other values, and where there is no one loop to count by."""
    if value.op != "answer" or len(around) != 1:
        return None
    address, lanes, variables = expressions.split(value.args[0], mask)
    return Answered(target, array_of(value.args[0]), address, variables, around[0]) if lanes is None else None
