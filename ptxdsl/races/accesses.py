"""The access log of one turn of a warp as pieces: lanes that run together, one kind of access, one piece of memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ptxdsl.record import dataclass
from ptxdsl.sim.layout import LOCAL_WINDOW, RANK_SHIFT, SHARED_WINDOW, SPACES
from ptxdsl.sim.machine.memory import SHARED_SPACES

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.memory import Memory, Region

Array = npt.NDArray[Any]

LOAD, STORE, ATOMIC, FENCE, JOIN = 0, 1, 3, 4, 8
_LANES = (np.arange(256)[:, None] >> np.arange(8) & 1).astype(bool)  # of a chunk, by its mask
_OFFSET = (1 << RANK_SHIFT) - 1
GENERIC, GLOBAL, SHARED, LOCAL, CLUSTER = (SPACES[name] for name in ("generic", "global", "shared", "local", "cluster"))
_REPEATED = frozenset((SHARED, CLUSTER))  # spaces to which programs come again and again by the same addresses
_MOST_PLANS = 1 << 12
_SHARED_BYTES = 1 << 32  # of the window of generic addresses
_GRANULES, _COLUMNS = 8, 512  # of tensor memory


T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
Places = slice | Array | None
Key = tuple[str, int]  # ``shared`` or ``tensor`` and the CTA's number, ``global`` and where it starts


@dataclass(slots=True, eq=False)
class Piece(Generic[T]):
    """Accesses to one piece of memory: ``size`` bytes each at offsets ``starts``, or all bytes from an offset on that
    many. cells: what is kept of the memory. sites: of all, or of each. index: where that is in what is kept, for those
    who look at the same piece again and again."""

    cells: T
    starts: int | Array
    size: int
    sites: int | Array
    kind: int
    index: Any = None


def elsewhere(piece: Piece[Any]) -> Hashable:
    """What there is to say of an access but where in its memory it is."""
    starts, sites = piece.starts, piece.sites
    many = 1 if isinstance(starts, int) else len(starts)
    return piece.cells, piece.kind, piece.size, many, sites if isinstance(sites, int) else sites.tobytes()


@dataclass(slots=True, eq=False)
class Plan:
    """How the records of a turn are divided: which (None: all) are alike, of which site if it is one, with their kind,
    space and bytes. again: all are of memory to which a program comes again and again by the same addresses."""

    parts: list[tuple[Places, int | None, int, int, int]]
    again: bool


class Spaces(Generic[T]):
    """Finds what is kept of the memory at an address; ``make`` makes it when it is first asked for: of a key, a size in
    bytes, and whether it is a cluster's own."""

    def __init__(self, memory: Memory, make: Callable[[Key, int, bool], T]) -> None:
        self.memory = memory
        self.make = make
        self.global_cells: dict[int, T] = {}  # by a region's start
        self.shared_cells: dict[Cta, T] = {}
        self.tensor_cells: dict[Cta, T] = {}
        self._codes: dict[int, int] = {}  # by site, what its records are alike in: kind, space and bytes
        self._plans: dict[bytes, Plan] = {}  # by the sites of a turn
        self._spans: dict[tuple[bytes, int], int | None] = {}  # by addresses from the first one on, and bytes
        self._known: dict[Cta, dict[bytes, list[Piece[T]]]] = {}  # by records
        self._known_places: dict[Cta, dict[tuple[bytes, int], list[tuple[T, Array]]]] = {}  # by addresses and bytes

    def shared(self, cta: Cta) -> T:
        cells = self.shared_cells.get(cta)
        if cells is None:
            cells = self.shared_cells[cta] = self.make(("shared", cta.linear), len(cta.window), True)
        return cells

    def tensor(self, cta: Cta) -> T:
        """A word is a column of 16 lanes: less than that no two units can have for themselves. See ``tensor_words``."""
        cells = self.tensor_cells.get(cta)
        if cells is None:
            cells = self.tensor_cells[cta] = self.make(("tensor", cta.linear), 4 * _GRANULES * _COLUMNS, True)
        return cells

    def forget(self, cta: Cta) -> None:
        for other in cta.cluster.ctas:  # which may know of its memory
            self._known.pop(other, None)
            self._known_places.pop(other, None)
        self.shared_cells.pop(cta, None)
        self.tensor_cells.pop(cta, None)

    def places(self, cta: Cta, space: str, starts: int | Array, size: int) -> Iterator[tuple[T, int | Array]]:
        """The shadows and offsets in them of addresses as ``Memory.view`` takes them. What is not memory that can be
        shared (local, constant, parameters) is left out."""
        if isinstance(starts, int):
            found = self._one(cta, space, starts, size)
            if found is not None:
                yield found
            return
        if not len(starts):
            return
        if space in SHARED_SPACES:
            yield from self._shared_again(cta, starts, size)
            return
        addresses = starts.astype(np.int64)
        if space == "global":
            yield from self._in_global(addresses, size)
        else:
            inside = (addresses >= SHARED_WINDOW) & (addresses < SHARED_WINDOW + _SHARED_BYTES)
            yield from self._in_shared(cta, addresses[inside] - SHARED_WINDOW, size)
            yield from self._in_global(addresses[~inside & (addresses < LOCAL_WINDOW)], size)

    def _one(self, cta: Cta, space: str, address: int, size: int) -> tuple[T, int] | None:
        if space not in SHARED_SPACES and SHARED_WINDOW <= address < SHARED_WINDOW + _SHARED_BYTES:
            space, address = "shared::cluster", address - SHARED_WINDOW
        if space in SHARED_SPACES:
            rank, offset = address >> RANK_SHIFT, address & _OFFSET
            if rank >= len(cta.cluster.ctas) or offset + size > len(cta.cluster.ctas[rank].window):
                return None  # a fault, which the machine tells of
            return self.shared(cta.cluster.ctas[rank]), offset
        region = self.memory.region(address)
        if region is None or not region.writable or address + size > region.end:
            return None
        return self.region(region), address - region.start

    def region(self, region: Region) -> T:
        cells = self.global_cells.get(region.start)
        if cells is None:
            made = self.make(("global", region.start), region.end - region.start, False)
            cells = self.global_cells[region.start] = made
        return cells

    def _shared_again(self, cta: Cta, starts: Array, size: int) -> list[tuple[T, Array]]:
        """Programs come to their tiles again and again."""
        known = self._known_places.setdefault(cta, {})
        key = starts.tobytes(), size
        places = known.get(key)
        if places is None:
            places = _kept(known, key, list(self._in_shared(cta, starts.astype(np.int64), size)))
        return places

    def _in_shared(self, cta: Cta, addresses: Array, size: int) -> Iterator[tuple[T, Array]]:
        for owner, offsets, _ in self._shared_parts(cta, addresses, size):
            yield self.shared(owner), offsets

    def _in_global(self, addresses: Array, size: int) -> Iterator[tuple[T, Array]]:
        for cells, offsets, _ in self._global_parts(addresses, size):
            yield cells, offsets

    def _shared_parts(self, cta: Cta, addresses: Array, size: int) -> Iterator[tuple[Cta, Array, Array | None]]:
        """By CTA the offsets, and which of the addresses they are (None: all)."""
        if not len(addresses):
            return
        low, high = int(addresses.min()), int(addresses.max())
        ctas = cta.cluster.ctas
        alike = low >> RANK_SHIFT == high >> RANK_SHIFT
        for rank in range(max(low >> RANK_SHIFT, 0), min(high >> RANK_SHIFT, len(ctas) - 1) + 1):
            mine = None if alike else addresses >> RANK_SHIFT == rank
            offsets = (addresses if mine is None else addresses[mine]) & _OFFSET
            last = high & _OFFSET if mine is None else int(offsets.max(initial=0))
            if len(offsets) and last + size <= len(ctas[rank].window):  # else a fault, which the machine tells of
                yield ctas[rank], offsets, mine

    def _global_parts(self, addresses: Array, size: int) -> Iterator[tuple[T, Array, Array | None]]:
        """By region."""
        if not len(addresses):
            return
        low, high = int(addresses.min()), int(addresses.max())
        region = self.memory.region(low)
        if region is not None and high + size <= region.end:
            if region.writable:
                yield self.region(region), addresses - region.start, None
            return
        left = np.ones(len(addresses), bool)
        while low <= high:
            region = self.memory.region(low)
            end = 0 if region is None else region.end
            if region is not None and low < end and region.writable:
                which = left & (addresses < end)
                good = addresses[which]
                if int(good.max()) + size <= end:
                    yield self.region(region), good - region.start, which
            left &= addresses >= max(end, low + 1)
            if not left.any():
                return
            low = int(addresses[left].min())

    # The log

    def pieces(self, cta: Cta, records: Array) -> list[Piece[T]]:
        """Of records of one warp, fences left out. Loads come first, then stores: a warp does not race with itself."""
        key = records["site"].tobytes()
        plan = self._plans.get(key)
        if plan is None:
            plan = _kept(self._plans, key, self._plan(records))
        known = self._known.get(cta)
        if known is None:
            known = self._known[cta] = {}
        if plan.again:
            text = records.tobytes()
            found = known.get(text)
            if found is None:
                found = _kept(known, text, [piece for part in plan.parts for piece in self._alike(cta, records, *part)])
            return found
        found = []
        for part in plan.parts:
            if part[3] in _REPEATED:
                some = records if part[0] is None else records[part[0]]
                text = some.tobytes()
                pieces = known.get(text)
                if pieces is None:
                    pieces = _kept(known, text, list(self._alike(cta, some, None, *part[1:])))
                found += pieces
            else:
                found += self._alike(cta, records, *part)
        return found

    def _plan(self, records: Array) -> Plan:
        """All parts but those of global memory are of one site."""
        parts: list[tuple[Places, int | None, int, int, int]] = []
        sites = records["site"].tolist()
        alike: dict[tuple[int, int], list[int]] = {}
        for at, site in enumerate(sites):
            code = self._codes.get(site)
            if code is None:
                record = records[at]
                code = int(record["kind"]) << 24 | int(record["space"]) << 16 | int(record["bytes"])
                self._codes[site] = code
            of_one = -1 if code >> 16 & 0xFF == GLOBAL else site
            alike.setdefault((code, of_one), []).append(at)
        for (code, _), places in sorted(alike.items(), key=lambda item: item[0][0]):
            space, kind = code >> 16 & 0xFF, code >> 24
            if space == LOCAL or kind >= FENCE:
                continue
            first = sites[places[0]]
            site = first if all(sites[at] == first for at in places) else None
            which: Places = None
            if len(places) < len(sites):
                neighbours = places[-1] - places[0] == len(places) - 1
                which = slice(places[0], places[-1] + 1) if neighbours else np.array(places)
            parts.append((which, site, kind, space, code & 0xFFFF))
        return Plan(parts, all(part[3] in _REPEATED for part in parts))

    def _alike(
        self, cta: Cta, records: Array, which: Places, site: int | None, kind: int, space: int, size: int
    ) -> Iterator[Piece[T]]:
        if which is not None:
            records = records[which]
        masks = records["mask"].tobytes()
        sites: int | Array
        if masks.count(0xFF) == len(masks):
            addresses = records["addresses"].reshape(-1).view(np.int64)
            sites = site if site is not None else np.repeat(records["site"], 8)
            if space == SHARED and _neighbours(addresses, size):
                start = int(addresses[0])
                if start >> RANK_SHIFT == cta.rank and (start & _OFFSET) + size * len(addresses) <= len(cta.window):
                    yield Piece(self.shared(cta), start & _OFFSET, size * len(addresses), sites, kind)
                    return
        else:
            lanes = _LANES[records["mask"]]
            addresses = records["addresses"][lanes].view(np.int64)
            sites = site if site is not None else np.repeat(records["site"], lanes.sum(axis=1))
        if space in (SHARED, CLUSTER):
            yield from self._shared_pieces(cta, addresses, size, sites, kind)
            return
        if space == GENERIC:
            inside = (addresses >= SHARED_WINDOW) & (addresses < SHARED_WINDOW + _SHARED_BYTES)
            if inside.any():
                part = sites if isinstance(sites, int) else sites[inside]
                yield from self._shared_pieces(cta, addresses[inside] - SHARED_WINDOW, size, part, kind)
            outside = ~inside & (addresses < LOCAL_WINDOW)
            addresses = addresses[outside]
            sites = sites if isinstance(sites, int) else sites[outside]
        if not len(addresses):
            return
        first = addresses.item(0)
        span = self._span(addresses - first, size)
        if span is not None and (span > size or site is not None):
            region = self.memory.region(first)
            if region is not None and first + span <= region.end:
                if region.writable:
                    yield Piece(self.region(region), first - region.start, span, sites, kind)
                return
        for cells, offsets, which in self._global_parts(addresses, size):
            some = sites if which is None or isinstance(sites, int) else sites[which]
            yield Piece(cells, offsets, size, some, kind)

    def _span(self, offsets: Array, size: int) -> int | None:
        """How many bytes accesses at these offsets touch, if all follow upon one another or touch the same."""
        key = offsets.tobytes(), size
        span = self._spans.get(key, -1)
        if span == -1:
            alike = not offsets.any()
            span = size if alike else size * len(offsets) if _neighbours(offsets, size) else None
            _kept(self._spans, key, span)
        return span

    def _shared_pieces(
        self, cta: Cta, addresses: Array, size: int, sites: int | Array, kind: int
    ) -> Iterator[Piece[T]]:
        for owner, offsets, which in self._shared_parts(cta, addresses, size):
            some = sites if which is None or isinstance(sites, int) else sites[which]
            yield Piece(self.shared(owner), offsets, size, some, kind)


