"""Loops in the form in which people write them: the condition first, and a range where there is one.

Compilers turn ``while c: body`` round, into ``if c: do: body while c``, and count down where the source counted up.
Here such loops are turned back, one after the other:

    a loop with its condition at the end, which is known to hold when the loop is entered, has it at the beginning
    a branch around a loop that would do nothing where the branch goes past it is none
    a loop that goes on while the number of its turn is below something that it does not change is a range

The number of a turn is a variable of its own (``ptx_values.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.protocol.algebra import is_rest, linear, of_linear, plain, substitute
from ptxdsl.protocol.expressions import Expr, const, var
from ptxdsl.protocol.facts import NOTHING, Facts
from ptxdsl.protocol.model import Assign, Branch, Jump, Loop, Node, Range, Seq, walk
from ptxdsl.protocol.rewriting import assigned, mapped, replaced, with_expressions
from ptxdsl.record import dataclass, replace
from ptxdsl.source import Span


def turned_back(program: Seq, turns: frozenset[int], variables: int) -> tuple[Seq, int]:
    """turns: the variables that number the turns of loops. Gives the number of variables there are then, too."""
    while True:
        for loop, facts in loops(program, NOTHING):
            kept = _Kept(variables)
            found = _condition_first(program, loop, facts, turns, kept) or _range(program, loop, turns)
            if found is not None:
                program = without_guards(found)
                variables = kept.variables
                break
        else:
            return program, variables


def loops(node: Node, facts: Facts) -> Iterator[tuple[Loop, Facts]]:
    """Every loop, inner ones first, with what is known when it is entered."""
    if isinstance(node, Seq):
        for inner in node.nodes:
            yield from loops(inner, facts)
            facts = facts.assigning(inner) if isinstance(inner, Assign) else facts.without(assigned(inner))
    elif isinstance(node, Branch):
        yield from loops(node.then, facts.and_(node.condition))
        yield from loops(node.orelse, facts.and_(plain("not", node.condition, bits=1)))
    elif isinstance(node, Loop):
        yield from loops(node.body, facts.without(assigned(node)))
        if not node.once:
            yield node, facts


# --------------------------------------------------------------------------------------------- the condition first


@dataclass(slots=True)
class _End:
    """The branch at the end of a loop: when it goes on, what it assigns then, and what it does when it does not."""

    goes_on: Expr
    again: dict[int, Expr]
    leaving: tuple[Node, ...]
    span: Span


def _end_of(loop: Loop) -> _End | None:
    """Of a loop that is left and goes on at its end alone."""
    if loop.range is not None or not loop.body.nodes:
        return None
    last = loop.body.nodes[-1]
    leave = Jump(loop.label, False)
    jumps = [n for n in walk(loop.body) if isinstance(n, Jump) and n.label == loop.label]
    if not isinstance(last, Branch) or jumps != [leave]:
        return None
    for goes_on, stay, go in (
        (last.condition, last.then, last.orelse),
        (plain("not", last.condition, bits=1), last.orelse, last.then),
    ):
        if go.nodes and go.nodes[-1] == leave and all(isinstance(node, Assign) for node in stay.nodes):
            again: dict[int, Expr] = {}
            for node in stay.nodes:
                assert isinstance(node, Assign)
                again.update(zip(node.targets, node.values, strict=True))
            return _End(goes_on, again, go.nodes[:-1], last.span) if len(stay.nodes) <= 1 else None
    return None


class _Kept:
    """Of variables that a loop assigns at its end, those that keep what they were before, for who asks behind it."""

    def __init__(self, variables: int) -> None:
        self.variables = variables
        self.of: dict[Expr, Expr] = {}

    def before(self, variable: Expr) -> Expr:
        found = self.of.get(variable)
        if found is None:
            found = self.of[variable] = var(self.variables, variable.bits)
            self.variables += 1
        return found


def _condition_first(program: Seq, loop: Loop, facts: Facts, turns: frozenset[int], kept: _Kept) -> Seq | None:
    end = _end_of(loop)
    if end is None:
        return None
    # Behind the last assignment, and before it: what becomes of expressions. What is the same in each turn stays.
    inside = assigned(loop)
    after = {value: var(number, value.bits) for number, value in end.again.items() if value.variables & inside}
    turn = _turn_of(end.again, turns)
    counter = None if turn is None else var(turn)
    lost = {var(number, value.bits) for number, value in end.again.items()} - {counter}

    def of(expr: Expr) -> Expr | None:
        if expr is counter:
            return plain("add", expr, const(-1))
        found = after.get(expr)
        return kept.before(expr) if found is None and expr in lost else found

    known: dict[Expr, Expr] = {}
    condition = substitute(end.goes_on, of, known)
    if kept.of:
        return None
    if condition.variables & (inside - end.again.keys()):
        return None
    if counter is not None:
        condition = _ordered(condition, counter, facts)
    if not facts.imply(substitute(condition, facts.values.get, {})):
        return None
    leave = Branch(condition, Seq(()), Seq((Jump(loop.label, False),)), end.span)
    leaving = [with_expressions(node, of, known) for node in end.leaving]
    rest = mapped(program, lambda node: node if node is loop else None, of, known)
    before = {int(new.value): old for old, new in kept.of.items()}
    again = Assign((*end.again, *before), (*end.again.values(), *before.values()))
    body = Seq((leave, *loop.body.nodes[:-1], again))
    return replaced(rest, loop, Seq((replace(loop, body=body), *leaving)))


def _turn_of(again: dict[int, Expr], turns: frozenset[int]) -> int | None:
    found = [number for number in again if number in turns]
    return found[0] if len(found) == 1 else None


def _ordered(condition: Expr, counter: Expr, facts: Facts) -> Expr:
    """A counter that must not become equal to a bound stays below it where it starts below it; what falls to a bound by
    no more than that is not below 0 where it begins above."""
    if condition.op == "ge.u" and condition.args[1].op == "const":
        rest, least = condition.args
        signed = plain("ge.s", rest, least, bits=1)
        first = substitute(signed, {counter: const(0, counter.bits)}.get, {})
        falls = 0 < -linear(rest)[0].get(counter, 0) <= least.value
        return signed if falls and facts.imply(first) else condition
    if condition.op != "ne":
        return condition
    whole = _whole_turns(condition, counter, facts)
    if whole is not None:
        return whole
    bound = _solved(condition, counter)
    if bound is None:
        return condition
    if facts.imply(plain("ge.s", bound, const(1, bound.bits), bits=1)):
        return plain("lt.s", counter, bound, bits=1)
    if facts.imply(plain("ne", bound, const(0, bound.bits), bits=1)):
        return plain("lt.u", counter, bound, bits=1)
    return condition


def _whole_turns(condition: Expr, counter: Expr, facts: Facts) -> Expr | None:
    """``S * counter != n - n % S`` of an n that is not negative, as ``n - S * counter >= S``."""
    a, b = condition.args
    if a.bits != counter.bits:
        return None
    terms, constant = linear(plain("sub", a, b, bits=a.bits))
    step = terms.pop(counter, 0)
    if step < 0:
        step, constant = -step, -constant
        terms = {term: -factor for term, factor in terms.items()}
    if step < 2 or constant:
        return None
    rests = [t for t, f in terms.items() if f == 1 and t.args and is_rest(t, t.args[0], step)]
    for rest in rests:
        n = rest.args[0]
        left = {term: -factor for term, factor in terms.items() if term is not rest}
        if left == linear(n)[0] and not linear(n)[1] and facts.imply(plain("ge.s", n, const(step, n.bits), bits=1)):
            done = plain("mul", counter, const(-step, n.bits), bits=n.bits)
            return plain("ge.s", plain("add", n, done, bits=n.bits), const(step, n.bits), bits=1)
    return None


def _solved(comparison: Expr, counter: Expr) -> Expr | None:
    """What a counter is compared with, when both sides of an equation are put on one."""
    a, b = comparison.args
    if a.bits != counter.bits:
        return None
    terms, constant = linear(plain("sub", a, b, bits=a.bits))
    factor = terms.pop(counter, 0)
    if factor not in (1, -1) or any(counter.value in term.variables for term in terms):
        return None
    return of_linear({term: -factor * times for term, times in terms.items()}, -factor * constant, a.bits)


# -------------------------------------------------------------------------------------------------------- guards


def without_guards(program: Seq) -> Seq:
    """Without branches around loops that would do nothing where the branch goes past them."""

    def of(node: Node) -> Node | None:
        if not isinstance(node, Branch):
            return None
        then, orelse = without_guards(node.then), without_guards(node.orelse)
        for condition, arm, other in (
            (node.condition, then, orelse),
            (plain("not", node.condition, bits=1), orelse, then),
        ):
            if _does_nothing_else(condition, arm, other):
                return arm
        return Branch(node.condition, then, orelse, node.span)

    return mapped(program, of)


def _does_nothing_else(condition: Expr, arm: Seq, other: Seq) -> bool:
    """Whether the arm does what the other one does where the condition does not hold."""
    values: dict[Expr, Expr] = {}
    targets: set[int] = set()
    has_loop = False
    for node in arm.nodes:
        if isinstance(node, Assign):
            new = [substitute(value, values.get, {}) for value in node.values]
            values.update((var(t, v.bits), n) for t, v, n in zip(node.targets, node.values, new, strict=True))
            targets.update(node.targets)
        elif isinstance(node, Loop) and not has_loop:
            has_loop = True
            first = _first_condition(node)
            if (
                first is None
                or NOTHING.and_(plain("not", condition, bits=1)).and_(substitute(first, values.get, {})).possible
            ):
                return False
            inner = assigned(node) - targets
        else:
            return False
    if not has_loop:
        return False
    past: dict[Expr, Expr] = {}
    for node in other.nodes:
        if not isinstance(node, Assign):
            return False
        past.update((var(t, v.bits), v) for t, v in zip(node.targets, node.values, strict=True))
    return all(values.get(name) is value for name, value in past.items()) and not inner & {n.value for n in past}


def _first_condition(loop: Loop) -> Expr | None:
    """What must hold for the first turn."""
    if loop.range is not None:
        compare = ("lt" if loop.range.step > 0 else "gt") + (".s" if loop.range.signed else ".u")
        return plain(compare, loop.range.start, loop.range.stop, bits=1)
    return while_condition(loop)


def while_condition(loop: Loop) -> Expr | None:
    """Of ``while condition: …`` the condition."""
    first = loop.body.nodes[0] if loop.body.nodes else None
    if not isinstance(first, Branch):
        return None
    arms = first.then.nodes, first.orelse.nodes
    leave = (Jump(loop.label, False),)
    if arms == ((), leave):
        return first.condition
    return plain("not", first.condition, bits=1) if arms == (leave, ()) else None


# -------------------------------------------------------------------------------------------------------- ranges


def _range(program: Seq, loop: Loop, turns: frozenset[int]) -> Seq | None:
    """A loop ``while turn < stop`` as ``for turn in range(stop)``."""
    condition = _first_condition(loop)
    if loop.range is not None or condition is None or not loop.body.nodes:
        return None
    last = loop.body.nodes[-1]
    if not isinstance(last, Assign):
        return None
    again = dict(zip(last.targets, last.values, strict=True))
    turn = _turn_of(again, turns)
    if turn is None or again[turn] is not plain("add", var(turn), const(1)):
        return None
    if sum(isinstance(n, Jump) and n.label == loop.label for n in walk(loop.body)) != 1:
        return None
    found = _limit(condition, var(turn))
    if found is None or found[0].variables & assigned(loop):
        return None
    stop, signed = found
    del again[turn]
    body = Seq((*loop.body.nodes[1:-1], *([Assign(tuple(again), tuple(again.values()))] if again else [])))
    new = Loop(body, loop.span, Range(turn, const(0, stop.bits), stop, 1, signed), False, loop.label)
    # The number of turns there were is what the number of the next turn would be.
    count = plain("max.s", stop, const(0, stop.bits), bits=stop.bits) if signed else stop
    rest = mapped(program, lambda node: node if node is loop else None, {var(turn): count}.get, {})
    return _without_assignments(replaced(rest, loop, new), turn)


def _limit(condition: Expr, counter: Expr) -> tuple[Expr, bool] | None:
    """What the counter must be below, and whether as signed numbers."""
    if len(condition.args) != 2 or condition.args[0].bits != counter.bits:
        return None
    a, b = condition.args
    if a is counter and condition.op in ("lt.s", "lt.u"):
        return b, condition.op == "lt.s"
    if b is counter and condition.op in ("gt.s", "gt.u"):
        return a, condition.op == "gt.s"
    return None


def _without_assignments(program: Seq, number: int) -> Seq:
    def of(node: Node) -> Node | None:
        if not isinstance(node, Assign) or number not in node.targets:
            return None
        pairs = [(t, v) for t, v in zip(node.targets, node.values, strict=True) if t != number]
        return Assign(tuple(t for t, _ in pairs), tuple(v for _, v in pairs))

    return mapped(program, of)


__all__ = ["turned_back", "while_condition"]
