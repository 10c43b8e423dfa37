"""Threads that return before the last accesses: the accesses become the other arm of the branch that returns.

``if i >= n: return`` and what follows is ``if i < n:`` around what follows: the same operations by the same threads. A
function's body is a block that returns leave. Only where nothing but accesses to memory follows: elsewhere a return is
what a message is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxdsl.effects import ACCESSES
from ptxdsl.protocol.model import Branch, Jump, Loop, Node, Op, Return, Seq, Unmodelled, walk
from ptxdsl.protocol.rewriting import with_inner


def without_early_returns(program: Seq) -> Seq:
    """The program with such branches in every block; a block that nobody leaves any more is what is in it."""
    if not any(isinstance(node, Loop) and node.once for node in walk(program)):
        return program
    return _of_seq(program)


def _of_seq(seq: Seq) -> Seq:
    return Seq(tuple(new for node in seq.nodes for new in _of(node)))


def _of(node: Node) -> Iterator[Node]:
    if isinstance(node, Seq):
        yield _of_seq(node)
    elif isinstance(node, Loop) and node.once:
        body = _guarded(_of_seq(node.body), node.label)
        if any(_leaves(inner, node.label) for inner in body.nodes):
            yield Loop(body, node.span, None, True, node.label)
        else:
            yield from body.nodes
    else:
        yield with_inner(node, lambda inner: _of_seq(inner) if isinstance(inner, Seq) else _one(inner))


def _one(node: Node) -> Node:
    new = tuple(_of(node))
    return new[0] if len(new) == 1 else Seq(new)


def _guarded(body: Seq, label: int) -> Seq:
    nodes = list(body.nodes)
    for at in reversed(range(len(nodes))):
        node, rest = nodes[at], nodes[at + 1 :]
        if isinstance(node, Branch) and _leaves(node, label) and _only_accesses(rest) and _ways_on(node, label) < 2:
            nodes[at:] = [_followed(node, rest, label)]
    return Seq(tuple(nodes))


def _leaves(node: Node, label: int) -> bool:
    return any(isinstance(inner, Jump) and inner.label == label for inner in walk(node))


def _only_accesses(rest: Sequence[Node]) -> bool:
    inside = [inner for node in rest for inner in walk(node)]
    own = {inner.label for inner in inside if isinstance(inner, Loop)}
    for inner in inside:
        if isinstance(inner, Return | Unmodelled) or (isinstance(inner, Jump) and inner.label not in own):
            return False
    return all(inner.kind in ACCESSES for inner in inside if isinstance(inner, Op))


def _ways_on(branch: Branch, label: int) -> int:
    """In how many ways threads come behind a branch; 2 also where they leave from within a loop."""
    found = 0
    for arm in (branch.then, branch.orelse):
        *before, last = arm.nodes or (None,)
        if any(node is not None and _leaves(node, label) for node in before):
            return 2
        if isinstance(last, Branch) and _leaves(last, label):
            found += _ways_on(last, label)
        elif isinstance(last, Loop | Seq) and _leaves(last, label):
            return 2
        elif not isinstance(last, Jump | Return):
            found += 1
    return found


def _followed(branch: Branch, rest: Sequence[Node], label: int) -> Branch:
    """A branch with what follows it in the arm that goes on."""
    then, orelse = (_arm(arm, rest, label) for arm in (branch.then, branch.orelse))
    return Branch(branch.condition, then, orelse, branch.span)


def _arm(arm: Seq, rest: Sequence[Node], label: int) -> Seq:
    last = arm.nodes[-1] if arm.nodes else None
    if isinstance(last, Jump) and last.label == label:
        return Seq(arm.nodes[:-1])
    if isinstance(last, Jump | Return):
        return arm
    if isinstance(last, Branch) and _leaves(last, label):
        return Seq((*arm.nodes[:-1], _followed(last, rest, label)))
    return Seq((*arm.nodes, *rest))
