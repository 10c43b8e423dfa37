"""Loops that count by more than one, as they are written.

    while start + S * turn < n: …; turn += 1      →      for i in range(start, n, S): …

A start that differs between threads makes a loop of its own form, ``i = start; while i < n: …; i += S``.
"""

from __future__ import annotations

from ptxdsl.protocol.algebra import linear, mentions, of_linear, plain
from ptxdsl.protocol.expressions import Expr, const, var
from ptxdsl.protocol.model import Assign, Branch, Jump, Loop, Node, Range, Seq, walk
from ptxdsl.protocol.ranges import while_condition
from ptxdsl.protocol.rewriting import assigned, expressions_of, replaced
from ptxdsl.protocol.turn_numbers import TurnNumbers
from ptxdsl.record import dataclass, replace

_OF_THREADS = frozenset({"tid", "unknown", "load"})


def by_step(program: Seq, turns: frozenset[int], variables: int) -> tuple[Seq, int]:
    """turns: the variables that number the turns of loops. Gives the number of variables there are then, too."""
    while True:
        for loop in [node for node in walk(program) if isinstance(node, Loop)]:
            steps = _steps_of(loop, turns)
            if steps is not None and not _looked_at(program, loop, steps.turn):
                program = replaced(program, loop, _stepping(loop, steps, variables))
                variables += 1
                break
        else:
            return program, variables


@dataclass(frozen=True)
class _Steps:
    """``start + step * turn < stop``, as signed numbers."""

    turn: int
    start: Expr
    stop: Expr
    step: int


def _steps_of(loop: Loop, turns: frozenset[int]) -> _Steps | None:
    condition = while_condition(loop) if loop.range is None and not loop.once else None
    if condition is None or condition.op not in ("lt.s", "le.s", "gt.s", "ge.s"):
        return None
    last = loop.body.nodes[-1]
    if not isinstance(last, Assign) or sum(_goes(node, loop) for node in walk(loop.body)) != 1:
        return None
    a, b = condition.args if condition.op in ("lt.s", "le.s") else condition.args[::-1]
    bits = a.bits
    terms, constant = linear(plain("sub", a, b, bits=bits))
    found = [t for t in last.targets if t in turns and terms.get(var(t, bits), 0) > 1]
    if len(found) != 1:
        return None
    (turn,) = found
    step = terms.pop(var(turn, bits))
    if any(term.variables & assigned(loop) for term in terms):
        return None
    own = {term: factor for term, factor in terms.items() if mentions(term, _OF_THREADS)}
    rest = {term: -factor for term, factor in terms.items() if term not in own}
    start = of_linear(own, constant if own else 0, bits)
    beyond = condition.op in ("le.s", "ge.s")
    stop = of_linear(rest, beyond - (0 if own else constant), bits)
    return _Steps(turn, start, stop, step)


def _stepping(loop: Loop, steps: _Steps, index: int) -> Seq:
    """The loop with a variable that goes up by the step."""
    counter = var(index, steps.start.bits)
    done = plain("sub", counter, steps.start, bits=counter.bits)
    *inner, last = TurnNumbers(steps.turn, steps.step, done).put_in(loop.body.nodes[1:])
    assert isinstance(last, Assign)
    again = {t: v for t, v in zip(last.targets, last.values, strict=True) if t != steps.turn}
    if mentions(steps.start, _OF_THREADS):
        again[index] = plain("add", counter, const(steps.step, counter.bits), bits=counter.bits)
        goes_on = plain("lt.s", counter, steps.stop, bits=1)
        head = Branch(goes_on, Seq(()), Seq((Jump(loop.label, False),)), loop.span)
        body = (head, *inner, Assign(tuple(again), tuple(again.values())))
        return Seq((Assign((index,), (steps.start,)), replace(loop, body=Seq(body))))
    ends = (Assign(tuple(again), tuple(again.values())),) if again else ()
    range = Range(index, steps.start, steps.stop, steps.step)
    return Seq((Loop(Seq((*inner, *ends)), loop.span, range, False, loop.label),))


def _goes(node: Node, loop: Loop) -> bool:
    return isinstance(node, Jump) and node.label == loop.label


def _looked_at(program: Seq, loop: Loop, variable: int) -> bool:
    """Whether anything behind a loop looks at a variable."""
    inside = {id(node) for node in walk(loop.body)}
    return any(
        variable in expr.variables for node in walk(program) if id(node) not in inside for expr in expressions_of(node)
    )
