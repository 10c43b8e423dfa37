"""What may be left out where a fault is: in a loop in which a role waits nothing takes it on to the next phase; a stage
is given back, and nothing waits for it."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.check import classes
from ptxdsl.check.findings import Finding
from ptxdsl.effects import Kind
from ptxdsl.protocol.model import Kernel, Loop, Node, Op, walk
from ptxdsl.protocol.rewriting import assigned
from ptxdsl.record import replace
from ptxdsl.source import Span

# What comes of it.
_KINDS = frozenset({
    classes.MISSING_ARRIVE, classes.CYCLIC_WAIT, classes.WRONG_PARITY, classes.READ_BEFORE_FULL, classes.OVERWRITTEN,
    classes.WRONG_COUNT,
})  # fmt: skip


def with_left_out(kernel: Kernel, finding: Finding) -> Finding:
    """A finding with the line of such a step."""
    if finding.kind not in _KINDS:
        return finding
    for span, what, help in (*_unmoved(kernel.nodes), *_unwaited(kernel)):
        return replace(finding, notes=((span, what), *finding.notes), help=help)
    return finding


def _unmoved(nodes: tuple[Node, ...]) -> Iterator[tuple[Span, str, str]]:
    for loop in nodes:
        if not isinstance(loop, Loop) or loop.once:
            continue
        inner = walk(loop.body)
        turning = {id(op) for node in inner if isinstance(node, Loop) and not node.once for op in walk(node)}
        changed = assigned(loop)
        for op in inner:
            if not isinstance(op, Op) or op.kind is not Kind.BAR_WAIT or id(op) in turning or op.barrier is None:
                continue
            parts = [part for part in (op.barrier.address, op.parity) if part is not None]
            variables = frozenset[int]().union(*(part.variables for part in parts))
            if variables.isdisjoint(changed):
                what = "waits for the same phase in every turn: nothing in the loop steps to the next one"
                yield op.span, what, f"step once a turn: `{op.pipeline}.step()`" if op.pipeline else "step once a turn"


def _unwaited(kernel: Kernel) -> Iterator[tuple[Span, str, str]]:
    ops = [node for node in kernel.nodes if isinstance(node, Op) and node.pipeline]
    for end in kernel.pipelines:
        own = [op for op in ops if op.pipeline == end.name]
        given_back = [op for op in own if op.kind is Kind.BAR_ARRIVE]
        if given_back and not end.producer and not any(op.kind is Kind.BAR_WAIT for op in own):
            what = "a stage is given back here, and nothing waits for it before"
            yield given_back[0].span, what, f"wait for the stage before it is read: `{end.name}.wait()`"
