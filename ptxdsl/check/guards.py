"""Conditions of a thread's number and of values that all threads have alike: which threads can do both of two things.

    if thread_idx.x == k:
        tile[0] = 1
    if thread_idx.x == k:
        res[0] = tile[0]

k is not known, but it is one: no two threads come to both. What is not known is tried, with as many values as make a
difference beside the threads' numbers. Only what does not change while the kernel runs is looked at so.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from ptxdsl.check.threads import Block, Mask, Row
from ptxdsl.protocol.expressions import ARITHMETIC, Expr, compute, nodes, wrap

_LOGIC = frozenset({"and", "or", "xor", "not", "eq", "ne", "select"})
_COMPARISONS = frozenset({"eq", "ne", *(f"{c}.{s}" for c in ("lt", "le", "gt", "ge") for s in "su")})
_ALIKE = frozenset({"uniform", "cta"})
_FIXED = _ALIKE | {"const"} | ARITHMETIC.keys()  # what is made of nothing else does not change
_MOST_TRIED = 2100  # twice the threads of a block, and some
_FAR = 1 << 20  # of numbers of threads

Points = dict[Expr, set[int]]


class Guard:
    """A condition that holds when its threads come to something. Conditions that are the same are equal."""

    __slots__ = ("block", "condition")

    def __init__(self, block: Block, condition: Expr) -> None:
        self.block = block
        self.condition = condition

    def __hash__(self) -> int:
        return hash(self.condition)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guard) and self.condition is other.condition and self.block is other.block


def guard(block: Block, condition: Expr) -> Guard | None:
    """None where nothing is known of who it holds for."""
    points: Points = {}
    return Guard(block, condition) if _collect(block, condition, points) and _count(points) <= _MOST_TRIED else None


@lru_cache(256)
def together(a: Guard | None, b: Guard | None) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """For each thread, in which of the cases it comes to the one and to the other, as bits; None: all in all."""
    some = a or b
    if some is None:
        return None
    block = some.block
    points: Points = {}
    for one in (a, b):
        if one is not None:
            _collect(block, one.condition, points)
    if _count(points) > _MOST_TRIED:
        return None
    cases = [dict(zip(points, values, strict=True)) for values in product(*(sorted(v) for v in points.values()))]
    masks = [[block.all if one is None else _mask(block, one.condition, case) for case in cases] for one in (a, b)]
    first, second = (_by_thread(block, of) for of in masks)
    return first, second


def _by_thread(block: Block, masks: list[Mask]) -> tuple[int, ...]:
    digits = [bin(mask | 1 << block.size)[:2:-1] for mask in masks]  # a digit for each thread, the first one first
    return tuple(int("".join(column), 2) for column in zip(*digits, strict=True))


def _collect(block: Block, expr: Expr, points: Points) -> bool:
    """Notes what must be tried of the values that are not known; False where that is not seen."""
    if block.row(expr) is not None:
        return True
    if _is_alike(expr):
        if expr.bits > 1:
            return False
        points[expr] = {0, 1}
        return True
    if expr.op in _LOGIC and all(arg.bits == 1 for arg in expr.args):
        return all(_collect(block, arg, points) for arg in expr.args)
    if expr.op not in _COMPARISONS:
        return False
    a, b = expr.args
    own, alike = (a, b) if _is_alike(b) else (b, a)
    row = block.row(own)
    if not _is_alike(alike) or not isinstance(row, list) or max(map(abs, row)) > _FAR:
        return False
    # A comparison has one answer from each of these to the next, both as signed and as unsigned.
    values = points.setdefault(alike, {0, -1 << alike.bits - 1})
    values.update(row)
    values.update(wrap(value + 1, alike.bits) for value in set(row))
    return True


def _is_alike(expr: Expr) -> bool:
    """Whether it is the same for all threads and never changes, and no constant."""
    there = {node.op for node in nodes(expr)}
    return not there.isdisjoint(_ALIKE) and there <= _FIXED


def _count(points: Points) -> int:
    count = 1
    for values in points.values():
        count *= len(values)
    return count


def _mask(block: Block, condition: Expr, case: dict[Expr, int]) -> Mask:
    return block.where(_row(block, condition, case))


def _row(block: Block, expr: Expr, case: dict[Expr, int]) -> Row:
    known = case.get(expr)
    row = known if known is not None else block.row(expr)
    if row is not None:
        return row
    rows = [_row(block, arg, case) for arg in expr.args]
    bits = expr.args[0].bits
    if all(isinstance(row, int) for row in rows):
        return compute(expr.op, [row for row in rows if isinstance(row, int)], expr.bits, bits)
    columns = [row if isinstance(row, list) else [row] * block.size for row in rows]
    return [compute(expr.op, list(values), expr.bits, bits) for values in zip(*columns, strict=True)]
