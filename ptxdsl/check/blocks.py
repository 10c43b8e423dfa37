"""The shape of the blocks that a kernel is proved for, where the kernel does not say it."""

from __future__ import annotations

from ptxdsl.check.threads import WARP, Block
from ptxdsl.effects import Kind
from ptxdsl.protocol.expressions import Expr, leaves
from ptxdsl.protocol.model import Branch, Kernel, Op, expressions_of

Shape = tuple[int, int, int]

_LARGEST = 1024
_MORE = 128
_MOST_TRIED = 4
_FLAT = ((32, 1, 1), (256, 1, 1), (128, 1, 1), (512, 1, 1), (1024, 1, 1))
_SQUARE = ((16, 16, 1), (32, 8, 1), (32, 32, 1), (8, 8, 1))


def shapes(kernel: Kernel) -> tuple[list[Shape], bool]:
    """Shapes to prove a kernel for, and whether they are a guess.

    A guess is a row of as many threads as operations of the kernel say. Without them it starts from the branches on
    thread ids: a block has at least one warp in the last of its roles. After that are tried those without it, for
    threads between the others may be meant by the last `else`; as many threads more as some barrier counts arrivals;
    and a larger block. Where there are no roles, usual shapes are tried.
    """
    if kernel.threads is not None:
        return [kernel.threads], False
    if kernel.hint is not None:
        return [kernel.hint], False
    if kernel.thread_count is not None:
        return [(kernel.thread_count, 1, 1)], True
    base = 0
    counts: set[int] = set()
    block = Block((_LARGEST, 1, 1))
    for node in kernel.nodes:
        if isinstance(node, Branch):
            base = max(base, _last_change(block, node.condition))
        elif isinstance(node, Op) and node.kind is Kind.BAR_INIT and node.count is not None:
            counts |= {node.count.value} if node.count.op == "const" else set()
    if not base and not counts:
        return list(_FLAT if _dimensions(kernel) == 1 else _SQUARE), True
    first = -(-(base + 1) // WARP) * WARP
    sizes = [first, base, *(base + count for count in sorted(counts)), first + _MORE]
    tried = [size for size in dict.fromkeys(sizes) if size % WARP == 0 and 0 < size <= _LARGEST]
    return [(size, 1, 1) for size in tried[:_MOST_TRIED]], True


def _dimensions(kernel: Kernel) -> int:
    """In how many a kernel looks at the numbers of its threads."""
    seen = {e for node in kernel.nodes for expr in expressions_of(node) for e in leaves(expr)}
    return 1 + max((e.value for e in seen if e.op == "tid" and e.value < 3), default=0)


def _last_change(block: Block, condition: Expr) -> int:
    """The last thread at which a condition of thread ids changes, if it changes at few."""
    row = block.row(condition)
    if row is None or isinstance(row, int):
        return 0
    changes = [t for t in range(1, len(row)) if row[t] != row[t - 1]]
    return changes[-1] if len(changes) <= 2 else 0
