"""What may be left out where a fault is: in a loop in which a role waits nothing takes it on to the next phase; a stage
is given back, and nothing waits for it. And what may be done twice: an arrival."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxdsl.check import classes
from ptxdsl.check.findings import Finding
from ptxdsl.effects import Kind
from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Kernel, Loop, Node, Op, Pipeline, walk
from ptxdsl.protocol.rewriting import assigned
from ptxdsl.record import replace

# What comes of it.
_KINDS = frozenset({
    classes.MISSING_ARRIVE, classes.CYCLIC_WAIT, classes.WRONG_PARITY, classes.READ_BEFORE_FULL, classes.OVERWRITTEN,
    classes.WRONG_COUNT, classes.EXIT_IN_FLIGHT,
})  # fmt: skip
_ARRIVES = frozenset({Kind.BAR_ARRIVE, Kind.BAR_EXPECT, Kind.COMMIT})
_BARRIER_BYTES = 8


def with_left_out(kernel: Kernel, finding: Finding) -> Finding:
    """A finding with the line of such a step."""
    if finding.kind not in _KINDS:
        return finding
    for op, what, help in (*_twice(kernel, finding), *_unmoved(kernel), *_unwaited(kernel), *_kept(kernel, finding)):
        if op.pipeline or finding.kind != classes.EXIT_IN_FLIGHT:
            rest = tuple(note for note in finding.notes if note[0] != op.span)
            return replace(finding, notes=((op.span, what), *rest), help=help)
    return finding


def _unmoved(kernel: Kernel) -> Iterator[tuple[Op, str, str]]:
    for loop in kernel.nodes:
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
                yield op, *_advance(kernel, op, inner)


def _advance(kernel: Kernel, wait: Op, turn: list[Node]) -> tuple[str, str]:
    """Why who waits stays at one phase, and what takes it on to the next. turn: all that its loop does."""
    what = "waits for the same phase in every turn: nothing in the loop steps to the next one"
    if not wait.pipeline:
        return what, "step once a turn"
    ops = [node for node in kernel.nodes if isinstance(node, Op)]
    for end in kernel.pipelines:
        waits = end.name == wait.pipeline and end.producer is (wait.method == "acquire")
        if waits and not any(_hands_over(op, end) for op in ops):
            does, call = _handing_over(end, turn)
            return f"does not {does}, and so waits for the same phase in every turn", f"{does} once a turn: {call}"
    return what, f"step once a turn: `{wait.pipeline}.step()`"


def _handing_over(end: Pipeline, nodes: Sequence[Node]) -> tuple[str, str]:
    """What an end does with a stage when it is done with it, and how that is written; nodes: what it does before."""
    name, does = end.name, "hand the stage over" if end.producer else "give the stage back"
    products = [op for op in nodes if isinstance(op, Op) and op.kind is Kind.ASYNC_MMA and op.what.space == "tensor"]
    if products:
        arrive = f"{name}.commit_mma()" if end.producer else f"mma_arrive({name}.consumer_mbar())"
        return does, f"`{arrive}`, which arrives when the products are done, and `{name}.step()`"
    return does, f"`{name}.{'commit' if end.producer else 'release'}()`, which arrives and steps"


def _kept(kernel: Kernel, finding: Finding) -> Iterator[tuple[Op, str, str]]:
    """Of an end that steps, and at whose barriers nobody arrives."""
    ops = [node for node in kernel.nodes if isinstance(node, Op)]
    for end in kernel.pipelines:
        side = "producer_mbar" if end.producer else "consumer_mbar"
        wait = next((op for op in ops if op.pipeline == end.name and op.kind is Kind.BAR_WAIT), None)
        asked_for = finding.kind == classes.MISSING_ARRIVE and side in finding.message
        if wait is not None and asked_for and not any(_hands_over(op, end) for op in ops):
            does, call = _handing_over(end, _turn(kernel, wait))
            instead = "" if f"{end.name}.step()" in call else ", in place of `step()`"
            yield wait, f"nobody is there to {does} that is waited for here", f"{does}: {call}{instead}"


def _turn(kernel: Kernel, op: Op) -> list[Node]:
    """What the innermost loop around an operation does."""
    loops = [walk(node.body) for node in kernel.nodes if isinstance(node, Loop) and not node.once]
    return min((turn for turn in loops if any(node is op for node in turn)), key=len, default=[])


def _twice(kernel: Kernel, finding: Finding) -> Iterator[tuple[Op, str, str]]:
    """Of an arrival behind an announcement of bytes that has arrived already, where a finding shows both, at a barrier
    for one arrival."""
    shown = {finding.span, *(span for span, _ in finding.notes)}
    ops = [node for node in kernel.nodes if isinstance(node, Op) and node.span in shown]
    for end in kernel.pipelines:
        told = [op for op in ops if op.kind is Kind.BAR_EXPECT and op.what.count and _is_at(op, end)]
        again = [op for op in ops if op.kind is Kind.BAR_ARRIVE and op.pipeline == end.name and op.method == "commit"]
        counts = [op.count for op in ops if op.kind is Kind.BAR_INIT and _is_at(op, end)]
        one = counts and all(count is not None and count.op == "const" and count.value == 1 for count in counts)
        if end.producer and told and again and one:
            what = "this announces the bytes and has arrived with that"
            yield told[0], what, f"arrive once a turn: `{end.name}.step()` in place of `{end.name}.commit()`"


def _hands_over(op: Op, end: Pipeline) -> bool:
    """Whether an operation arrives, or may, at a barrier by which an end hands its stages over."""
    return op.kind in _ARRIVES and _is_at(op, end)


def _is_at(op: Op, end: Pipeline) -> bool:
    """Whether an operation is, or may be, on a barrier by which an end hands its stages over."""
    if op.barrier is None:
        return False
    table, subs = (end.full, end.full_subs) if end.producer else (end.empty, end.empty_subs)
    at = None if op.barrier.address is None else _first(op.barrier.address)
    if at is None or table.op != "const":
        return True
    return 0 <= at - int(table.value) < end.stages * subs * _BARRIER_BYTES


def _first(address: Expr) -> int | None:
    """The constant part of an address: that of the table which it is in. None where there is none."""
    if address.op == "const":
        return int(address.value)
    found = [at for at in map(_first, address.args) if at] if address.op in ("add", "mapa") else []
    return sum(found) if found else None


def _unwaited(kernel: Kernel) -> Iterator[tuple[Op, str, str]]:
    ops = [node for node in kernel.nodes if isinstance(node, Op) and node.pipeline]
    for end in kernel.pipelines:
        own = [op for op in ops if op.pipeline == end.name]
        given_back = [op for op in own if op.kind is Kind.BAR_ARRIVE]
        if given_back and not end.producer and not any(op.kind is Kind.BAR_WAIT for op in own):
            what = "a stage is given back here, and nothing waits for it before"
            yield given_back[0], what, f"wait for the stage before it is read: `{end.name}.wait()`"
