"""Turns whose accesses are ranges of bytes: the lanes of each touch neighbours, or all the same.

Most are. They are read off the log's words one by one, which for a handful takes less than NumPy's first step.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from ptxdsl.races.accesses import CLUSTER, GLOBAL, LOCAL, SHARED, Piece, Spaces
from ptxdsl.sim.layout import ACCESS, CHUNK, RANK_SHIFT, ROW, offset
from ptxdsl.sim.machine.cta import Cta

T = TypeVar("T")

_WORDS = ACCESS.itemsize // 8
_FORM = 8 * (offset(ACCESS, "form") % 8)
_MOST = 64  # records; more are quicker by arrays
_MOST_KNOWN = 1 << 12
_OFFSET = (1 << RANK_SHIFT) - 1


class Ranges(Generic[T]):
    """apart: by site, whether its records mean more than an access."""

    def __init__(self, spaces: Spaces[T], apart: list[bool]) -> None:
        self.spaces = spaces
        self.apart = apart
        self._known: dict[Cta, dict[tuple[int, int, int], Piece[T]]] = {}  # of shared memory
        self._shared_alone: set[tuple[int, int]] = set()  # turns with no other memory, by the first site and how many
        self._turns: dict[Cta, dict[bytes, list[Piece[T]]]] = {}  # of such

    def forget(self, cta: Cta) -> None:
        for other in cta.cluster.ctas:
            self._known.pop(other, None)
            self._turns.pop(other, None)

    def pieces(self, cta: Cta, words: memoryview, count: int) -> list[Piece[T]] | None:
        """Of so many records of lanes that run together, as ``Spaces.pieces`` has them; None where some is no range."""
        begins = words[1], count
        if begins not in self._shared_alone:
            return self._pieces(cta, words, count)
        turns = self._turns.get(cta)
        if turns is None:
            turns = self._turns[cta] = {}
        text = words[: count * _WORDS].tobytes()
        pieces = turns.get(text)
        if pieces is None:
            pieces = self._pieces(cta, words, count)
            if pieces is not None and begins in self._shared_alone:
                if len(turns) >= _MOST_KNOWN:
                    turns.clear()
                turns[text] = pieces
        return pieces

    def _pieces(self, cta: Cta, words: memoryview, count: int) -> list[Piece[T]] | None:
        ranges = self._ranges(words, count)
        if ranges is None:
            return None
        known = self._known.get(cta)
        if known is None:
            known = self._known[cta] = {}
        pieces = []
        alone = True
        for order, start, end, how in ranges:
            if order >> 16 & 0xFF == GLOBAL:
                alone = False
                region = self.spaces.memory.region(start)
                if region is None or end > region.end:
                    return None
                if region.writable:
                    cells = self.spaces.region(region)
                    pieces.append(Piece(cells, start - region.start, end - start, how & 0xFFFFFFFF, how >> 48))
                continue
            piece = known.get((start, end, how))
            if piece is None:
                piece = self._shared(cta, start, end, how)
                if piece is None:
                    return None
                if len(known) >= _MOST_KNOWN:
                    known.clear()
                known[start, end, how] = piece
            pieces.append(piece)
        (self._shared_alone.add if alone else self._shared_alone.discard)((words[1], count))
        return pieces

    def _ranges(self, words: memoryview, count: int) -> list[list[int]] | None:
        """What to go by (loads first, as there), where they start and end, and the words of the site."""
        if count > _MOST:
            return None
        lanes = words[2] >> 32
        found: list[list[int]] = []
        last: dict[int, list[int]] = {}  # of each site
        for at in range(0, count * _WORDS, _WORDS):
            how, who = words[at + 1], words[at + 2]
            space, form = who & 0xFF, who >> _FORM & 0xFF
            if not form or who >> 32 != lanes or self.apart[how & 0xFFFFFFFF]:
                return None
            if space == LOCAL:
                continue
            if space not in (GLOBAL, SHARED, CLUSTER):
                return None
            start, size = words[at + 3], how >> 32 & 0xFFFF
            end = start + (CHUNK * size if form == ROW else size)
            before = last.get(how)
            if before is not None and before[1] <= start <= before[2]:
                before[2] = max(before[2], end)
            else:
                last[how] = made = [(how >> 48) << 24 | space << 16 | size, start, end, how]
                found.append(made)
        if len(found) > 1:
            found.sort(key=_order)
        return found

    def _shared(self, cta: Cta, start: int, end: int, how: int) -> Piece[T] | None:
        ctas, rank, first = cta.cluster.ctas, start >> RANK_SHIFT, start & _OFFSET
        if rank >= len(ctas) or first + end - start > len(ctas[rank].window):
            return None
        return Piece(self.spaces.shared(ctas[rank]), first, end - start, how & 0xFFFFFFFF, how >> 48)


def _order(range: list[int]) -> int:
    return range[0]
