"""Which of the loops around an assignment it moves on by a turn."""

from __future__ import annotations

from collections.abc import Collection

from ptxdsl.check.counters import Counters
from ptxdsl.check.recurrences import Recurrent
from ptxdsl.protocol.expressions import Expr


def inductive_in(counters: Counters, around: Collection[int], target: int, value: Expr) -> tuple[int, Expr, int] | None:
    """For a variable that grows by the same in each turn: the variable of its start, what it grows by, the counter."""
    for label, turn in counters.turn_of.items():
        found = counters.inductive.get((label, target))
        if found is not None and label in around and value.op == "add" and found[1] in value.args:
            return (*found, turn)
    return None


def recurrent_in(counters: Counters, around: Collection[int], target: int) -> tuple[int, Recurrent] | None:
    """For a variable that is computed anew in each turn: the loop's label, and how."""
    for label in around:
        for recurrent in counters.recurrent.get(label, ()):
            if recurrent.variable == target:
                return label, recurrent
    return None
