"""Which registers decide what a loop does: where it goes on, and what it does to memory. Others only count along.

Of all blocks that lie with a block on a way back to it (its strongly connected component): what branches, accesses to
memory, host instructions and collectives read, and what that is computed from. If none of these registers has changed
from one time to the next, and no memory that the loop reads, it goes round in the same way for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Flow = list[tuple[list[str], list[str]]]  # of a block's instructions what each reads and writes

# Instructions with a destination whose other operands decide, too: they say which memory it is.
ACCESSES = frozenset(("ld", "ldu", "atom"))


class Deciding:
    """flows: of each block; roots: of each block the registers that its instructions other than arithmetic read."""

    def __init__(
        self, flows: Sequence[Flow], roots: Sequence[Iterable[str]], successors: Sequence[Sequence[int]]
    ) -> None:
        self._flows = flows
        self._roots = roots
        self._successors = successors
        self._predecessors: list[list[int]] = [[] for _ in successors]
        for number, targets in enumerate(successors):
            for target in targets:
                self._predecessors[target].append(number)
        self._known: dict[int, frozenset[str] | None] = {}

    def of(self, block: int) -> frozenset[str] | None:
        """None of a block to which there is no way back."""
        if block not in self._known:
            loop = self.loop(block)
            found = self._closure(loop) if loop else None
            self._known.update(dict.fromkeys(loop or (block,), found))
        return self._known[block]

    def loop(self, block: int) -> set[int]:
        """The blocks that lie with a block on a way back to it; none if there is no such way."""
        return _reached(block, self._successors) & _reached(block, self._predecessors)

    def _closure(self, loop: set[int]) -> frozenset[str]:
        sources: dict[str, set[str]] = {}
        for block in loop:
            for reads, writes in self._flows[block]:
                for name in writes:
                    sources.setdefault(name, set()).update(reads)
        found: set[str] = set()
        work = [name for block in loop for name in self._roots[block]]
        while work:
            name = work.pop()
            if name not in found:
                found.add(name)
                work += sources.get(name, ())
        return frozenset(found)


def _reached(block: int, edges: Sequence[Sequence[int]]) -> set[int]:
    """By one edge or more."""
    found: set[int] = set()
    work = [*edges[block]]
    while work:
        at = work.pop()
        if at not in found:
            found.add(at)
            work += edges[at]
    return found
