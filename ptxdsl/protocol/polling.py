"""Loops that ask a barrier again and again until its phase is complete: they are waits.

while not bar.try_wait(parity):
    asked += 1    # nothing that the protocol needs
"""

from __future__ import annotations

from ptxdsl.effects import Kind
from ptxdsl.protocol.algebra import plain
from ptxdsl.protocol.expressions import Expr, test
from ptxdsl.protocol.model import Branch, Jump, Loop, Node, Op, Seq, walk
from ptxdsl.protocol.rewriting import mapped
from ptxdsl.record import replace


def with_waits(program: Seq) -> Seq:
    """The program with waits in the place of such loops."""
    asks = any(isinstance(node, Op) and node.kind is Kind.BAR_TEST for node in walk(program))
    return mapped(program, _wait) if asks else program


def _wait(node: Node) -> Node | None:
    if not isinstance(node, Loop) or node.range is not None or node.once:
        return None
    nodes = list(node.body.nodes)
    if nodes and nodes[-1] == Jump(node.label, True):
        nodes.pop()
    if len(nodes) != 2:
        return None
    asks, leaves = nodes
    if not isinstance(asks, Op) or asks.kind is not Kind.BAR_TEST or not isinstance(leaves, Branch):
        return None
    if asks.barrier is None or asks.barrier.address is None or asks.parity is None:
        return None
    complete = test(asks.barrier.address, asks.parity)
    leave = (Jump(node.label, False),)
    for condition, arm, other in (
        (leaves.condition, leaves.then, leaves.orelse),
        (plain("not", leaves.condition, bits=1), leaves.orelse, leaves.then),
    ):
        if _is(condition, complete) and arm.nodes == leave and not other.nodes:
            return replace(asks, what=replace(asks.what, kind=Kind.BAR_WAIT))
    return None


def _is(condition: Expr, complete: Expr) -> bool:
    return condition is complete or plain("not", plain("not", condition, bits=1), bits=1) is complete
