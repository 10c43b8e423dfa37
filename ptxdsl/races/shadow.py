"""Shadow memory: of every piece of memory who wrote it last, and who has read it since.

A cell stands for 2^shift bytes: as many as the widest access that all accesses to the memory so far are multiples of,
at first four, and of global memory, of which there is much, 128. All cells of an access are looked at with a handful of
NumPy operations; in a cluster's own memory, of which programs use the same tiles again and again, what is kept is of
patches of cells (``patches``), and few of them are looked at one by one. Two accesses conflict if one of them writes,
they touch the same cell, and the earlier one's epoch is not known to the later one's actor.

Of a cell's readers each actor's last access is kept; in global memory, that many read, only that of one actor in each
class of component numbers modulo ``_READERS``: a reader that is forgotten can hide a race, none is invented.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.races.arrays import finer, longer
from ptxdsl.races.clocks import GENERIC, SHIFT, single
from ptxdsl.races.patches import Area, Patches
from ptxdsl.races.writes import COMPONENT, Cut, Writes
from ptxdsl.record import dataclass

if TYPE_CHECKING:
    from ptxdsl.races.actors import Actor

Array = npt.NDArray[Any]
Index = Cut | Area

_READERS = 4
_FIRST_SHIFT, _FIRST_SHIFT_OF_GLOBAL = 2, 7


@dataclass(slots=True)
class Before:
    """An earlier access that is not known to whoever accesses the memory now. actor: its number. byte: the first one.

    read: whether it read. fenced: whether the generic proxy knows of it, and only the proxy that accesses now does not.
    met: whether it would be known if the lanes of the warp had met (``by_lanes``).
    first: of a write, who wrote the cell before that, and when.
    """

    actor: int
    time: int
    site: int
    byte: int
    site_now: int
    read: bool
    fenced: bool
    first: tuple[int, int] = (0, 0)
    met: bool = False


class Cells:
    """One piece of memory of ``size`` bytes. own: it is a cluster's own, no other's actors come to it.

    strong: by site, whether its instruction is an atomic or another strong operation: two of them are no race. What is
    known is kept by *places*: cells, of own memory patches.
    """

    def __init__(self, size: int, own: bool, strong: npt.NDArray[np.bool_]) -> None:
        self.size = size
        self.own = own
        self.strong = strong
        self.shift = _FIRST_SHIFT if own else _FIRST_SHIFT_OF_GLOBAL
        count = -(-size >> self.shift)
        self.patches = Patches(count, self._copied) if own else None
        places = self.patches.room if self.patches is not None else count
        self.writes = Writes(places)
        self.strong_writes: Writes | None = None  # kept apart: they are no race among themselves
        self.objects: Array | None = None  # whether the place is part of a live mbarrier
        self.written = False  # whether anything has been
        self.rows: dict[int, int] = {}  # of readers, by component
        self.reader: Array
        self.read: Array
        self.read_site: Array
        self._readers(*(np.zeros((0, places), kind) for kind in (np.uint32, np.int32, np.int32)))

    def _readers(self, reader: Array, read: Array, site: Array) -> None:
        self.reader, self.read, self.read_site = reader, read, site
        self._one_read, self._one_read_site = single(read), single(site)

    # Where

    def index(self, starts: int | Array, size: int, grain: int = 0) -> Index:
        """The places of [start, start + size). grain: if so many bytes each are of a site of their own."""
        if grain and grain & ((1 << self.shift) - 1):
            self._refine(grain)
        patches = self.patches
        if patches is None:
            return self._cells(starts, size)
        area = patches.area(starts, size)
        if area is None:
            return patches.new_area(starts, size, self._cells(starts, size))
        return self.current(area)

    def current(self, index: Index) -> Index:
        """The same places, after others may have been told apart."""
        if isinstance(index, Area):
            assert self.patches is not None
            if index.version != self.patches.version:
                self.patches.refresh(index, self._cells(index.starts, index.size))
        return index

    def _cells(self, starts: int | Array, size: int) -> Cut:
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

    def first_byte(self, index: Index, at: int) -> int:
        """Of an access's places the first byte that belongs to the one with this number among them."""
        if not isinstance(index, Area):
            return self.byte(index.start + at if isinstance(index, slice) else int(index[at]))
        assert self.patches is not None
        cells = np.arange(index.cells.start, index.cells.stop) if isinstance(index.cells, slice) else index.cells
        return self.byte(int(cells[np.flatnonzero(self.patches.of[cells] == index.patches[at])[0]]))

    def _refine(self, bits: int) -> None:
        """Smaller cells, such that addresses with these bits set are multiples of them."""
        shift = min((bits & -bits).bit_length() - 1, self.shift)
        factor = 1 << self.shift - shift
        self.shift = shift
        if self.patches is not None:
            self.patches.finer(factor)
            return
        used = len(self.rows)
        self._readers(*(finer(array, factor, used) for array in (self.reader, self.read, self.read_site)))
        for writes in (self.writes, self.strong_writes):
            if writes is not None:
                writes.keep(*(finer(array, factor, len(array) * self.written) for array in writes.arrays()))
        if self.objects is not None:
            self.objects = np.repeat(self.objects, factor)

    def _copied(self, old: Array, new: Array, room: int) -> None:
        """Patches are parts of others now."""
        have = len(self.writes.time)
        if room > have:

            def wider(array: Array) -> Array:
                grown = np.zeros((*array.shape[:-1], room), array.dtype)
                grown[..., :have] = array
                return grown

            self._renewed(wider)
        for array in self._arrays():
            array[..., new] = array[..., old]

    def _arrays(self) -> list[Array]:
        kept = [self.reader, self.read, self.read_site]
        for writes in (self.writes, self.strong_writes):
            if writes is not None:
                kept += writes.arrays()
        if self.objects is not None:
            kept.append(self.objects)
        return kept

    def _renewed(self, made: Callable[[Array], Array]) -> None:
        """All that is known, in other arrays."""
        self._readers(made(self.reader), made(self.read), made(self.read_site))
        for writes in (self.writes, self.strong_writes):
            if writes is not None:
                writes.keep(*map(made, writes.arrays()))
        if self.objects is not None:
            self.objects = made(self.objects)

    def mark(self, index: Index, live: bool) -> None:
        """An mbarrier begins or ends its life there."""
        if self.objects is None:
            self.objects = np.zeros(len(self.writes.time), bool)
        self.objects[_places(index)] = live

    def object_byte(self, index: Index) -> int | None:
        """The first byte of an access that is part of a live mbarrier."""
        if self.objects is None:
            return None
        if isinstance(index, Area) and index.few:
            for place in index.few:
                if self.objects.item(place):
                    break
            else:
                return None
        there = np.flatnonzero(self.objects[_places(index)])
        return self.first_byte(index, int(there[0])) if len(there) else None

    # What is known

    def _known(self, actor: Actor, row: int, who: Array, times: Array) -> Array:
        """Whether the actor knows of epochs. Time 0 is none."""
        times_known = actor.clock.own[row]
        components = who & COMPONENT
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

    def access_read(self, actor: Actor, row: int, index: Index, site: int | Array) -> list[Before]:
        """site: of the instruction, or of each cell's, which own memory does not have."""
        clock = actor.clock
        clock.fit(actor.domain.capacity)
        few = index.few if isinstance(index, Area) else ()
        if not self.written or (few and self._writes_known(clock.own, row, few, site)):
            found = []
        else:
            found = self._conflicts_with_writes(actor, row, index, site, self.strong[site])
        r, time = self.row(actor.number), actor.time
        if few:
            assert isinstance(site, int)
            times, sites = self._one_read, self._one_read_site
            for place in few:
                times[r, place] = time
                sites[r, place] = site
            return found
        places = _places(index)
        if not self.own:  # whose rows have more than one reader
            self.reader[r, places] = actor.number
        self.read[r, places] = time
        self.read_site[r, places] = site
        return found

    def access_write(self, actor: Actor, row: int, index: Index, site: int | Array) -> list[Before]:
        strong = self.strong[site]
        some = bool(strong if isinstance(site, int) else strong.any())
        if some and not strong.all():
            assert isinstance(site, np.ndarray) and not isinstance(index, Area)
            cells = np.arange(index.start, index.stop) if isinstance(index, slice) else index
            found = self.access_write(actor, row, cells[~strong], site[~strong])
            return found + self.access_write(actor, row, cells[strong], site[strong])
        clock = actor.clock
        clock.fit(actor.domain.capacity)
        few = index.few if isinstance(index, Area) else ()
        if few and self._writes_known(clock.own, row, few, site) and self._reads_known(clock.own, row, few):
            found = []
        else:
            found = self._conflicts_with_writes(actor, row, index, site, strong) if self.written else []
            found += self._conflicts_with_reads(actor, row, index, site)
        if some:
            if self.strong_writes is None:
                self.strong_writes = Writes(len(self.writes.time))
            self.strong_writes.put(_places(index), actor.number, actor.time, site)
        elif few:
            assert isinstance(site, int)
            self.writes.put_few(few, actor, site)
        else:
            self.writes.put(_places(index), actor.number, actor.time, site)
        self.written = True
        return found

    def _writes_known(self, own: Array, row: int, few: tuple[int, ...], site: int | Array) -> bool:
        if not self.writes.known(own, row, few):
            return False
        return self.strong_writes is None or bool(self.strong[site]) or self.strong_writes.known(own, row, few)

    def _reads_known(self, own: Array, row: int, few: tuple[int, ...]) -> bool:
        """Whether a clock's row covers all reads of these places; then they are forgotten."""
        times = self._one_read
        last = []
        for component, r in self.rows.items():
            for place in few:
                time = times[r, place]
                if time:
                    if own.item(row, component) < time:
                        return False
                    last.append((r, place))
        for there in last:
            times[there] = 0
        return True

    def unknown_to(self, known: Array) -> list[tuple[int, int]]:
        """The actors (their numbers) and sites of accesses, still remembered, that a row of a clock does not know."""
        found: set[tuple[int, int]] = set()
        tables: list[tuple[Array, Array, Array]] = [(self.reader, self.read, self.read_site)]
        tables += [(w.who, w.time, w.site) for w in (self.writes, self.strong_writes) if w is not None]
        for who, times, sites in tables:
            bad = known[who & COMPONENT] < times
            if bad.any():
                found.update(zip(who[bad].tolist(), sites[bad].tolist(), strict=True))
        return sorted(found)

    def row(self, number: int) -> int:
        """Where the reads of an actor are kept."""
        component = number & COMPONENT
        key = component if self.own else component % _READERS
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = len(self.rows)
            if row == len(self.reader):
                more = max(2, row) if self.own else _READERS
                self._readers(*(longer(have, more) for have in (self.reader, self.read, self.read_site)))
            if self.own:
                self.reader[row] = number
        return row

    def _conflicts_with_writes(
        self, actor: Actor, row: int, index: Index, site: int | Array, strong: Array
    ) -> list[Before]:
        found = self._conflicts_with(self.writes, actor, row, index, site)
        if self.strong_writes is not None and not strong.all():
            found += self._conflicts_with(self.strong_writes, actor, row, index, site)
        return found

    def _conflicts_with(self, writes: Writes, actor: Actor, row: int, index: Index, site: int | Array) -> list[Before]:
        places = _places(index)
        times = writes.time[places]
        if not times.any():
            return []
        who = writes.who[places]
        known = self._known(actor, row, who, times)
        if known.all():
            return []
        known |= (who == actor.number) & (times == actor.time)  # of work that is not in order, its own
        sites = writes.site[places]
        bad = ~known & ~(self.strong[site] & self.strong[sites])
        return self._told(actor, row, index, site, who, times, sites, bad, read=False)

    def _conflicts_with_reads(self, actor: Actor, row: int, index: Index, site: int | Array) -> list[Before]:
        """They are forgotten then."""
        rows, places = len(self.rows), _places(index)
        times = self.read[:rows, places]
        if not times.any():
            return []
        if isinstance(places, slice):
            times = times.copy()
        self.read[:rows, places] = 0
        who = self.reader[:rows, places]
        known = self._known(actor, row, who, times)
        if known.all():
            return []
        sites = self.read_site[:rows, places]
        bad = ~known & ~(self.strong[site] & self.strong[sites])
        return [
            before
            for r in np.flatnonzero(bad.any(axis=1)).tolist()
            for before in self._told(actor, row, index, site, who[r], times[r], sites[r], bad[r], read=True)
        ]

    def _told(
        self,
        actor: Actor,
        row: int,
        index: Index,
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
        places = _places(index)
        generic = self._known(actor, GENERIC, who, times) if row != GENERIC else np.zeros(len(who), bool)
        for at in np.flatnonzero(bad).tolist():
            here = int(site[at]) if isinstance(site, np.ndarray) else site
            key = (int(sites[at]), here)
            before = found.get(key)
            if before is not None and (not before.fenced or generic[at]):
                continue
            place = places.start + at if isinstance(places, slice) else places[at]
            first = (0, 0) if read else self.writes.before(place)
            byte = self.first_byte(index, at)
            found[key] = Before(int(who[at]), int(times[at]), key[0], byte, here, read, bool(generic[at]), first)
        return list(found.values())


def _places(index: Index) -> Cut:
    return index.patches if isinstance(index, Area) else index
