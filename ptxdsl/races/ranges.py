"""Turns whose accesses are ranges of bytes: the lanes of each, neighbours themselves, touch neighbours or all the same.

Most are. They are read off the log's words one by one, which for a handful takes less than NumPy's first step.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ptxdsl.races.accesses import CLUSTER, FENCE, GLOBAL, LOCAL, SHARED, Piece, Spaces
from ptxdsl.record import dataclass
from ptxdsl.sim.layout import ACCESS, CHUNK, RANK_SHIFT, ROW, offset
from ptxdsl.sim.machine.cta import Cta
from ptxdsl.sim.machine.memory import Region

T = TypeVar("T")

_WORDS = ACCESS.itemsize // 8
_FORM = 8 * (offset(ACCESS, "form") % 8)
_MASK = 8 * (offset(ACCESS, "mask") % 8)
_MOST = 64  # records; more are quicker by arrays
_MOST_KNOWN = 1 << 12
_ADDRESSES = offset(ACCESS, "addresses") // 8
_OFFSET = (1 << RANK_SHIFT) - 1

Shared = dict[tuple[int, int, int], Piece[T]]  # shared memory by where it begins and ends and the word of the site


@dataclass(slots=True, eq=False)
class Part(Generic[T]):
    """A range of a turn. how: its site's word. piece: None where nobody can write; region: None of shared memory."""

    piece: Piece[T] | None
    region: Region | None
    start: int
    end: int
    how: int

    def moved(self, by: int, known: Shared[T]) -> Part[T] | None:
        """The same so many bytes further on, if that is known to be in one piece."""
        start, end, region, piece = self.start + by, self.end + by, self.region, self.piece
        if region is None:
            piece = known.get((start, end, self.how))
            return None if piece is None else Part(piece, None, start, end, self.how)
        if start < region.start or end > region.end:
            return None
        if piece is not None:
            piece = Piece(piece.cells, start - region.start, piece.size, piece.sites, piece.kind)
        return Part(piece, region, start, end, self.how)


@dataclass(slots=True, eq=False)
class Shape(Generic[T]):
    """A turn whose ranges come again elsewhere. words: of its records. of: of each word 0, or the number of the range
    whose address it is; first: of each such number one of its words, and of 0 one that is alike. idle: the words of
    lanes that access nothing, if there are any."""

    words: npt.NDArray[Any]
    of: npt.NDArray[Any]
    first: npt.NDArray[Any]
    idle: npt.NDArray[np.bool_] | None
    parts: list[Part[T]]

    def pieces(self, words: memoryview, count: int, known: Shared[T]) -> list[Piece[T]] | None:
        """Of records that are the same but for the addresses of ranges."""
        apart = np.frombuffer(words, np.int64, count * _WORDS) - self.words
        by = apart[self.first]
        alike = apart == by[self.of]
        if not (alike if self.idle is None else alike | self.idle).all():
            return None
        kept, *moves = by.tolist()
        if kept:
            return None
        pieces = []
        for part, move in zip(self.parts, moves, strict=True):
            there = part.moved(move, known) if move else part
            if there is None:
                return None
            if there.piece is not None:
                pieces.append(there.piece)
        return pieces


