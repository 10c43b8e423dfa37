"""Programs of the model taken apart and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxdsl.protocol.algebra import substitute
from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Assign, Branch, Loop, Node, Op, Place, Range, Seq
from ptxdsl.record import replace

Rewrite = Callable[[Expr], Expr | None]


def assigned(node: Node) -> set[int]:
    """The variables that a node assigns."""
    found: set[int] = set()
    _assigned(node, found)
    return found


def _assigned(node: Node, found: set[int]) -> None:
    if isinstance(node, Seq):
        for inner in node.nodes:
            if not isinstance(inner, Op):  # most are, and assign nothing
                _assigned(inner, found)
    elif isinstance(node, Assign):
        found.update(node.targets)
    elif isinstance(node, Branch):
        _assigned(node.then, found)
        _assigned(node.orelse, found)
    elif isinstance(node, Loop):
        if node.range is not None:
            found.add(node.range.index)
        _assigned(node.body, found)


def with_inner(node: Node, of: Callable[[Node], Node]) -> Node:
    """The node with others in it."""
    if isinstance(node, Seq):
        return seq_with(node, of)
    if isinstance(node, Branch):
        return Branch(node.condition, seq_with(node.then, of), seq_with(node.orelse, of), node.span)
    if isinstance(node, Loop):
        return replace(node, body=seq_with(node.body, of))
    return node


def seq_with(seq: Seq, of: Callable[[Node], Node]) -> Seq:
    return Seq(tuple(map(of, seq.nodes)))


def mapped(
    program: Seq,
    change: Callable[[Node], Node | None],
    of: Rewrite | None = None,
    known: dict[Expr, Expr] | None = None,
) -> Seq:
    """The program with other nodes: change gives the new one, None: as it is, with what is in it mapped.

    of: what becomes of expressions, but not in nodes that change has given. known: results of it.
    """
    memo: dict[Expr, Expr] = {} if known is None else known

    def node_of(node: Node) -> Node:
        new = change(node)
        if new is not None:
            return new
        if isinstance(node, Seq):
            return seq_of(node)
        if of is not None:
            node = with_own_expressions(node, lambda expr: substitute(expr, of, memo))
        if isinstance(node, Branch):
            return Branch(node.condition, seq_of(node.then), seq_of(node.orelse), node.span)
        if isinstance(node, Loop):
            return replace(node, body=seq_of(node.body))
        return node

    def seq_of(seq: Seq) -> Seq:
        nodes: list[Node] = []
        for node in map(node_of, seq.nodes):
            nodes.extend(node.nodes if isinstance(node, Seq) else (node,))
        return Seq(tuple(nodes))

    return seq_of(program)


def replaced(program: Seq, old: Node, new: Node) -> Seq:
    """The program with another node in the place of one."""
    return mapped(program, lambda node: new if node is old else None)


def with_expressions(node: Node, of: Rewrite, known: dict[Expr, Expr]) -> Node:
    """The node, and all in it, with other expressions."""
    return mapped(Seq((node,)), lambda _: None, of, known).nodes[0]


def expressions_of(node: Node) -> Iterator[Expr]:
    """The expressions of a node itself, without those of nodes in it."""
    if isinstance(node, Branch):
        yield node.condition
    elif isinstance(node, Assign):
        yield from node.values
    elif isinstance(node, Loop) and node.range is not None:
        yield node.range.start
        yield node.range.stop
    elif isinstance(node, Op):
        for place in (node.barrier, *node.writes, *node.reads):
            if place is not None:
                if place.address is not None:
                    yield place.address
                if isinstance(place.width, Expr):
                    yield place.width
        for expr in (node.parity, node.count, node.bytes, node.id, node.mask, node.value):
            if expr is not None:
                yield expr


def with_own_expressions(node: Node, new: Callable[[Expr], Expr]) -> Node:
    """The node with other expressions, but not in the nodes that are in it."""

    def some(expr: Expr | None) -> Expr | None:
        return None if expr is None else new(expr)

    def place_of(place: Place) -> Place:
        width = new(place.width) if isinstance(place.width, Expr) else place.width
        if isinstance(width, Expr) and width.op == "const":
            width = int(width.value)
        return Place(some(place.address), width, place.written, place.used)

    if isinstance(node, Branch):
        return replace(node, condition=new(node.condition))
    if isinstance(node, Assign):
        return Assign(node.targets, tuple(map(new, node.values)))
    if isinstance(node, Loop):
        if node.range is None:
            return node
        span = node.range
        return replace(node, range=Range(span.index, new(span.start), new(span.stop), span.step, span.signed))
    if isinstance(node, Op):
        return replace(
            node,
            barrier=None if node.barrier is None else place_of(node.barrier),
            parity=some(node.parity),
            count=some(node.count),
            bytes=some(node.bytes),
            id=some(node.id),
            mask=some(node.mask),
            value=some(node.value),
            writes=tuple(map(place_of, node.writes)),
            reads=tuple(map(place_of, node.reads)),
        )
    return node
