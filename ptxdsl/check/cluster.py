"""Blocks of a cluster that stand for one another: where they are, seen from each of them.

All of them do the same, each as seen from its own place. So one block is followed, and what is said of events is said
as it sees them: an event has a bit for every place that the block which makes it may be at, and the bit for place 0 is
the block's own. Going from block to block gives the bits other places; places are ranks that are combined by ``xor``
or, in cyclic clusters, by addition, so that every block is seen from every other one at one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxdsl.hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptxdsl.check.parts import Touch


class Blocks:
    """count: of the blocks that one stands for; 1: each is followed by itself. cyclic: ranks are added, not xored (for
    that count must be a power of two)."""

    def __init__(self, count: int = 1, *, cyclic: bool = False) -> None:
        self.count = count
        self.cyclic = cyclic
        self.ones = (1 << count) - 1
        self._seen: list[dict[int, int]] = [{} for _ in range(count)]
        self._moves: list[dict[int, int]] = []  # by place: the places that get nearer by so many bits, as bits
        for place in range(count):
            moves: dict[int, int] = {}
            for other in range(count):
                by = self.place(place, other) - other
                moves[by] = moves.get(by, 0) | 1 << other
            self._moves.append(moves)
        self._width = 0
        self._repeated = 0

    def place(self, block: int, other: int) -> int:
        """Where another block is, seen from a block (both as ranks, or both as seen from a third)."""
        return (other - block) % self.count if self.cyclic else other ^ block

    def rank(self, block: int, place: int) -> int:
        """The block that is at a place, seen from a block."""
        return (block + place) % self.count if self.cyclic else block ^ place

    def back(self, place: int) -> int:
        """Where a block is, seen from the one that it sees at a place."""
        return self.place(place, 0)

    def everywhere(self, bits: int) -> int:
        """A block's own events, in all blocks."""
        return bits * self.ones

    def seen_from(self, place: int, bits: int) -> int:
        """Events (or agents) that a block knows, as the block at a place sees them."""
        if not place or not bits:
            return bits
        known = self._seen[place]
        found = known.get(bits)
        if found is None:
            if bits.bit_length() > self._width:
                self._width = -(-2 * bits.bit_length() // self.count) * self.count
                self._repeated = ((1 << self._width) - 1) // self.ones
            found = 0
            for by, places in self._moves[place].items():
                some = bits & places * self._repeated
                found |= some << by if by >= 0 else some >> -by
            known[bits] = found
        return found

    def by_any(self, bits: int) -> int:
        """What is known where all blocks tell each other what they know."""
        found = bits
        for place in range(1, self.count):
            found |= self.seen_from(place, bits)
        return found


def ways(count: int) -> Iterator[Blocks]:
    """In which ways the blocks of a cluster may see one another."""
    if count > 1 and not count & (count - 1):
        yield Blocks(count)
    if count > 2:
        yield Blocks(count, cyclic=True)


class Apart(Exception):
    """The blocks of a cluster do not all do the same: each is to be followed by itself."""


def same_everywhere(blocks: Blocks, a: Touch, b: Touch, there: int, relation: Callable[[Touch, Touch], Any]) -> Any:
    """How a block's touch is related to that of the block at a place. Raises Apart where that differs."""
    found = relation(a, b.of(there))
    if a.elsewhere or b.elsewhere:
        for rank in range(1, blocks.count):
            if relation(a.of(rank), b.of(blocks.rank(rank, there))) != found:
                raise Apart
    return found
