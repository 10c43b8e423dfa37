"""Control flow in its plain form: no jump that leads where one goes anyway, no block that nobody leaves early.

Which operations a thread does, in which order and with what, stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.effects import Kind
from ptxdsl.protocol.algebra import mentions, plain
from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Branch, Jump, Loop, Node, Op, Return, Seq, Unmodelled, walk
from ptxdsl.protocol.rewriting import seq_with, with_inner
from ptxdsl.record import replace

# Where the end of what is written leads: to the ends of these blocks, the next turns of these loops (their labels with
# whether it is the next turn).
_Ends = frozenset[tuple[int, bool]]
_NOWHERE: _Ends = frozenset()


def straight(program: Seq) -> Seq:
    return _Straight(program).seq(program, _NOWHERE, True)


class _Straight:
    def __init__(self, program: Seq) -> None:
        self.blocks = {node.label for node in walk(program) if isinstance(node, Loop) and node.once}

    def seq(self, seq: Seq, ends: _Ends, returns: bool) -> Seq:
        """ends, returns: where the end of the sequence leads; returns: to the end of the kernel."""
        out: list[Node] = []
        nodes = list(_flat(seq))
        for position, node in enumerate(nodes):
            rest = nodes[position + 1 :]
            here, finishes = (ends, returns) if not rest else (_NOWHERE, False)
            if isinstance(node, Jump):
                if (node.label, node.again) not in here:
                    out.append(node)
                break
            if isinstance(node, Return):
                if not finishes:
                    out.append(node)
                break
            if isinstance(node, Branch):
                joined = self.with_rest(node, rest)
                if joined is not None:
                    out.extend(self.branch(joined, ends, returns))
                    break
                out.extend(self.branch(node, here, finishes))
                if out and _never_goes_on(out[-1]):
                    break
            elif isinstance(node, Loop):
                out.extend(self.loop(node, here, finishes))
            else:
                out.append(node)
        return Seq(tuple(out))

    def with_rest(self, node: Branch, rest: list[Node]) -> Branch | None:
        """What follows a branch of which one arm leaves a block or the kernel, as part of the other arm."""
        if not rest:
            return None
        for arm, then, orelse in (
            (node.then, node.then, Seq((*node.orelse.nodes, *rest))),
            (node.orelse, Seq((*node.then.nodes, *rest)), node.orelse),
        ):
            last = arm.nodes[-1] if arm.nodes else None
            if isinstance(last, Return) or (isinstance(last, Jump) and last.label in self.blocks):
                return Branch(node.condition, then, orelse, node.span)
        return None

    def branch(self, node: Branch, ends: _Ends, returns: bool) -> Iterator[Node]:
        if node.condition.op == "const":
            yield from self.seq(node.then if node.condition.value else node.orelse, ends, returns).nodes
            return
        then, orelse = self.seq(node.then, ends, returns), self.seq(node.orelse, ends, returns)
        if not then.nodes and not orelse.nodes:
            return
        wait = _awaited(node.condition, then, orelse)
        if wait is not None:
            yield wait
        elif not then.nodes:
            yield _one_armed(plain("not", node.condition, bits=1), orelse, node)
        elif not orelse.nodes:
            yield _one_armed(node.condition, then, node)
        else:
            yield Branch(node.condition, then, orelse, node.span)

    def loop(self, node: Loop, ends: _Ends, returns: bool) -> Iterator[Node]:
        if not node.once:
            body = self.seq(node.body, frozenset({(node.label, True)}), False)
            yield replace(node, body=_leaving(body, ends, returns, Jump(node.label, False)))
            return
        body = self.seq(node.body, ends | {(node.label, False)}, returns)
        if any(isinstance(inner, Jump) and inner.label == node.label for inner in walk(body)):
            yield replace(node, body=body)
        else:
            yield from body.nodes


def _flat(seq: Seq) -> Iterator[Node]:
    for node in seq.nodes:
        if isinstance(node, Seq):
            yield from _flat(node)
        else:
            yield node


def _one_armed(condition: Expr, arm: Seq, node: Branch) -> Branch:
    """A condition of several parts as nested branches, what only thread ids tell innermost; of jumps the other way."""
    nothing = Seq(())
    inner = arm.nodes[0] if len(arm.nodes) == 1 else None
    if not any(isinstance(n, Op | Loop | Unmodelled) for n in walk(arm)):
        if isinstance(inner, Branch) and not inner.orelse.nodes:
            return Branch(plain("and", condition, inner.condition, bits=1), inner.then, nothing, node.span)
    elif condition.op == "and":
        outer, within = sorted(condition.args, key=_only_threads)
        return _one_armed(outer, Seq((_one_armed(within, arm, node),)), node)
    return Branch(condition, arm, nothing, node.span)


def _only_threads(condition: Expr) -> bool:
    return not mentions(condition, frozenset(("var", "uniform", "cta", "load", "unknown", "test")))


def _awaited(condition: Expr, then: Seq, orelse: Seq) -> Op | None:
    """A test whose failure leads to a wait for the same phase is that wait."""
    failed = condition.op == "not"
    test = condition.args[0] if failed else condition
    waiting, nothing = (then, orelse) if failed else (orelse, then)
    if test.op != "test" or nothing.nodes or len(waiting.nodes) != 1:
        return None
    wait = waiting.nodes[0]
    if not isinstance(wait, Op) or wait.kind is not Kind.BAR_WAIT or wait.barrier is None:
        return None
    barrier, parity = test.args
    return wait if wait.barrier.address is barrier and wait.parity is parity else None


def _never_goes_on(node: Node) -> bool:
    if isinstance(node, Seq):
        return bool(node.nodes) and _never_goes_on(node.nodes[-1])
    if isinstance(node, Branch):
        return _never_goes_on(node.then) and _never_goes_on(node.orelse)
    return isinstance(node, Jump | Return)


def _leaving(body: Seq, ends: _Ends, returns: bool, leave: Jump) -> Seq:
    """Jumps to where the loop's end leads anyway leave the loop."""

    def of(inner: Node) -> Node:
        if isinstance(inner, Jump) and (inner.label, inner.again) in ends:
            return leave
        if isinstance(inner, Return) and returns:
            return leave
        return with_inner(inner, of)

    return seq_with(body, of) if ends or returns else body
