"""Shadow memory: of every piece of memory who wrote it last, and who has read it since.

A cell stands for 2^shift bytes: as many as the widest access that all accesses to the memory so far are multiples of,
four at first. All cells of an access are looked at with a handful of NumPy operations. Two accesses conflict if one of
them writes, they touch the same cell, and the earlier one's epoch is not known to the later one's actor.

Of a cell's readers each actor's last access is kept; in global memory, that many read, only that of one actor in each
class of component numbers modulo ``_READERS``: a reader that is forgotten can hide a race, none is invented.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.races.clocks import GENERIC, MOST_COMPONENTS, SHIFT
from ptxdsl.record import dataclass

if TYPE_CHECKING:
    from ptxdsl.races.actors import Actor

Array = npt.NDArray[Any]
Index = Any  # a slice, or an array of cell numbers

_READERS = 4
_COMPONENT = MOST_COMPONENTS - 1


@dataclass(slots=True)
class Before:
    """An earlier access that is not known to whoever accesses the cell now. actor: its number. cell: one of them.

    read: whether it read. fenced: whether the generic proxy knows of it, and only the proxy that accesses now does not.
    first: of a write, who wrote the cell before that, and when.
    """

    actor: int
    time: int
    site: int
    cell: int
    site_now: int
    read: bool
    fenced: bool
    first: tuple[int, int] = (0, 0)


class Writes:
    """Of each cell the last write: the actor's number, its time (0: none), the instruction's site."""

    __slots__ = ("site", "time", "who")

    def __init__(self, count: int) -> None:
        self.who: Array = np.zeros(count, np.uint32)
        self.time: Array = np.zeros(count, np.int32)
        self.site: Array = np.zeros(count, np.int32)

    def put(self, cells: Index, actor: Actor, site: int | Array) -> None:
        self.who[cells] = actor.number
        self.time[cells] = actor.time
        self.site[cells] = site


class Cells:
    """One piece of memory of ``size`` bytes. own: it is a cluster's own, no other's actors come to it.

    strong: by site, whether its instruction is an atomic or another strong operation: two of them are no race.
    """

    def __init__(self, size: int, own: bool, strong: npt.NDArray[np.bool_]) -> None:
        self.size = size
        self.own = own
        self.strong = strong
        self.shift = 2
        count = (size + 3) >> 2
        self.writes = Writes(count)
        self.strong_writes: Writes | None = None  # kept apart: they are no race among themselves
        self.objects: Array | None = None  # whether the cell is part of a live mbarrier
        self.writer_before = np.zeros(count, np.uint32)
        self.written_before = np.zeros(count, np.int32)
        self.rows: dict[int, int] = {}  # of readers, by component
        self.reader = np.zeros((0, count), np.uint32)
        self.read = np.zeros((0, count), np.int32)
        self.read_site = np.zeros((0, count), np.int32)

    # Where

    def index(self, starts: int | Array, size: int) -> Index:
        """The cells of [start, start + size)."""
        if isinstance(starts, int):
            if self.shift and (starts | size) & ((1 << self.shift) - 1):
                self._refine(starts | size)
            return slice(starts >> self.shift, (starts + size) >> self.shift)
        if self.shift:
            bits = int(np.bitwise_or.reduce(starts)) | size
            if bits & ((1 << self.shift) - 1):
                self._refine(bits)
        cells = starts >> self.shift
        width = size >> self.shift
        if width > 1:
            cells = (cells[:, None] + np.arange(width)).reshape(-1)
        return cells

    def byte(self, cell: int) -> int:
        """The first one of a cell."""
        return cell << self.shift

    def _refine(self, bits: int) -> None:
        """Smaller cells, such that addresses with these bits set are multiples of them."""
        shift = min((bits & -bits).bit_length() - 1, self.shift)
        factor = 1 << self.shift - shift
        for name in ("writer_before", "written_before", "reader", "read", "read_site"):
            setattr(self, name, np.repeat(getattr(self, name), factor, axis=-1))
        if self.objects is not None:
            self.objects = np.repeat(self.objects, factor)
        for writes in (self.writes, self.strong_writes):
            if writes is not None:
                writes.who, writes.time, writes.site = (
                    np.repeat(array, factor) for array in (writes.who, writes.time, writes.site)
                )
        self.shift = shift

    def mark(self, cells: Index, live: bool) -> None:
        """An mbarrier begins or ends its life there."""
        if self.objects is None:
            self.objects = np.zeros(len(self.writes.time), bool)
        self.objects[cells] = live

    # What is known

    def _known(self, actor: Actor, row: int, who: Array, times: Array) -> Array:
        """Whether the actor knows of epochs. Time 0 is none."""
        times_known = actor.clock.own[row]
        components = who & _COMPONENT
        if self.own:
            known: Array = times_known[components] >= times
            return known
        domains = who >> SHIFT
        inside = domains == actor.domain.number
        known = np.where(inside, times_known[np.where(inside, components, 0)] >= times, times == 0)
        for domain, foreign in (actor.clock.foreign or {}).items():
            theirs = domains == domain
            if theirs.any():
                near = theirs & (components < foreign.shape[1])
                known |= near & (foreign[row][np.where(near, components, 0)] >= times)
        return known

    # Accesses

    def access_read(self, actor: Actor, row: int, cells: Index, site: int | Array) -> list[Before]:
        """site: of the instruction, or of each cell's."""
        actor.clock.fit(actor.domain.capacity)
        found = self._conflicts_with_writes(actor, row, cells, site, self.strong[site])
        r = self._row(actor)
        self.reader[r, cells] = actor.number
        self.read[r, cells] = actor.time
        self.read_site[r, cells] = site
        return found

    def access_write(self, actor: Actor, row: int, cells: Index, site: int | Array) -> list[Before]:
        strong = self.strong[site]
        some = strong.any()
        if some and not strong.all():
            assert isinstance(site, np.ndarray)
            if isinstance(cells, slice):
                cells = np.arange(cells.start, cells.stop)
            found = self.access_write(actor, row, cells[~strong], site[~strong])
            return found + self.access_write(actor, row, cells[strong], site[strong])
        actor.clock.fit(actor.domain.capacity)
        found = self._conflicts_with_writes(actor, row, cells, site, strong)
        if self.rows:
            found += self._conflicts_with_reads(actor, row, cells, site)
            self.read[:, cells] = 0
        if some:
            if self.strong_writes is None:
                self.strong_writes = Writes(len(self.writes.time))
            self.strong_writes.put(cells, actor, site)
            return found
        self.writer_before[cells] = self.writes.who[cells]
        self.written_before[cells] = self.writes.time[cells]
        self.writes.put(cells, actor, site)
        return found

    def unknown_to(self, known: Array) -> list[tuple[int, int]]:
        """The actors (their numbers) and sites of accesses, still remembered, that a row of a clock does not know."""
        found: set[tuple[int, int]] = set()
        tables: list[tuple[Array, Array, Array]] = [(self.reader, self.read, self.read_site)]
        tables += [(w.who, w.time, w.site) for w in (self.writes, self.strong_writes) if w is not None]
        for who, times, sites in tables:
            bad = known[who & _COMPONENT] < times
            if bad.any():
                found.update(zip(who[bad].tolist(), sites[bad].tolist(), strict=True))
        return sorted(found)

    def _row(self, actor: Actor) -> int:
        key = actor.component if self.own else actor.component % _READERS
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = len(self.rows)
            if row == len(self.reader):
                more = max(2, row) if self.own else _READERS
                for name in ("reader", "read", "read_site"):
                    have: Array = getattr(self, name)
                    grown = np.zeros((row + more, have.shape[1]), have.dtype)
                    grown[:row] = have
                    setattr(self, name, grown)
        return row

    def _conflicts_with_writes(
        self, actor: Actor, row: int, cells: Index, site: int | Array, strong: Array
    ) -> list[Before]:
        found = self._conflicts_with(self.writes, actor, row, cells, site)
        if self.strong_writes is not None and not strong.all():
            found += self._conflicts_with(self.strong_writes, actor, row, cells, site)
        return found

    def _conflicts_with(self, writes: Writes, actor: Actor, row: int, cells: Index, site: int | Array) -> list[Before]:
        times = writes.time[cells]
        if not times.any():
            return []
        who = writes.who[cells]
        known = self._known(actor, row, who, times)
        if known.all():
            return []
        sites = writes.site[cells]
        bad = ~known & ~(self.strong[site] & self.strong[sites])
        return self._told(actor, row, cells, site, who, times, sites, bad, read=False)

    def _conflicts_with_reads(self, actor: Actor, row: int, cells: Index, site: int | Array) -> list[Before]:
        rows = len(self.rows)
        times = self.read[:rows, cells]
        if not times.any():
            return []
        who = self.reader[:rows, cells]
        known = self._known(actor, row, who, times)
        if known.all():
            return []
        sites = self.read_site[:rows, cells]
        bad = ~known & ~(self.strong[site] & self.strong[sites])
        return [
            before
            for r in np.flatnonzero(bad.any(axis=1)).tolist()
            for before in self._told(actor, row, cells, site, who[r], times[r], sites[r], bad[r], read=True)
        ]

    def _told(
        self,
        actor: Actor,
        row: int,
        cells: Index,
        site: int | Array,
        who: Array,
        times: Array,
        sites: Array,
        bad: Array,
        *,
        read: bool,
    ) -> list[Before]:
        """One for each pair of instructions."""
        found: dict[tuple[int, int], Before] = {}
        numbers = np.arange(cells.start, cells.stop) if isinstance(cells, slice) else cells
        generic = self._known(actor, GENERIC, who, times) if row != GENERIC else np.zeros(len(who), bool)
        for at in np.flatnonzero(bad).tolist():
            here = int(site[at]) if isinstance(site, np.ndarray) else site
            key = (int(sites[at]), here)
            before = found.get(key)
            if before is not None and (not before.fenced or generic[at]):
                continue
            cell = int(numbers[at])
            first = (0, 0) if read else (int(self.writer_before[cell]), int(self.written_before[cell]))
            found[key] = Before(int(who[at]), int(times[at]), key[0], cell, here, read, bool(generic[at]), first)
        return list(found.values())
