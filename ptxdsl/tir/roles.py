"""Which threads of a block take a branch: sets of ``thread_idx.x`` as bit masks, found by evaluating the condition."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from ptxdsl.tir import Const, Op, Value

MAX_THREADS = 1024  # of a block, on every target

ThreadSet = int  # bit t is set where thread t is in
ALL: ThreadSet = (1 << MAX_THREADS) - 1

_BINARY: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "eq": operator.eq, "ne": operator.ne,
    "lt.s": operator.lt, "le.s": operator.le, "gt.s": operator.gt, "ge.s": operator.ge,
    "lt.u": operator.lt, "le.u": operator.le, "gt.u": operator.gt, "ge.u": operator.ge,
}  # fmt: skip
_BY_CONSTANT: dict[str, Callable[[int, int], int]] = {  # right operand: a positive constant
    "floordiv.s": operator.floordiv, "floordiv.u": operator.floordiv, "div.u": operator.floordiv,
    "mod.s": operator.mod, "mod.u": operator.mod, "shr.s": operator.rshift, "shr.u": operator.rshift,
}  # fmt: skip
_UNSIGNED = frozenset({"lt.u", "le.u", "gt.u", "ge.u", "div.u", "floordiv.u", "mod.u", "shr.u", "ext.u"})
_COPY = frozenset({"ext.s", "ext.u", "trunc"})
_VOTES = frozenset({"vote_any_sync", "vote_all_sync"})  # copies where every warp agrees


def thread_set(condition: Value, definitions: Mapping[Value, Op], threads: int = MAX_THREADS) -> ThreadSet | None:
    """The threads, of the first so many, for which an i1 holds; None where it depends on more than ``thread_idx.x``."""
    values = _evaluate(condition, definitions, threads)
    if values is None:
        return None
    return int("".join("1" if v else "0" for v in reversed(values)), 2)


def contiguous(threads: ThreadSet) -> tuple[int, int] | None:
    """``(first, past the last)`` of a non-empty set without gaps."""
    if not threads:
        return None
    first = (threads & -threads).bit_length() - 1
    run = threads >> first
    return (first, first + run.bit_length()) if run & (run + 1) == 0 else None


def _evaluate(value: Value, definitions: Mapping[Value, Op], threads: int, depth: int = 16) -> list[int] | None:
    """The value in each thread; None where it is not a function of ``thread_idx.x`` or leaves its type's range."""
    if isinstance(value, Const):
        return [value.value] * threads if isinstance(value.value, int) else None
    op = definitions.get(value)
    if op is None or depth == 0 or value.ty.lanes != 1:
        return None
    if op.name == "tid_x":
        return list(range(threads))
    if op.name in _VOTES:
        got = _evaluate(op.operands[1], definitions, threads, depth - 1)
        agreed = got is not None and all(len(set(got[w : w + 32])) == 1 for w in range(0, threads, 32))
        return got if agreed else None
    operands = []
    for operand in op.operands:
        got = _evaluate(operand, definitions, threads, depth - 1)
        if got is None or (op.name in _UNSIGNED and min(got) < 0):
            return None
        operands.append(got)
    if op.name in _COPY:
        result = operands[0]
    elif op.name == "not":
        result = [1 - v for v in operands[0]]
    elif op.name in _BINARY:
        result = [int(v) for v in map(_BINARY[op.name], *operands)]
    elif op.name in _BY_CONSTANT and isinstance(op.operands[1], Const) and operands[1][0] > 0:
        result = list(map(_BY_CONSTANT[op.name], *operands))
    else:
        return None
    limit = 1 << (value.ty.bits - 1) if value.ty.name != "i1" else 2
    return result if -limit <= min(result) and max(result) < limit else None