def _kept(known: dict[K, V], key: K, value: V) -> V:
    """What is remembered from now on; where that would be too much, instead of all before."""
    if len(known) >= _MOST_PLANS:
        known.clear()
    known[key] = value
    return value


def _neighbours(addresses: Array, size: int) -> bool:
    """Whether accesses of so many bytes follow upon one another."""
    count = len(addresses)
    if not count or addresses[-1] - addresses[0] != size * (count - 1):
        return False
    return bool((addresses[1:] - addresses[:-1] == size).all())


def tensor_words(lanes: int, first: int, end: int) -> Array:
    """The words of ``Spaces.tensor`` in a mask of 128 lanes and columns [first, end)."""
    rows = np.array([row for row in range(_GRANULES) if lanes >> 16 * row & 0xFFFF])
    words: Array = (rows[:, None] * _COLUMNS + np.arange(first, end)).reshape(-1)
    return words


def segments(records: Array) -> list[tuple[int, Array]]:
    """The records with the lanes that run together, cut where these change."""
    groups = records["group"].tolist()
    first = groups[0]
    if groups.count(first) == len(groups):
        return [(first, records)]
    cuts = [at for at in range(1, len(groups)) if groups[at] != groups[at - 1]]
    return [(groups[start], records[start:end]) for start, end in zip([0, *cuts], [*cuts, len(groups)], strict=True)]
