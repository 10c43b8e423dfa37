"""The accesses that an agent's threads make between two other steps, as they are collected."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from ptxdsl.check.addresses import Part, Spread, parts_of
from ptxdsl.check.expressions import Expressions
from ptxdsl.check.guards import Guard, guard
from ptxdsl.check.slots import Access
from ptxdsl.check.threads import Mask
from ptxdsl.effects import ACCESSES, Kind
from ptxdsl.protocol.algebra import plain
from ptxdsl.protocol.expressions import Expr, apply
from ptxdsl.protocol.model import Branch, Jump, Loop, Node, Op, Seq, walk

_Alike = tuple[Mask, bool, bool, Guard | None]  # of accesses that make one step: whether atomic, and certain


class Accesses:
    """spread: loops whose turns all count at once. certain: whether accesses happen that are come to. guards:
    conditions of the branches around that all threads are taken through, whatever they say. happens: whether, these
    apart, each thread that comes to an access does it in some launch."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.reads: dict[_Alike, list[Part]] = {}
        self.writes: dict[_Alike, list[Part]] = {}
        self.spread: Spread = ()
        self.certain = True
        self.happens = True
        self.guards: tuple[Expr, ...] = ()

    def add(self, op: Op, mask: Mask) -> frozenset[int]:
        """Gives the variables that it looks at."""
        told = [condition for condition in self.guards if guard(self.expressions.block, condition) is not None]
        atomic, when = op.kind is Kind.ATOMIC, self._guard(told)
        happens = self.happens and len(told) == len(self.guards)
        # What its own threads have written just before may be what is read.
        certain = self.certain and not self.writes
        if op.reads and not atomic:
            parts = self.reads.setdefault((mask, atomic, certain, when), [])
            parts_of(op.reads, op.span, mask, self.expressions, spread=self.spread, certain=certain, to=parts)
        if op.writes:
            parts = self.writes.setdefault((mask, atomic, True, when), [])
            parts_of(op.writes, op.span, mask, self.expressions, spread=self.spread, happens=happens, to=parts)
        return frozenset[int]().union(*(expr.variables for expr in expressions_of(op)))

    def _guard(self, told: list[Expr]) -> Guard | None:
        """For whom the conditions hold that threads have come through."""
        return guard(self.expressions.block, reduce(lambda a, b: apply("and", a, b, bits=1), told)) if told else None

    def steps(self) -> Iterator[Access]:
        """Those collected so far: in what order they are does not matter, as no step comes between them."""
        for collected, writes in ((self.reads, False), (self.writes, True)):
            for (mask, atomic, _, when), parts in collected.items():
                step = Access(parts, writes, atomic, when)
                step.mask, step.uses = mask, step.variables
                yield step
            collected.clear()


def able(expressions: Expressions, condition: Expr, mask: Mask, holds: bool = True) -> Mask:
    """The threads of a mask for whom a condition can hold (or not), as far as its parts of thread ids tell."""
    told = expressions.where(condition, mask)
    if told is not None:
        return told if holds else mask & ~told
    if condition.op == "not":
        return able(expressions, condition.args[0], mask, not holds)
    if condition.op == ("and" if holds else "or") and condition.bits == 1:
        for part in condition.args:
            mask = able(expressions, part, mask, holds)
    return mask


def arms(expressions: Expressions, node: Branch, mask: Mask) -> Iterator[tuple[Node, Expr, Mask]]:
    """The arms of a branch that threads of a mask can come to: under which condition, and which threads."""
    for arm, condition in ((node.then, node.condition), (node.orelse, plain("not", node.condition, bits=1))):
        threads = able(expressions, condition, mask)
        if threads:
            yield arm, condition, threads


def expressions_of(op: Op) -> list[Expr]:
    """Those of all places of an operation."""
    found = []
    for place in (*op.writes, *op.reads, op.barrier):
        if place is not None:
            if place.address is not None:
                found.append(place.address)
            if isinstance(place.width, Expr):
                found.append(place.width)
    return found


def only_accesses(node: Node) -> bool:
    """Whether a node is of accesses alone, and none of its loops is left early."""
    if isinstance(node, Seq):
        return all(map(only_accesses, node.nodes))
    if isinstance(node, Op):
        return node.kind in ACCESSES
    if isinstance(node, Branch):
        return only_accesses(node.then) and only_accesses(node.orelse)
    if isinstance(node, Loop):
        return node.range is not None and only_accesses(node.body)
    return isinstance(node, Jump) and node.again


def interferes(node: Node) -> bool:
    """Whether a node of a loop may let a later turn read nothing, or what an earlier one has written."""
    if isinstance(node, Branch):
        return any(isinstance(inner, Jump) for arm in (node.then, node.orelse) for inner in walk(arm))
    return isinstance(node, Op) and bool(node.writes)
