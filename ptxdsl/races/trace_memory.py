"""The trace check's view of memory: accesses of a run, held against what their actors know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.races.accesses import LOAD, Piece, segments, tensor_words
from ptxdsl.races.actors import Actor, Strand, Work
from ptxdsl.races.clocks import GENERIC
from ptxdsl.races.patches import Area
from ptxdsl.races.shadow import Before, Cells, Index
from ptxdsl.races.trace_actors import TraceActors
from ptxdsl.sim.machine.memory import SHARED_SPACES
from ptxdsl.sim.watch import How

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta, Warp

Array = npt.NDArray[Any]
_MOST_TILES = 1 << 10


class TraceMemory(TraceActors):
    """Finds conflicting accesses."""

    def ran(self, warp: Warp) -> None:
        log = self.machine.log
        count = log.count if log is not None else 0
        if log is None or not count:
            return
        pieces = self.ranges.pieces(warp.cta, log.words, count)
        if pieces is not None:
            lanes = log.words[2] >> 32
            log.clear()
            self._pieces(self.lanes_of(warp).of(lanes), pieces)
            return
        records = log.take()
        assert records is not None
        for mask, part in segments(records):
            strand = self.lanes_of(warp).of(mask)
            for orders, some in self.flags.split(part) if self.sites.orders else ((False, part),):
                if orders:
                    self.flags.order(strand, some)
                self._pieces(strand, self.spaces.pieces(warp.cta, some))

    def joined(self, warp: Warp, mask: int) -> None:
        self.lanes_of(warp).of(mask).meet()

    def _pieces(self, strand: Strand, pieces: list[Piece[Cells]]) -> None:
        for piece in pieces:
            cells, sites = piece.cells, piece.sites
            if cells.own and piece.index is not None:
                index = cells.current(piece.index)
            else:
                index = piece.index = cells.index(piece.starts, piece.size)
            if not isinstance(sites, int):
                assert not isinstance(index, Area)  # pieces of own memory have one site
                count = index.stop - index.start if isinstance(index, slice) else len(index)
                if count != len(sites):
                    sites = np.repeat(sites, count // len(sites))
            if piece.kind == LOAD:
                found = cells.access_read(strand, GENERIC, index, sites)
            else:
                if cells.objects is not None:
                    self._not_over(strand, cells, index, sites)
                found = cells.access_write(strand, GENERIC, index, sites)
            if found:
                self._tell(strand, cells, found, piece.kind == LOAD)

    def touches(self, cta: Cta, space: str, starts: int | Array, size: int, how: How) -> None:
        actor, site = self.work or self.strand(), self.site()
        if isinstance(starts, int) or starts.flags.writeable or space not in SHARED_SPACES:
            for cells, offsets in self.spaces.places(cta, space, starts, size):
                self._access(actor, cells, cells.index(offsets, size), site, how)
            return
        tiles = self.tiles.get(cta)
        if tiles is None:
            tiles = self.tiles[cta] = {}
        tile = tiles.get((id(starts), size))
        if tile is None:
            places = self.spaces.places(cta, space, starts, size)
            tile = starts, [(cells, cells.index(offsets, size)) for cells, offsets in places]
            if len(tiles) >= _MOST_TILES:
                tiles.clear()
            tiles[id(starts), size] = tile
        for cells, index in tile[1]:
            self._access(actor, cells, cells.current(index), site, how)

    def tensor(self, cta: Cta, lanes: int, first: int, end: int, how: How) -> None:
        actor = self.actor()
        if isinstance(actor, Strand) and not self._deallocates():
            actor = self._moving(actor, how)  # tcgen05.ld and .st are over when they are waited for
        cells = self.spaces.tensor(cta)
        self._access(actor, cells, cells.index(4 * tensor_words(lanes, first, end), 4), self.site(), how, GENERIC)

    def _deallocates(self) -> bool:
        return self.group is not None and self.group.instruction.opcode.startswith("tcgen05.dealloc")

    def _moving(self, strand: Strand, how: How) -> Work:
        assert self.group is not None
        unit = self.unit(strand.warp.cta, f"tcgen05.{'ld' if how == 'read' else 'st'}", (strand.warp, how))
        component, time = unit.in_order()
        work = Work(unit, component, time, strand.clock.copy(), strand, self.group.instruction, self.site())
        self.races.remember(work)
        return work

    def _access(self, actor: Actor, cells: Cells, index: Index, site: int, how: How, row: int | None = None) -> None:
        if row is None:
            row = actor.rows[0 if cells.own else 1]
        if how != "read" and cells.objects is not None:
            self._not_over(actor, cells, index, site)
        access = cells.access_read if how == "read" else cells.access_write
        found = access(actor, row, index, site)
        if found:
            self._tell(actor, cells, found, how == "read")

    def _not_over(self, actor: Actor, cells: Cells, index: Index, sites: int | Array) -> None:
        """Data must not land on a live mbarrier."""
        raise NotImplementedError

    def _tell(self, actor: Actor, cells: Cells, found: list[Before], read: bool) -> None:
        for before in found:
            self.races.add(actor, cells, before, read, self.spaces)
