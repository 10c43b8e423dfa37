"""Threads of a block as bit masks, and expressions of thread ids evaluated for each of them.

Threads are numbered as the hardware does, x first; a warp is 32 neighbouring numbers. An expression that has nothing
but thread ids in it is a list of ints, one for each thread of the block, or one int where all have the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from itertools import repeat

from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import BLOCK_SIZES, Expr, compute

WARP = 32
WARPGROUP = 4 * WARP
Mask = int
Row = int | list[int]  # a value in each thread of the block
Lanes = tuple[int, ...]  # a part of an address for each thread of a mask
_MOST_ROWS = 4096

# Operations that never leave the range of their operands' type, or are looked at afterwards.
_FAST: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "eq": operator.eq, "ne": operator.ne, "lt.s": operator.lt, "le.s": operator.le,
    "gt.s": operator.gt, "ge.s": operator.ge,
}  # fmt: skip
_FAST_UNSIGNED: dict[str, Callable[[int, int], int]] = {  # where no operand is negative
    "lt.u": operator.lt, "le.u": operator.le, "gt.u": operator.gt, "ge.u": operator.ge, "shr.u": operator.rshift,
    "shr.s": operator.rshift, "shl": operator.lshift,
}  # fmt: skip
_FAST_POSITIVE: dict[str, Callable[[int, int], int]] = {  # where no operand is negative, and the second is not 0
    "floordiv.s": operator.floordiv, "floordiv.u": operator.floordiv, "div.u": operator.floordiv,
    "mod.s": operator.mod, "mod.u": operator.mod, "rem.s": operator.mod, "rem.u": operator.mod,
    "div.s": operator.floordiv,
}  # fmt: skip


@lru_cache(8)
def block_of(shape: tuple[int, int, int]) -> Block:
    """A block, with what was asked of others of its shape."""
    return Block(shape)


class Block:
    """The threads of one block and what expressions are in them."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.shape = shape
        self.size = shape[0] * shape[1] * shape[2]
        self.all: Mask = (1 << self.size) - 1
        self.leaders: Mask = sum(
            1 << t for t in range(0, self.size, WARP)
        )  # whom ``elect.sync`` of whole warps chooses
        self._rows: dict[Expr, Row | None] = {}
        self._holds: dict[Expr, Mask | None] = {}
        self._lanes: dict[tuple[Any, ...], tuple[int, Lanes | None]] = {}

    def holds(self, condition: Expr) -> Mask | None:
        """The threads in which a truth value holds; None where it depends on more than thread ids."""
        found = self._holds.get(condition, -1)
        if found == -1:
            if len(self._holds) >= _MOST_ROWS:
                self._holds.clear()
            row = self.row(condition)
            found = self._holds[condition] = None if row is None else self.where(row)
        return found

    def row(self, expr: Expr) -> Row | None:
        """The value in every thread; None where it depends on more than thread ids."""
        if expr.op == "const":
            return int(expr.value)
        if expr in self._rows:
            return self._rows[expr]
        if len(self._rows) >= _MOST_ROWS:
            self._rows.clear()
        found = self._rows[expr] = self._row(expr)
        return found

    def lanes(self, terms: tuple[tuple[Expr, int], ...], mask: Mask) -> tuple[int, Lanes | None]:
        """The sum of expressions of thread ids, each with a factor: what all threads of a mask have alike, and what
        each has besides, in their order; None: nothing."""
        key = *terms, mask
        found = self._lanes.get(key)
        if found is None:
            if len(self._lanes) >= _MOST_ROWS:
                self._lanes.clear()
            found = self._lanes[key] = self._sum(terms, mask)
        return found

    def _sum(self, terms: tuple[tuple[Expr, int], ...], mask: Mask) -> tuple[int, Lanes | None]:
        if not terms:
            return 0, None
        threads = members(mask)
        own = [0] * len(threads)
        for expr, factor in terms:
            row = self.row(expr)
            assert isinstance(row, list)
            own = [at + row[t] * factor for at, t in zip(own, threads, strict=True)]
        return (own[0], None) if own.count(own[0]) == len(own) else (0, tuple(own))

    def _row(self, expr: Expr) -> Row | None:
        op = expr.op
        if op == "tid":
            return self._tid(expr.value)
        if op == "uniform" and expr.value in BLOCK_SIZES:
            return self.shape[BLOCK_SIZES[expr.value]]
        if op == "elected":
            return [int(t % WARP == 0) for t in range(self.size)]
        if not expr.args or op in ("load", "test", "answer", "held"):
            return None
        rows = [self.row(arg) for arg in expr.args]
        if any(row is None for row in rows):
            return None
        known = [row for row in rows if row is not None]
        if op in ("shuffle", "any", "all"):
            return self._across(op, known)
        return _level(self._arithmetic(expr, known))

    def _tid(self, axis: int) -> Row:
        if axis == 3:
            return list(range(self.size))
        x, y, _ = self.shape
        step = (1, x, x * y)[axis]
        return _level([t // step % self.shape[axis] for t in range(self.size)])

    def _across(self, op: str, rows: list[Row]) -> Row:
        value = rows[0]
        if isinstance(value, int):
            return value
        if op == "shuffle":
            lanes = rows[1] if isinstance(rows[1], list) else [rows[1]] * self.size
            sources = [t // WARP * WARP + lanes[t] % WARP for t in range(self.size)]
            return _level([value[s] if s < self.size else 0 for s in sources])
        made: list[int] = []
        for first in range(0, self.size, WARP):
            lanes = value[first : first + WARP]
            made += [int(any(lanes) if op == "any" else all(lanes))] * len(lanes)
        return _level(made)

    def _arithmetic(self, expr: Expr, rows: list[Row]) -> Row:
        op, bits = expr.op, expr.bits
        if all(isinstance(row, int) for row in rows):
            return compute(op, [row for row in rows if isinstance(row, int)], bits, expr.args[0].bits)
        if op in ("ext.s", "trunc", "ext.u"):
            row = rows[0]
            limit = 1 << (min(bits, expr.args[0].bits) - 1)
            if isinstance(row, list) and (min(row) >= 0 or op == "ext.s") and max(row) < limit and min(row) >= -limit:
                return row
        elif len(rows) == 2:
            fast = self._fast(op, bits, *rows)
            if fast is not None:
                return fast
        columns = [row if isinstance(row, list) else [row] * self.size for row in rows]
        return [compute(op, list(values), bits, expr.args[0].bits) for values in zip(*columns, strict=True)]

    def _fast(self, op: str, bits: int, a: Row, b: Row) -> list[int] | None:
        function = _FAST.get(op)
        if function is None:
            function = _FAST_UNSIGNED.get(op)
            if function is None:
                function = _FAST_POSITIVE.get(op)
                if function is None or _least(b) < 1:
                    return None
            if _least(a) < 0 or _least(b) < 0:
                return None
        left = a if isinstance(a, list) else repeat(a)
        right = b if isinstance(b, list) else repeat(b)
        made = list(map(function, left, right))
        limit = 2 if bits == 1 else 1 << (bits - 1)
        return made if -limit <= min(made) and max(made) < limit else None

    def where(self, row: Row) -> Mask:
        """The threads in which a truth value holds."""
        if isinstance(row, int):
            return self.all if row else 0
        return int("".join(["1" if v else "0" for v in reversed(row)]), 2)


def _least(row: Row) -> int:
    return row if isinstance(row, int) else min(row)


def _level(row: Row) -> Row:
    """One int where all threads have the same."""
    if isinstance(row, int):
        return row
    first = row[0]
    return first if row.count(first) == len(row) else row


@lru_cache(4096)
def members(mask: Mask) -> tuple[int, ...]:
    """The numbers of the threads in a mask, ascending."""
    return tuple([number for number, digit in enumerate(reversed(bin(mask)[2:])) if digit == "1"])


def warps(mask: Mask) -> list[int]:
    """The numbers of the warps that have threads in a mask."""
    found = []
    number = 0
    while mask:
        if mask & 0xFFFFFFFF:
            found.append(number)
        mask >>= WARP
        number += 1
    return found


def whole_warps(mask: Mask, block: Mask) -> Mask:
    """The mask with every warp that it touches taken whole (as far as the block has it)."""
    result = 0
    for number in warps(mask):
        result |= 0xFFFFFFFF << (WARP * number)
    return result & block


def whole_warpgroups(mask: Mask) -> list[Mask]:
    """The warpgroups that have threads in a mask, each as all of its threads, whether a block has them or not."""
    whole = (1 << WARPGROUP) - 1
    numbers = range(-(-mask.bit_length() // WARPGROUP))
    return [whole << WARPGROUP * n for n in numbers if mask >> WARPGROUP * n & whole]


def range_text(mask: Mask) -> str:
    """``warp 0``, ``warps 1 to 4``, ``thread 32``, ``threads 0 to 15``, ``lane 0 of warps 0 to 3``: for messages."""
    threads = members(mask)
    if not threads:
        return "no thread"
    first, last = threads[0], threads[-1]
    contiguous = last - first + 1 == len(threads)
    if len(threads) == 1:
        return f"thread {first}"
    if contiguous and first % WARP == 0 and (last + 1) % WARP == 0:
        a, b = first // WARP, last // WARP
        return f"warp {a}" if a == b else f"warps {a} to {b}"
    if contiguous:
        return f"threads {first} to {last}"
    lanes = sorted({thread % WARP for thread in threads})
    warps = sorted({thread // WARP for thread in threads})
    if len(lanes) * len(warps) == len(threads) and all(one[-1] - one[0] + 1 == len(one) for one in (lanes, warps)):
        which = f"lane {lanes[0]}" if len(lanes) == 1 else f"lanes {lanes[0]} to {lanes[-1]}"
        return f"{which} of warps {warps[0]} to {warps[-1]}"
    return f"{len(threads)} of threads {first} to {last}"
