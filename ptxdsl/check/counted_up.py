"""Loops that count down as loops that count their turns: ``for i in range(n - 1, -1, -1)``.

In turn k of such a loop the index is its start less k steps. So written, expressions that count from the other end, as
``(n - 1 - i) % STAGES``, are those of the turn, which the proof follows (``counters.py``). Sums are taken not to wrap.
"""

from __future__ import annotations

from ptxdsl.protocol.algebra import linear, of_linear, plain
from ptxdsl.protocol.expressions import Expr, const, nodes, var
from ptxdsl.protocol.model import Kernel, Loop, Node, Range, Seq, walk
from ptxdsl.protocol.rewriting import assigned, mapped
from ptxdsl.record import replace


def counted_up(kernel: Kernel) -> Kernel:
    """The kernel with them so written."""
    loops = [node for node in walk(kernel.program) if isinstance(node, Loop)]
    down = [loop for loop in loops if loop.range is not None and loop.range.step < 0 and loop.range.signed]
    if not down:
        return kernel
    program = kernel.program
    for loop in down:
        program = mapped(program, lambda node, loop=loop: _turned(node) if _is(node, loop) else None)  # type: ignore[misc]
    return replace(kernel, program=program)


def _is(node: Node, loop: Loop) -> bool:
    return isinstance(node, Loop) and node.label == loop.label and node.range is not None and node.range.step < 0


def _turned(loop: Node) -> Node | None:
    assert isinstance(loop, Loop) and loop.range is not None
    index, start, stop, step = loop.range.index, loop.range.start, loop.range.stop, -loop.range.step
    bounds = {e.value for bound in (start, stop) for e in nodes(bound) if e.op == "var"}
    if start.op == "const" or bounds & assigned(loop):
        return None
    bits = start.bits
    turns = plain("sub", start, stop, bits=bits)
    if step > 1:
        turns = plain("floordiv.s", plain("add", turns, const(step - 1, bits), bits=bits), const(step, bits), bits=bits)
    way = plain("mul", var(index, bits), const(step, bits), bits=bits)
    value = plain("sub", start, way, bits=bits)
    return replace(loop, body=_with(loop.body, index, value), range=Range(index, const(0, bits), turns, 1))


def _with(body: Seq, index: int, value: Expr) -> Seq:
    terms, constant = linear(value)

    def of(expr: Expr) -> Expr | None:
        if expr.op == "var" and expr.value == index:
            return value
        if expr.op not in ("add", "sub"):
            return None
        # What the value takes back from a sum falls away.
        own, rest = linear(expr)
        times = sum(factor for term, factor in own.items() if _is_index(term))
        if not times or any(not _is_index(term) and any(map(_is_index, nodes(term))) for term in own):
            return None
        left = {term: factor for term, factor in own.items() if not _is_index(term)}
        for term, factor in terms.items():
            left[term] = left.get(term, 0) + times * factor
        return of_linear({term: factor for term, factor in left.items() if factor}, rest + times * constant, expr.bits)

    def _is_index(expr: Expr) -> bool:
        return expr.op == "var" and expr.value == index

    return mapped(body, lambda _: None, of, {})
