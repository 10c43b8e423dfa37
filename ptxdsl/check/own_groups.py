"""Groups of copies of which each thread waits for its own: bulk stores and cp.async.

Such a wait holds nobody else up, so that it parts no threads; but an agent has one list of groups for all of its
threads. That is right where those who start a copy all come to the same commits, and to every wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.check.threads import Block, Mask, members
from ptxdsl.effects import Kind
from ptxdsl.protocol.model import Branch, Loop, Node, Op, Seq

MECHANISMS = frozenset({"bulk-group", "cp-async-group"})
_MAKE = frozenset({Kind.ASYNC_COPY, Kind.COMMIT})


def parted(program: Node, mask: Mask, block: Block) -> list[Mask] | None:
    """The threads of a mask by what they do with groups, where one list does not do for all; None where it does."""
    found: dict[str, list[tuple[Op, Mask]]] = {}
    for op, threads in _operations(program, mask, block):
        found.setdefault(op.what.completes_on or "", []).append((op, threads))
    for done in found.values():
        makers = 0
        for op, threads in done:
            makers |= threads if op.kind in _MAKE else 0
        for op, threads in done:
            if makers & ~threads and op.kind is not Kind.ASYNC_COPY:
                return _by_sets(mask, [threads for _, threads in done])
    return None


def _operations(node: Node, mask: Mask, block: Block) -> Iterator[tuple[Op, Mask]]:
    """What works on such groups, with the threads that may come to it."""
    if isinstance(node, Seq):
        for inner in node.nodes:
            yield from _operations(inner, mask, block)
    elif isinstance(node, Loop):
        yield from _operations(node.body, mask, block)
    elif isinstance(node, Branch):
        held = block.holds(node.condition)
        taken = mask if held is None else mask & held
        if taken:
            yield from _operations(node.then, taken, block)
        rest = mask if held is None else mask & ~held
        if rest:
            yield from _operations(node.orelse, rest, block)
    elif isinstance(node, Op) and node.what.completes_on in MECHANISMS:
        yield node, mask & block.leaders if node.elected else mask


def _by_sets(mask: Mask, sets: list[Mask]) -> list[Mask]:
    groups: dict[tuple[int, ...], Mask] = {}
    for t in members(mask):
        key = tuple([one >> t & 1 for one in sets])
        groups[key] = groups.get(key, 0) | 1 << t
    return list(groups.values())
