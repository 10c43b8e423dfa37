"""Accesses of repeated turns to global memory, whose addresses go on from turn to turn.

Those that come to memory where nothing can be in their way need no clocks: reads where nobody else has written, writes
where nobody else has done anything. Until the times of their actors are worked out, what is kept of them is a number
that says which access of the turns it was, below zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.races.accesses import LOAD, Piece
from ptxdsl.races.actors import Actor
from ptxdsl.races.shadow import Cells
from ptxdsl.races.tape import Counters, Shift
from ptxdsl.races.trace_actors import Access
from ptxdsl.races.trace_memory import grain_of, of_places

Array = npt.NDArray[Any]

_MOST = (1 << 31) - 1
_NOBODY = -1  # work that is not in order may be in the way of the same actor's


class Fresh:
    """trail: the accesses of one turn. counters: of their times."""

    def __init__(self, trail: list[Access], counters: Counters) -> None:
        self._trail = trail
        self._times = np.array([time for _, time, _ in trail], np.int64)
        components = [counters.component(actor.domain.number) + actor.component for actor, _, _ in trail]
        self._counters = np.array(components, np.int64)
        self._next = 0  # number of the next access, over all turns
        self._bytes: dict[Cells, tuple[int, int]] = {}  # from where to where there are such accesses

    def take(self, pieces: list[Piece[Cells]]) -> bool:
        """Whether these, the next accesses, are such; if so, they are noted."""
        found = []
        for number, piece in enumerate(pieces, self._next):
            actor, _, sites = self._trail[number % len(self._trail)]
            cells = piece.cells
            shift = cells.shift
            places = cells.index(piece.starts, piece.size, grain_of(piece))
            assert isinstance(places, slice | np.ndarray)
            if number > _MOST or cells.shift != shift or not _alone(actor, cells, places, sites, piece.kind):
                return False
            found.append((actor.number, piece, places, of_places(sites, places)))
        for note in found:
            self._note(*note)
        return True

    def _note(self, number: int, piece: Piece[Cells], places: slice | Array, sites: int | Array) -> None:
        cells, starts, mark = piece.cells, piece.starts, ~self._next
        self._next += 1
        if piece.kind == LOAD:
            row = cells.row(number)
            cells.reader[row, places] = number
            cells.read[row, places] = mark
            cells.read_site[row, places] = sites
        else:
            if cells.rows:
                cells.read[: len(cells.rows), places] = 0
            cells.writes.put(places, number, mark, sites)
            cells.written = True
        low, high = (starts, starts) if isinstance(starts, int) else (int(starts.min()), int(starts.max()))
        before = self._bytes.get(cells)
        if before is None:
            self._bytes[cells] = low, high + piece.size
        elif low < before[0] or high + piece.size > before[1]:
            self._bytes[cells] = min(low, before[0]), max(high + piece.size, before[1])

    def settle(self, shift: Shift) -> None:
        """Gives all that were noted their times. The turn that the trail is of came before those noted."""
        turns, which = np.divmod(np.arange(self._next), len(self._times))
        known = shift.after(self._counters[which], self._times[which], turns + 1)
        for cells, (low, high) in self._bytes.items():
            places = slice(low >> cells.shift, -(-high >> cells.shift))
            writes = cells.writes
            kept = [writes.time, writes.earlier] if cells.written else []
            for times in (*kept, *cells.read[: len(cells.rows)]):
                some = times[places]
                marked = some < 0
                some[marked] = known[~some[marked]]


def _alone(actor: Actor, cells: Cells, places: slice | Array, sites: int | Array, kind: int) -> bool:
    """Whether nobody else has written there, and if it is no read, has read."""
    number = actor.number if actor.in_order else _NOBODY
    if kind != LOAD:
        strong = cells.strong.item(sites) if isinstance(sites, int) else bool(cells.strong[sites].any())
        if strong or cells.strong_writes is not None:
            return False
        rows = slice(len(cells.rows))
        if cells.rows and not _by(number, cells.read[rows, places], cells.reader[rows, places]):
            return False
    if not cells.written:
        return True
    if cells.strong_writes is not None:
        return False
    return _by(number, cells.writes.time[places], cells.writes.who[places])


def _by(number: int, times: Array, who: Array) -> bool:
    """Whether these are accesses of one actor alone, if of any."""
    return not np.count_nonzero(times) or not np.count_nonzero((who != number) & (times != 0))
