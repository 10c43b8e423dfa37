"""Loops that count otherwise as loops that count their turns: ``for i in range(n - 1, -1, -1)``.

In turn k of such a loop the index is its start less k steps. So written, expressions that count from the other end, as
``(n - 1 - i) % STAGES``, are those of the turn, which the proof follows (``counters.py``). So are loops written that
count down, and of those that go up by more than 1 the ones that make as many turns as another loop counts:
``range(0, n, 3)`` beside ``range(ceildiv(n, 3))``. What is divided and rounded up has one form, ``(n + 2) // 3``.
Sums are taken not to wrap.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from ptxdsl.protocol.algebra import linear, of_linear, plain, substitute
from ptxdsl.protocol.expressions import Expr, const, nodes, var
from ptxdsl.protocol.model import Kernel, Loop, Node, Range, Seq, walk
from ptxdsl.protocol.rewriting import assigned, mapped
from ptxdsl.record import replace


def counted_up(kernel: Kernel) -> Kernel:
    """The kernel with them so written."""
    program = kernel.program
    loops = _loops(program)
    if any(_rounded_up(part) is not None for _, span in loops for part in nodes(span.stop)):
        program = mapped(program, _with_plain_end)
    for label, span in loops:
        if span.step < 0:
            program = mapped(program, partial(_turned, label, None))
    longer = [label for label, span in loops if span.step > 1]
    if longer:
        counts = {span.stop for _, span in _loops(program) if span.step == 1 and _is_zero(span.start)}
        for label in longer:
            program = mapped(program, partial(_turned, label, counts))
    return kernel if program is kernel.program else replace(kernel, program=program)


def _loops(program: Seq) -> list[tuple[int, Range]]:
    """The labels and ranges of loops over signed numbers."""
    found = [(node.label, node.range) for node in walk(program) if isinstance(node, Loop) and node.range is not None]
    return [(label, span) for label, span in found if span.signed]


def _with_plain_end(loop: Node) -> Node | None:
    if not isinstance(loop, Loop) or loop.range is None or not loop.range.signed:
        return None
    span = loop.range
    stop = substitute(span.stop, _rounded_up, {})
    return replace(loop, body=mapped(loop.body, _with_plain_end), range=Range(span.index, span.start, stop, span.step))


def _rounded_up(expr: Expr) -> Expr | None:
    """``(x + d - 1) // d`` of ``x // d + (x % d != 0)``, ``(x + c * d) // d`` of ``x // d + c``."""
    for quotient, more in (expr.args, expr.args[::-1]) if expr.op == "add" else ():
        if quotient.op != "floordiv.s" or quotient.args[1].op != "const" or quotient.args[1].value <= 0:
            continue
        dividend, divisor = quotient.args[0], int(quotient.args[1].value)
        if more.op == "const":
            return _divided(dividend, divisor, int(more.value) * divisor)
        if more.op == "ext.u" and more.args[0].op == "ne":
            rest, none = more.args[0].args
            if rest.op == "mod.s" and rest.args == quotient.args and _is_zero(none):
                return _divided(dividend, divisor, divisor - 1)
    return None


def _is_zero(expr: Expr) -> bool:
    return expr.op == "const" and expr.value == 0


def _divided(expr: Expr, divisor: int, more: int) -> Expr:
    """With something added before."""
    terms, constant = linear(expr)
    return plain("floordiv.s", of_linear(terms, constant + more, expr.bits), const(divisor, expr.bits), bits=expr.bits)


def _turned(label: int, counts: Collection[Expr] | None, loop: Node) -> Node | None:
    """The loop of this label; None for other nodes, and where it stays as it is. counts: the numbers of turns of which
    it must have one; None: it may have any."""
    if not isinstance(loop, Loop) or loop.label != label or loop.range is None:
        return None
    index, start, stop, step = loop.range.index, loop.range.start, loop.range.stop, loop.range.step
    if (step < 0 and start.op == stop.op == "const") or (start.variables | stop.variables) & assigned(loop):
        return None
    bits = start.bits
    turns = plain("sub", start, stop, bits=bits) if step < 0 else plain("sub", stop, start, bits=bits)
    if abs(step) > 1:
        turns = _divided(turns, abs(step), abs(step) - 1)
    if counts is not None and turns not in counts:
        return None
    value = plain("add", start, plain("mul", var(index, bits), const(step, bits), bits=bits), bits=bits)
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
