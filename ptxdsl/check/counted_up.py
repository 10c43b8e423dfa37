"""Loops that count down as loops that count their turns: ``for i in range(n - 1, -1, -1)``.

In turn k of such a loop the index is its start less k steps. So written, expressions that count from the other end, as
``(n - 1 - i) % STAGES``, are those of the turn, which the proof follows (``counters.py``). Sums are taken not to wrap.
"""

from __future__ import annotations

from functools import partial

from ptxdsl.protocol.algebra import linear, of_linear, plain
from ptxdsl.protocol.expressions import Expr, const, nodes, var
from ptxdsl.protocol.model import Kernel, Loop, Node, Range, Seq
from ptxdsl.protocol.rewriting import assigned, mapped
from ptxdsl.record import replace


def counted_up(kernel: Kernel) -> Kernel:
    """The kernel with them so written."""
    loops = [node for node in kernel.nodes if isinstance(node, Loop)]
    program = kernel.program
    for loop in loops:
        if loop.range is not None and loop.range.step < 0 and loop.range.signed:
            program = mapped(program, partial(_turned, loop.label))
    return kernel if program is kernel.program else replace(kernel, program=program)


def _turned(label: int, loop: Node) -> Node | None:
    """The loop of this label; None for other nodes, and where it stays as it is."""
    if not isinstance(loop, Loop) or loop.label != label or loop.range is None or loop.range.step > 0:
        return None
    index, start, stop, step = loop.range.index, loop.range.start, loop.range.stop, -loop.range.step
    if start.op == "const" or (start.variables | stop.variables) & assigned(loop):
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

    def is_index(expr: Expr) -> bool:
        return expr.op == "var" and expr.value == index

    def of(expr: Expr) -> Expr | None:
        if is_index(expr):
            return value
        if expr.op not in ("add", "sub"):
            return None
        # What the value takes back from a sum falls away.
        own, rest = linear(expr)
        times = sum(factor for term, factor in own.items() if is_index(term))
        if not times or any(not is_index(term) and any(map(is_index, nodes(term))) for term in own):
            return None
        left = {term: factor for term, factor in own.items() if not is_index(term)}
        for term, factor in terms.items():
            left[term] = left.get(term, 0) + times * factor
        return of_linear({term: factor for term, factor in left.items() if factor}, rest + times * constant, expr.bits)

    return mapped(body, lambda _: None, of, {})
