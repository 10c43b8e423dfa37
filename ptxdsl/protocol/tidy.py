"""A program of the model in its plain form: no jump that leads where one goes anyway, nothing that nobody needs.

None of this changes which operations a thread does, in which order and with what.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Assign, Branch, Jump, Loop, Node, Op, Return, Seq, Unmodelled
from ptxdsl.protocol.rewriting import expressions_of, seq_with, with_inner
from ptxdsl.protocol.straight import straight
from ptxdsl.record import replace


def tidy(program: Seq) -> Seq:
    """Applies all of this module until nothing changes."""
    while True:
        new = needed(straight(program))
        if same(new, program):
            return new
        program = new


def same(a: Node, b: Node) -> bool:
    """Whether two programs are the same, node by node."""
    if a is b:
        return True
    if isinstance(a, Seq):
        return (
            isinstance(b, Seq)
            and len(a.nodes) == len(b.nodes)
            and all(same(x, y) for x, y in zip(a.nodes, b.nodes, strict=True))
        )
    if isinstance(a, Branch):
        return (
            isinstance(b, Branch) and a.condition is b.condition and same(a.then, b.then) and same(a.orelse, b.orelse)
        )
    if isinstance(a, Loop):
        return isinstance(b, Loop) and (a.once, a.label, a.range) == (b.once, b.label, b.range) and same(a.body, b.body)
    return a == b


def needed(program: Seq) -> Seq:
    """Only operations, and what decides whether and with what a thread does them."""
    return _Slice(program).program()


class _Slice:
    """Marks backwards from the operations; control flow without a mark goes."""

    def __init__(self, root: Seq) -> None:
        self.parents: dict[int, Node] = {}
        self.nodes: list[Node] = []
        self.kept: set[int] = set()
        self.variables: set[int] = set()
        self.assigns: dict[int, list[tuple[Assign, Expr]]] = {}
        self.jumps: dict[int, list[Jump]] = {}
        self.work: list[Node] = []
        self.copies = seq_with(root, _unshared)
        self.survey(self.copies, None)
        self.mark()

    def survey(self, node: Node, parent: Node | None) -> None:
        self.nodes.append(node)
        if parent is not None:
            self.parents[id(node)] = parent
        if isinstance(node, Seq):
            for inner in node.nodes:
                self.survey(inner, node)
        elif isinstance(node, Branch):
            self.survey(node.then, node)
            self.survey(node.orelse, node)
        elif isinstance(node, Loop):
            self.survey(node.body, node)
        elif isinstance(node, Assign):
            for target, value in zip(node.targets, node.values, strict=True):
                self.assigns.setdefault(target, []).append((node, value))
        elif isinstance(node, Jump):
            self.jumps.setdefault(node.label, []).append(node)

    def mark(self) -> None:
        for node in self.nodes:
            if isinstance(node, Op | Unmodelled | Return):
                self.keep(node)
        while self.work:
            node = self.work.pop()
            if isinstance(node, Op):
                self.want(expressions_of(node))
            elif isinstance(node, Branch):
                self.want((node.condition,))
            elif isinstance(node, Loop):
                if node.range is not None:
                    self.want((node.range.start, node.range.stop))
                for jump in self.jumps.get(node.label, ()):
                    self.keep(jump)
            parent = self.parents.get(id(node))
            if parent is not None:
                self.keep(parent)

    def keep(self, node: Node) -> None:
        if id(node) not in self.kept:
            self.kept.add(id(node))
            self.work.append(node)

    def want(self, wanted: Iterable[Expr]) -> None:
        for expr in wanted:
            for number in expr.variables:
                if number in self.variables:
                    continue
                self.variables.add(number)
                for assign, value in self.assigns.get(number, ()):
                    self.keep(assign)
                    self.want((value,))

    def program(self) -> Seq:
        return self.seq(self.copies)

    def of(self, node: Node) -> Node:
        if isinstance(node, Seq):
            return Seq(tuple(self.of(inner) for inner in node.nodes if id(inner) in self.kept))
        if isinstance(node, Assign):
            pairs = [(t, v) for t, v in zip(node.targets, node.values, strict=True) if t in self.variables]
            return Assign(tuple(t for t, _ in pairs), tuple(v for _, v in pairs))
        if isinstance(node, Branch):
            return Branch(node.condition, self.seq(node.then), self.seq(node.orelse), node.span)
        if isinstance(node, Loop):
            return replace(node, body=self.seq(node.body))
        return node

    def seq(self, node: Seq) -> Seq:
        written = self.of(node)
        assert isinstance(written, Seq)
        return written


def _unshared(node: Node) -> Node:
    """The program with every node an object of its own: marks are of places."""
    return with_inner(node, _unshared) if isinstance(node, Seq | Branch | Loop) else replace(node)
