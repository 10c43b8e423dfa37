"""What a loop's variables get once in each turn, whatever way the turn takes."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Assign, Branch, Jump, Loop, Node, Op, Seq, walk


def once_a_turn(loop: Loop) -> dict[int, Expr]:
    """By variable the only expression that it is assigned in a loop: before each way to the next turn, or in a place
    that every turn comes to."""
    again = Jump(loop.label, True)
    assigns: dict[int, list[Expr]] = {}
    jumps = False
    for node in walk(loop.body):
        if isinstance(node, Assign):
            for target, value in zip(node.targets, node.values, strict=True):
                assigns.setdefault(target, []).append(value)
        elif isinstance(node, Jump):
            jumps = jumps or node == again
    always: set[int] = set()
    for node in loop.body.nodes:
        if isinstance(node, Assign):
            always.update(node.targets)
        elif (
            jumps
            and not isinstance(node, Op)
            and any(isinstance(inner, Jump) and inner == again for inner in walk(node))
        ):
            break  # some turns end here
    ends = list(_ends(loop.body, again, True))
    found = {}
    for variable, values in assigns.items():
        same = len(set(values)) == 1 and len(values) == len(ends)
        at_ends = same and all(end.get(variable) is values[0] for end in ends)
        if at_ends or (len(values) == 1 and variable in always):
            found[variable] = values[0]
    return found


def _ends(seq: Seq, again: Jump, last: bool) -> Iterator[dict[int, Expr]]:
    """What is assigned directly before the jumps to the next turn; last: and at the end."""
    before: dict[int, Expr] = {}
    node: Node | None = None
    for number, node in enumerate(seq.nodes):
        ends = last and number == len(seq.nodes) - 1
        if isinstance(node, Assign):
            before |= zip(node.targets, node.values, strict=True)
            continue
        if isinstance(node, Jump):
            if node == again:
                yield before
        elif isinstance(node, Branch):
            yield from _ends(node.then, again, ends)
            yield from _ends(node.orelse, again, ends)
        elif isinstance(node, Seq):
            yield from _ends(node, again, ends)
        elif isinstance(node, Loop):
            yield from _ends(node.body, again, False)
        before = {}
    if last and not isinstance(node, (Jump, Branch, Seq)):
        yield before
