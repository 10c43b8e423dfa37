"""Which of the loops around an assignment it moves on by a turn."""

from __future__ import annotations

from collections.abc import Collection

from ptxdsl.check.counters import Counters
from ptxdsl.check.expressions import Expressions
from ptxdsl.check.program import Follow, Step
from ptxdsl.check.recurrences import Recurrent
from ptxdsl.protocol.expressions import Expr


def inductive_in(counters: Counters, around: Collection[int], target: int, value: Expr) -> tuple[int, Expr, int] | None:
    """For a variable that grows by the same in each turn: the variable of its start, what it grows by, the counter."""
    for label, turn in counters.turn_of.items():
        found = counters.inductive.get((label, target))
        if found is not None and label in around and value.op == "add" and found[1] in value.args:
            return (*found, turn)
    return None


def follow(counters: Counters, expressions: Expressions, around: Collection[int], target: int) -> Step | None:
    """The end of a turn for a variable that its loop computes anew; None of another."""
    for label in around:
        for recurrent in counters.recurrent.get(label, ()):
            if recurrent.variable == target:
                return followed(counters, expressions, label, recurrent, 1)
    return None


def followed(counters: Counters, expressions: Expressions, label: int, recurrent: Recurrent, ahead: int) -> Step:
    """Such a variable after so many turns more than the loop's counter says."""
    turn = counters.turn_of[label]
    group = counters.group(turn)
    assert group is not None
    begun = [counters.begun[label, v] for v in recurrent.of]
    inputs = [expressions.function(leaf)([]) for leaf in recurrent.inputs]
    return Follow(recurrent, begun, inputs, turn, ahead, group)