class Ranges(Generic[T]):
    """apart: by site, whether its records mean more than an access."""

    def __init__(self, spaces: Spaces[T], apart: list[bool]) -> None:
        self.spaces = spaces
        self.apart = apart
        self._known: dict[Cta, Shared[T]] = {}
        self._shared_alone: set[tuple[int, int]] = set()  # turns with no other memory, by the first site and how many
        self._turns: dict[Cta, dict[bytes, list[Piece[T]]]] = {}  # of such
        self._shapes: dict[Cta, dict[tuple[int, int, int], Shape[T]]] = {}  # of others, by the warp besides

    def forget(self, cta: Cta) -> None:
        for other in cta.cluster.ctas:
            self._known.pop(other, None)
            self._turns.pop(other, None)
            self._shapes.pop(other, None)

    def pieces(self, cta: Cta, words: memoryview, count: int) -> list[Piece[T]] | None:
        """Of so many records of lanes that run together, as ``Spaces.pieces`` has them; None where some is no range."""
        begins = words[1], count
        if begins not in self._shared_alone:
            shape = self._shapes.setdefault(cta, {}).get((words[0], *begins))
            pieces = shape.pieces(words, count, self._known[cta]) if shape is not None else None
            return pieces if pieces is not None else self._pieces(cta, words, count)
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
        found = self._ranges(words, count)
        if found is None:
            return None
        ranges, records = found
        known = self._known.get(cta)
        if known is None:
            known = self._known[cta] = {}
        parts = [self._part(cta, known, *range) for range in ranges]
        if not all(parts):
            return None
        begins = words[1], count
        if all(part.region is None for part in parts if part is not None):
            self._shared_alone.add(begins)
        else:
            self._shared_alone.discard(begins)
            first, of = [1], np.zeros(count * _WORDS, np.intp)
            for number, range in enumerate(ranges, 1):
                places = [_WORDS * at + _ADDRESSES for at, its in enumerate(records) if its is range]
                lane = _lowest(words[places[0] - 1] >> _MASK & 0xFF)
                first.append(places[0] + lane)
                for place in places:
                    of[place : place + CHUNK] = number
            same = np.frombuffer(words, np.int64, count * _WORDS).copy()
            shapes = self._shapes.setdefault(cta, {})
            if len(shapes) >= _MOST_KNOWN:
                shapes.clear()
            shapes[words[0], words[1], count] = Shape(
                same, of, np.array(first), idle_lanes(same), [part for part in parts if part]
            )
        return [part.piece for part in parts if part is not None and part.piece is not None]

    def _part(self, cta: Cta, known: Shared[T], order: int, start: int, end: int, how: int) -> Part[T] | None:
        if order >> 16 & 0xFF == GLOBAL:
            region = self.spaces.memory.region(start)
            if region is None or end > region.end:
                return None
            piece = None
            if region.writable:
                cells = self.spaces.region(region)
                piece = Piece(cells, start - region.start, end - start, how & 0xFFFFFFFF, how >> 48)
            return Part(piece, region, start, end, how)
        piece = known.get((start, end, how))
        if piece is None:
            piece = self._shared(cta, start, end, how)
            if piece is None:
                return None
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[start, end, how] = piece
        return Part(piece, None, start, end, how)

    def _ranges(self, words: memoryview, count: int) -> tuple[list[list[int]], list[list[int]]] | None:
        """What to go by (loads first, as there), where they start and end, and the words of the site; and of each
        record its range, of local memory none."""
        if count > _MOST:
            return None
        lanes = words[2] >> 32
        found: list[list[int]] = []
        records: list[list[int]] = []
        last: dict[int, list[int]] = {}  # of each site
        for at in range(0, count * _WORDS, _WORDS):
            how, who = words[at + 1], words[at + 2]
            space, form = who & 0xFF, who >> _FORM & 0xFF
            if who >> 32 != lanes or self.apart[how & 0xFFFFFFFF] or how >> 48 >= FENCE:
                return None
            if space == LOCAL:
                records.append([])
                continue
            if space not in (GLOBAL, SHARED, CLUSTER):
                return None
            start, size = words[at + _ADDRESSES], how >> 32 & 0xFFFF
            if form:
                end = start + (CHUNK * size if form == ROW else size)
            else:
                bounds = _of_some(words[at + _ADDRESSES : at + _ADDRESSES + CHUNK], who >> _MASK & 0xFF, size)
                if bounds is None:
                    return None
                start, end = bounds
            before = last.get(how)
            if before is not None and before[1] <= start <= before[2]:
                before[2] = max(before[2], end)
            else:
                last[how] = before = [(how >> 48) << 24 | space << 16 | size, start, end, how]
                found.append(before)
            records.append(before)
        if len(found) > 1:
            found.sort(key=_order)
        return found, records

    def _shared(self, cta: Cta, start: int, end: int, how: int) -> Piece[T] | None:
        ctas, rank, first = cta.cluster.ctas, start >> RANK_SHIFT, start & _OFFSET
        if rank >= len(ctas) or first + end - start > len(ctas[rank].window):
            return None
        return Piece(self.spaces.shared(ctas[rank]), first, end - start, how & 0xFFFFFFFF, how >> 48)


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _of_some(addresses: memoryview, mask: int, size: int) -> tuple[int, int] | None:
    """The range of the lanes of a mask, if it is one."""
    first = _lowest(mask)
    run = mask >> first
    if run & run + 1:
        return None
    start, count = addresses[first], run.bit_length()
    its = [addresses[first + lane] - start for lane in range(count)]
    if not any(its):
        return start, start + size
    return (start, start + count * size) if its == [lane * size for lane in range(count)] else None


def idle_lanes(words: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
    """Of records which words are addresses of lanes that access nothing; None if there are none."""
    masks = (words[2::_WORDS] >> words.dtype.type(_MASK) & words.dtype.type(0xFF)).astype(np.uint8)
    if (masks == 0xFF).all():
        return None
    idle = np.zeros((len(masks), _WORDS), bool)
    idle[:, _ADDRESSES:] = np.unpackbits(~masks, bitorder="little").reshape(-1, CHUNK)
    return idle.reshape(-1)


def _order(range: list[int]) -> int:
    return range[0]
