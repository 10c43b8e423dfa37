"""Unrolled loops whose copies cannot be told by a formula: one copy a turn again, chosen by its position.

    while n - S * turn >= S: copy 0; …; copy S-1; turn += 1          at = 0
    if n - S * turn != 0: rest 0; if … != 1: rest 1; …          →    for i in range(n):
                                                                         if at == 0: last = n - i < S
                                                                         if last: rest at else: copy at
                                                                         at = (at + 1) % S

So the turns are those of the other roles' loops. That the copies are alike does not matter, nor where they are cut: all
is done in the order in which it was, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.protocol.algebra import is_rest, linear, plain, substitute
from ptxdsl.protocol.expressions import Expr, const, var
from ptxdsl.protocol.model import Assign, Branch, Jump, Loop, Node, Range, Seq, walk
from ptxdsl.protocol.rewriting import assigned, with_expressions
from ptxdsl.protocol.turn_numbers import TurnNumbers
from ptxdsl.record import dataclass


@dataclass(frozen=True)
class Unrolled:
    """turn: the variable that numbers its turns. stages: copies in it. total: of how many there are in all, which is
    not negative: known of it as a signed number."""

    turn: int
    stages: int
    total: Expr
    not_negative: bool

    def range(self, index: int) -> Range:
        """Of the loop with one copy a turn."""
        total, signed = self.total, self.not_negative
        if total.op == "max.s" and total.args[1] == const(0, total.bits):
            total, signed = total.args[0], True
        return Range(index, const(0, total.bits), total, 1, signed)


@dataclass(frozen=True)
class Rest:
    """What follows an unrolled loop. exits: what is assigned first. copies: those that are left to do, without the
    branches around them. ends: what is done behind as many of them, where there are no more."""

    exits: tuple[Node, ...]
    copies: tuple[tuple[Node, ...], ...]
    ends: tuple[Seq, ...]

    @property
    def exit_values(self) -> dict[Expr, Expr]:
        """By variable what the exits assign."""
        return {
            var(target, value.bits): value
            for node in self.exits
            if isinstance(node, Assign)
            for target, value in zip(node.targets, node.values, strict=True)
        }

    def in_terms_of_the_loop(self) -> Rest:
        """Without the exits, whose values are put in; not where the copies change a variable of these."""
        values = self.exit_values
        own = {v for exit, value in values.items() for v in (*exit.variables, *value.variables)}
        if any(not own.isdisjoint(assigned(node)) for copy in self.copies for node in copy):
            return self
        copies = [tuple(with_expressions(node, values.get, {}) for node in copy) for copy in self.copies]
        return Rest((), tuple(copies), self.ends)


def rest_of(nodes: Sequence[Node], position: int, shape: Unrolled) -> tuple[Rest, int] | None:
    """What follows at a position, and the position behind it; None where that is something else."""
    exits: tuple[Node, ...] = ()
    values: dict[Expr, Expr] = {}
    if position < len(nodes) and isinstance(node := nodes[position], Assign):
        exits = (node,)
        values = {var(t, v.bits): v for t, v in zip(node.targets, node.values, strict=True)}
        position += 1
    looped = _looped(nodes[position], shape) if position < len(nodes) else None
    if looped is not None:
        return Rest(exits, looped, (Seq(()),) * (shape.stages - 1)), position + 1
    copies: list[tuple[Node, ...]] = []
    ends: list[Seq] = []
    inner: tuple[Node, ...] = tuple(nodes[position : position + 1])
    for count in range(shape.stages - 1):
        if not inner or not isinstance(node := inner[-1], Branch):
            return None
        found = _left(node, values, shape, count)
        if found is None:
            return None
        if count:
            copies.append(inner[:-1])
        ends.append(found[0])
        inner = found[1].nodes
    copies.append(inner)
    return Rest(exits, tuple(copies), tuple(ends)), position + 1


def _looped(node: Node, shape: Unrolled) -> tuple[tuple[Node, ...], ...] | None:
    """The copies of a rest that is a loop: ``for i in range(n % S)``."""
    if not isinstance(node, Loop) or node.range is None or node.range.start != const(0, node.range.start.bits):
        return None
    bits, stages = shape.total.bits, shape.stages
    if not is_rest(node.range.stop, shape.total, stages) or node.range.step != 1:
        return None
    inside = walk(node.body)
    if any(isinstance(inner, Loop) or (isinstance(inner, Jump) and inner.label == node.label) for inner in inside):
        return None
    index = var(node.range.index, bits)
    return tuple(
        tuple(with_expressions(inner, {index: const(k, bits)}.get, {}) for inner in node.body.nodes)
        for k in range(stages - 1)
    )


def _left(node: Branch, values: dict[Expr, Expr], shape: Unrolled, count: int) -> tuple[Seq, Seq] | None:
    """Of a branch on whether as many copies as ``count`` were left: what is done then, and what else."""
    condition = substitute(node.condition, values.get, {})
    if condition.op not in ("eq", "ne"):
        return None
    bits = shape.total.bits
    done = plain("mul", var(shape.turn, bits), const(shape.stages, bits), bits=bits)
    left = plain("sub", plain("sub", shape.total, done, bits=bits), const(count, bits), bits=bits)
    a, b = condition.args
    if is_rest(a, shape.total, shape.stages) and b is const(count, bits):
        pass
    elif a.bits != bits or linear(plain("sub", a, b, bits=bits)) != linear(left):
        return None
    return (node.then, node.orelse) if condition.op == "eq" else (node.orelse, node.then)


class ByPosition:
    """index, at, last: variables: of the copy's number, of its position among those of a turn, and of whether it is one
    of the rest. exits: whether what the exits assign is wanted behind."""

    def __init__(self, loop: Loop, shape: Unrolled, rest: Rest, index: int, at: int, last: int, *, exits: bool) -> None:
        self.loop = loop
        self.shape = shape
        exits = exits or any(end.nodes for end in rest.ends)
        self.rest = rest if exits else rest.in_terms_of_the_loop()
        self.exits = rest.exits if exits else ()
        self.index = var(index, shape.total.bits)
        self.at = var(at)
        self.last = var(last)

    def nodes(self) -> list[Node] | None:
        """What becomes of the loop and its rest; None where it is left anywhere but at its beginning."""
        if _is_left_early(self.loop):
            return None
        pieces = self.pieces()
        again = self.loop.body.nodes[-1]
        assert isinstance(again, Assign)
        pairs = [(t, v) for t, v in zip(again.targets, again.values, strict=True) if t != self.shape.turn]
        pieces[-1].append(Assign(tuple(t for t, _ in pairs), tuple(v for _, v in pairs)))
        is_last = plain("ne", self.last, const(0), bits=1)
        ends = plain("eq", self.at, const(self.shape.stages - 1), bits=1)
        next_one = plain("select", ends, const(0), plain("add", self.at, const(1)))
        body = (
            self.begins(),
            Branch(is_last, self.switch(self.rest.copies, self.index), self.switch(pieces, self.index), self.loop.span),
            _assigned(self.at, next_one),
        )
        span, range = self.loop.span, self.shape.range(self.index.value)
        return [
            _assigned(self.at, const(0)),
            _assigned(self.last, const(0)),
            Loop(Seq(body), span, range, False, self.loop.label),
            *self.behind().nodes,
        ]

    def begins(self) -> Branch:
        """At the first position: whether as many copies are left as a turn has."""
        span, stages, range = self.loop.span, self.shape.stages, self.shape.range(self.index.value)
        bits = self.index.bits
        left = plain("sub", range.stop, self.index, bits=bits)
        few = plain("lt.s" if range.signed else "lt.u", left, const(stages, bits), bits=1)
        exits = self.placed(self.rest.exits, self.index, 0)
        asked = Branch(few, Seq((*exits.nodes, _assigned(self.last, const(1)))), Seq(()), span)
        return Branch(plain("eq", self.at, const(0), bits=1), Seq((asked,)), Seq(()), span)

    def behind(self) -> Seq:
        """What is done when there are no more copies, by how many there were of the rest."""
        first, *others = self.rest.ends
        return self.switch([(*self.exits, *first.nodes), *(end.nodes for end in others), ()], self.shape.total)

    def pieces(self) -> list[list[Node]]:
        """The copies of the loop's body, of as many nodes as those of the rest: else, as branches of two may have been
        joined, all of about as many."""
        nodes = list(self.loop.body.nodes[1:-1])
        sizes = [sum(not isinstance(node, Assign) for node in copy) for copy in self.rest.copies]
        count = sum(not isinstance(node, Assign) for node in nodes)
        if count <= sum(sizes):
            stages = self.shape.stages
            sizes = [count * (k + 1) // stages - count * k // stages for k in range(stages - 1)]
        found: list[list[Node]] = []
        for size in sizes:
            piece: list[Node] = []
            while nodes and (size or isinstance(nodes[0], Assign)):
                size -= not isinstance(nodes[0], Assign)
                piece.append(nodes.pop(0))
            found.append(piece)
        return [*found, nodes]

    def switch(self, cases: Sequence[Sequence[Node]], index: Expr) -> Seq:
        """By the position; the last case is that of all others."""
        *before, chosen = [self.placed(case, index, k) for k, case in enumerate(cases)]
        for k, case in reversed(list(enumerate(before))):
            chosen = Seq((Branch(plain("eq", self.at, const(k), bits=1), case, chosen, self.loop.span),))
        return chosen

    def placed(self, nodes: Sequence[Node], index: Expr, k: int) -> Seq:
        """Nodes at a position, with the number of the copy in the place of that of the turn."""
        done = plain("add", index, const(-k, index.bits), bits=index.bits)
        return Seq(tuple(TurnNumbers(self.shape.turn, self.shape.stages, done).put_in(nodes)))


def _assigned(variable: Expr, value: Expr) -> Assign:
    return Assign((int(variable.value),), (value,))


def _is_left_early(loop: Loop) -> bool:
    """Whether it is left, or goes on, anywhere but at its beginning."""
    return sum(isinstance(node, Jump) and node.label == loop.label for node in walk(loop.body)) != 1
