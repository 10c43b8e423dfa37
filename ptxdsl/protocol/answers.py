"""Who asks for answers of cluster launch control, and who reads them.

The answers lie in an array of shared memory that nothing but ``clusterlaunchcontrol.try_cancel`` writes; a variable
gets what a read of one says (``expressions.answer``). So do numbers that a thread draws for all (``expressions.held``).
"""

from __future__ import annotations

from ptxdsl.protocol.expressions import Expr, array_number, leaves
from ptxdsl.protocol.model import Assign, Branch, Kernel, Loop, Node, Op, Seq, walk


def asks(node: Node) -> bool:
    """Whether it is a ``try_cancel``, by its name in either language."""
    return isinstance(node, Op) and node.name.startswith(("try_cancel", "clusterlaunchcontrol.try_cancel"))


def array_of(address: Expr) -> int:
    """The number of the array that an address is made of."""
    return max(array_number(leaf.value) for leaf in leaves(address) if leaf.op == "const")


def loops_of_answers(kernel: Kernel) -> list[list[int]]:
    """Of each array the labels of the outermost loops in which its answers are asked for or read, and of each array of
    numbers on which it hangs where roles go those in which they are written or read."""
    if not any(asks(node) or _is_read(node) for node in kernel.nodes):
        return []
    found: dict[int, dict[int, None]] = {}
    for loop in _outermost(kernel.program):
        for address in _addresses(loop):
            found.setdefault(array_of(address), {})[loop.label] = None
    return [list(labels) for labels in found.values()]


def _is_read(node: Node) -> bool:
    return isinstance(node, Assign) and any(value.op == "held" for value in node.values)


def _addresses(loop: Loop) -> list[Expr]:
    found = []
    for node in walk(loop.body):
        if isinstance(node, Assign):
            found += [value.args[0] for value in node.values if value.op in ("answer", "held")]
        elif isinstance(node, Op) and (asks(node) or node.value is not None):
            found += [place.address for place in node.writes if place.address is not None]
    return found


def _outermost(node: Node) -> list[Loop]:
    if isinstance(node, Loop):
        return _outermost(node.body) if node.once else [node]
    if isinstance(node, Seq):
        return [loop for inner in node.nodes for loop in _outermost(inner)]
    return [*_outermost(node.then), *_outermost(node.orelse)] if isinstance(node, Branch) else []
