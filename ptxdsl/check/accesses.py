"""The access log of one turn of a warp as pieces: lanes that run together, one kind of access, one piece of memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.check.shadow import Cells
from ptxdsl.record import dataclass
from ptxdsl.sim.layout import LOCAL_WINDOW, RANK_SHIFT, SHARED_WINDOW, SPACES
from ptxdsl.sim.memory import SHARED_SPACES

if TYPE_CHECKING:
    from ptxdsl.sim.cta import Cta
    from ptxdsl.sim.memory import Memory

Array = npt.NDArray[Any]

LOAD, STORE, ATOMIC, FENCE, JOIN = 0, 1, 3, 4, 8
_LANES = (np.arange(256)[:, None] >> np.arange(8) & 1).astype(bool)  # of a chunk, by its mask
_OFFSET = (1 << RANK_SHIFT) - 1
_GENERIC, _GLOBAL, _SHARED, _LOCAL, _CLUSTER = (
    SPACES[name] for name in ("generic", "global", "shared", "local", "cluster")
)
_SHARED_BYTES = 1 << 32  # of the window of generic addresses


@dataclass(slots=True, eq=False)
class Piece:
    """Accesses to one piece of memory: at offsets ``starts``, ``size`` bytes each. sites: of each."""

    cells: Cells
    starts: Array
    size: int
    sites: Array
    kind: int


class Spaces:
    """Finds the shadow of addresses. shared: of a CTA; made when first asked for."""

    def __init__(self, memory: Memory, strong: npt.NDArray[np.bool_]) -> None:
        self.memory = memory
        self.strong = strong
        self.global_cells: dict[int, Cells] = {}  # by a region's start
        self.shared_cells: dict[Cta, Cells] = {}
        self.tensor_cells: dict[Cta, Cells] = {}

    def shared(self, cta: Cta) -> Cells:
        cells = self.shared_cells.get(cta)
        if cells is None:
            cells = self.shared_cells[cta] = Cells(len(cta.window), True, self.strong)
        return cells

    def tensor(self, cta: Cta) -> Cells:
        """A cell is a word: 512 columns of lane 0, those of lane 1, …"""
        cells = self.tensor_cells.get(cta)
        if cells is None:
            cells = self.tensor_cells[cta] = Cells(4 * 128 * 512, True, self.strong)
        return cells

    def forget(self, cta: Cta) -> None:
        self.shared_cells.pop(cta, None)
        self.tensor_cells.pop(cta, None)

    def places(self, cta: Cta, space: str, starts: int | Array, size: int) -> Iterator[tuple[Cells, int | Array]]:
        """The shadows and offsets in them of addresses as ``Memory.view`` takes them. What is not memory that can be
        shared (local, constant, parameters) is left out."""
        if isinstance(starts, int):
            found = self._one(cta, space, starts)
            if found is not None:
                yield found
            return
        if not len(starts):
            return
        addresses = starts.astype(np.int64)
        if space in SHARED_SPACES:
            yield from self._in_shared(cta, addresses, size)
        elif space == "global":
            yield from self._in_global(addresses, size)
        else:
            inside = (addresses >= SHARED_WINDOW) & (addresses < SHARED_WINDOW + _SHARED_BYTES)
            yield from self._in_shared(cta, addresses[inside] - SHARED_WINDOW, size)
            yield from self._in_global(addresses[~inside & (addresses < LOCAL_WINDOW)], size)

    def _one(self, cta: Cta, space: str, address: int) -> tuple[Cells, int] | None:
        if space not in SHARED_SPACES and SHARED_WINDOW <= address < SHARED_WINDOW + _SHARED_BYTES:
            space, address = "shared::cluster", address - SHARED_WINDOW
        if space in SHARED_SPACES:
            return self.shared(cta.cluster.ctas[address >> RANK_SHIFT]), address & _OFFSET
        region = self.memory.region(address)
        if region is None or not region.writable or address >= region.end:
            return None
        return self._region_cells(region.start, region.end), address - region.start

    def _region_cells(self, start: int, end: int) -> Cells:
        cells = self.global_cells.get(start)
        if cells is None:
            cells = self.global_cells[start] = Cells(end - start, False, self.strong)
        return cells

    def _in_shared(self, cta: Cta, addresses: Array, size: int) -> Iterator[tuple[Cells, Array]]:
        for owner, offsets, _ in self.shared_parts(cta, addresses, size):
            yield self.shared(owner), offsets

    def _in_global(self, addresses: Array, size: int) -> Iterator[tuple[Cells, Array]]:
        for cells, offsets, _ in self.global_parts(addresses, size):
            yield cells, offsets

    def shared_parts(self, cta: Cta, addresses: Array, size: int) -> Iterator[tuple[Cta, Array, Array | None]]:
        """By CTA the offsets, and which of the addresses they are (None: all)."""
        if not len(addresses):
            return
        ranks = addresses >> RANK_SHIFT
        first = int(ranks[0])
        ctas = cta.cluster.ctas
        for rank in [first] if (ranks == first).all() else np.unique(ranks).tolist():
            if not 0 <= rank < len(ctas):
                continue
            mine = None if rank == first and (ranks == first).all() else ranks == rank
            offsets = (addresses if mine is None else addresses[mine]) & _OFFSET
            if int(offsets.max()) + size > len(ctas[rank].window):
                continue  # a fault, which the machine is about to tell of
            yield ctas[rank], offsets, mine

    def global_parts(self, addresses: Array, size: int) -> Iterator[tuple[Cells, Array, Array | None]]:
        if not len(addresses):
            return
        left: Array | None = None  # None: all
        while True:
            rest = addresses if left is None else addresses[left]
            if not len(rest):
                return
            low, high = int(rest.min()), int(rest.max())
            region = self.memory.region(low)
            end = 0 if region is None else region.end
            if region is not None and low < end and region.writable:
                inside = rest < end
                good = rest[inside]
                if int(good.max()) + size <= end:  # else a fault, which the machine is about to tell of
                    cells = self._region_cells(region.start, region.end)
                    if len(good) == len(addresses):
                        yield cells, good - region.start, None
                        return
                    which = np.zeros(len(addresses), bool)
                    which[np.flatnonzero(inside) if left is None else np.flatnonzero(left)[inside]] = True
                    yield cells, good - region.start, which
            end = max(end, low + 1)
            if high < end:
                return
            mask = addresses >= end
            left = mask if left is None else left & mask

    # The log

    def pieces(self, cta: Cta, records: Array) -> Iterator[Piece]:
        """Of records of one warp, fences left out. Loads come first, then stores: a warp does not race with itself."""
        codes = records["kind"].astype(np.int64) << 24 | records["space"].astype(np.int64) << 16 | records["bytes"]
        first = int(codes[0])
        for code in [first] if (codes == first).all() else np.unique(codes).tolist():
            some = records if code == first and (codes == first).all() else records[codes == code]
            yield from self._alike(cta, some, code >> 24, code >> 16 & 0xFF, code & 0xFFFF)

    def _alike(self, cta: Cta, records: Array, kind: int, space: int, size: int) -> Iterator[Piece]:
        if space == _LOCAL or kind >= FENCE:
            return
        masks = records["mask"]
        if (masks == 0xFF).all():
            addresses = records["addresses"].reshape(-1).astype(np.int64)
            sites = np.repeat(records["site"], 8)
        else:
            lanes = _LANES[masks]
            addresses = records["addresses"][lanes].astype(np.int64)
            sites = np.repeat(records["site"], lanes.sum(axis=1))
        if space in (_SHARED, _CLUSTER):
            yield from self._shared_pieces(cta, addresses, size, sites, kind)
            return
        if space == _GENERIC:
            inside = (addresses >= SHARED_WINDOW) & (addresses < SHARED_WINDOW + _SHARED_BYTES)
            if inside.any():
                yield from self._shared_pieces(cta, addresses[inside] - SHARED_WINDOW, size, sites[inside], kind)
            outside = ~inside & (addresses < LOCAL_WINDOW)
            addresses, sites = addresses[outside], sites[outside]
        for cells, offsets, which in self.global_parts(addresses, size):
            yield Piece(cells, offsets, size, sites if which is None else sites[which], kind)

    def _shared_pieces(self, cta: Cta, addresses: Array, size: int, sites: Array, kind: int) -> Iterator[Piece]:
        for owner, offsets, which in self.shared_parts(cta, addresses, size):
            yield Piece(self.shared(owner), offsets, size, sites if which is None else sites[which], kind)


def segments(records: Array) -> list[tuple[int, Array]]:
    """The records with the lanes that run together, cut where these change."""
    groups = records["group"]
    first = int(groups[0])
    if (groups == first).all():
        return [(first, records)]
    cuts = np.flatnonzero(groups[1:] != groups[:-1]) + 1
    return [(int(part["group"][0]), part) for part in np.split(records, cuts)]
