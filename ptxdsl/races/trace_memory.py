"""The trace check's view of memory: accesses of a run, held against what their actors know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.races.accesses import LOAD, STORE, Piece, segments, tensor_words
from ptxdsl.races.actors import Actor, Strand, Work
from ptxdsl.races.clocks import GENERIC
from ptxdsl.races.patches import Area
from ptxdsl.races.shadow import Before, Cells, Index
from ptxdsl.races.trace_actors import Tile, TileKey, TraceActors
from ptxdsl.sim.layout import ACCESS
from ptxdsl.sim.machine.memory import SHARED_SPACES
from ptxdsl.sim.watch import How

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.warp import Warp

Array = npt.NDArray[Any]
Step = tuple[int, "list[Piece[Cells]] | Array"]  # lanes of a warp, and their accesses, or one record that orders others

_WORDS = ACCESS.itemsize // 8
_MOST_TILES = 1 << 10


class TraceMemory(TraceActors):
    """Finds conflicting accesses."""

    def steps(self, warp: Warp) -> list[Step]:
        """What compiled code of a warp has done since it was asked last, in order."""
        log = self.machine.log
        if log is None or not log.count:
            return []
        steps = self.steps_of(warp, log.words[: log.count * _WORDS])
        log.clear()
        return steps

    def steps_of(self, warp: Warp, words: memoryview) -> list[Step]:
        """The same of records of the access log."""
        pieces = self.ranges.pieces(warp.cta, words, len(words) // _WORDS)
        if pieces is not None:
            return [(words[2] >> 32, pieces)]
        steps: list[Step] = []
        for mask, part in segments(np.frombuffer(words, ACCESS)):
            for orders, some in self.flags.split(part) if self.sites.orders else ((False, part),):
                if orders:
                    steps.append((mask, some.copy()))
                steps.append((mask, self.spaces.pieces(warp.cta, some)))  # what orders others is an access as well
        return steps

    def ran(self, warp: Warp, steps: list[Step]) -> None:
        for mask, what in steps:
            strand = self.lanes_of(warp).of(mask)
            if isinstance(what, list):
                self._pieces(strand, what)
            else:
                self.flags.order(strand, what)

    def joined(self, warp: Warp, mask: int) -> None:
        self.lanes_of(warp).of(mask).meet()

    def _pieces(self, strand: Strand, pieces: list[Piece[Cells]]) -> None:
        for piece in pieces:
            cells, index = piece.cells, _index(piece)
            sites = of_places(piece.sites, index)
            if piece.kind == LOAD:
                found = cells.access_read(strand, GENERIC, index, sites)
            else:
                if cells.objects is not None:
                    self._not_over(strand, cells, index, sites)
                found = cells.access_write(strand, GENERIC, index, sites)
            if found:
                self._tell(strand, cells, found, piece.kind == LOAD)
            if self.trail is not None and not cells.own:
                self.trail.append((strand, strand.time, piece.sites))

    def touched(self, cta: Cta, space: str, starts: int | Array, size: int, how: How) -> list[Piece[Cells]]:
        """What ``Watch.touches`` tells of, in pieces; who touches them says the site."""
        kind = LOAD if how == "read" else STORE
        return [Piece(cells, offsets, size, 0, kind) for cells, offsets in self.spaces.places(cta, space, starts, size)]

    def tile(self, cta: Cta, space: str, starts: int | Array, size: int, how: How) -> Tile | None:
        """The same where it is shared memory that always means the same: one object for it."""
        if space not in SHARED_SPACES or not (isinstance(starts, int) or not starts.flags.writeable):
            return None
        tiles = self._tiles_of(cta)
        key = (starts, 0, size, space, how) if isinstance(starts, int) else (None, id(starts), size, space, how)
        tile = tiles.get(key)
        if tile is None:
            tile = tiles[key] = Tile(starts, [self.touched(cta, space, starts, size, how)])
        return tile

    def tile_of_parts(self, cta: Cta, space: str, parts: tuple[Array, ...], size: int, how: How) -> Tile:
        """What ``Watch.touches_in_parts`` tells of."""
        tiles = self._tiles_of(cta)
        key = None, id(parts), size, space, how
        tile = tiles.get(key)
        if tile is None:
            tile = tiles[key] = Tile(parts, [self.touched(cta, space, starts, size, how) for starts in parts])
        return tile

    def _tiles_of(self, cta: Cta) -> dict[TileKey, Tile]:
        tiles = self.tiles.get(cta)
        if tiles is None:
            tiles = self.tiles[cta] = {}
        elif len(tiles) >= _MOST_TILES:
            tiles.clear()
        return tiles

    def touches_in_parts(self, tile: Tile) -> None:
        for rank, pieces in enumerate(tile.parts):
            self.part(rank)
            self.touches(pieces)

    def touches(self, pieces: list[Piece[Cells]]) -> None:
        actor, site = self.work or self.strand(), self.site()
        for piece in pieces:
            cells = piece.cells
            self._access(actor, cells, _index(piece), site, piece.kind == LOAD, actor.rows[0 if cells.own else 1])
            if self.trail is not None and not cells.own:
                self.trail.append((actor, actor.time, site))

    def tensor(self, cta: Cta, lanes: int, first: int, end: int, how: How) -> None:
        actor = self.actor()
        if isinstance(actor, Strand) and not self._deallocates():
            actor = self._moving(actor, how)  # tcgen05.ld and .st are over when they are waited for
        cells = self.spaces.tensor(cta)
        index = cells.index(4 * tensor_words(lanes, first, end), 4)
        self._access(actor, cells, index, self.site(), how == "read", GENERIC)

    def _deallocates(self) -> bool:
        return self.group is not None and self.group.instruction.opcode.startswith("tcgen05.dealloc")

    def _moving(self, strand: Strand, how: How) -> Work:
        assert self.group is not None
        unit = self.unit(strand.warp.cta, f"tcgen05.{'ld' if how == 'read' else 'st'}", (strand.warp, how))
        component, time = unit.in_order()
        work = Work(unit, component, time, strand.clock.copy(), strand, self.group.instruction, self.site())
        self.races.remember(work)
        return work

    def _access(self, actor: Actor, cells: Cells, index: Index, site: int, read: bool, row: int) -> None:
        if not read and cells.objects is not None:
            self._not_over(actor, cells, index, site)
        access = cells.access_read if read else cells.access_write
        found = access(actor, row, index, site)
        if found:
            self._tell(actor, cells, found, read)

    def _not_over(self, actor: Actor, cells: Cells, index: Index, sites: int | Array) -> None:
        """Data must not land on a live mbarrier."""
        raise NotImplementedError

    def _tell(self, actor: Actor, cells: Cells, found: list[Before], read: bool) -> None:
        for before in found:
            self.races.add(actor, cells, before, read, self.spaces)


def _index(piece: Piece[Cells]) -> Index:
    cells = piece.cells
    if cells.own and piece.index is not None:
        return cells.current(piece.index)
    index = piece.index = cells.index(piece.starts, piece.size, grain_of(piece))
    return index


def grain_of(piece: Piece[Cells]) -> int:
    """How many bytes there are of each site, where a piece has several."""
    sites = piece.sites
    if isinstance(sites, int):
        return 0
    return piece.size * (1 if isinstance(piece.starts, int) else len(piece.starts)) // len(sites)


def of_places(sites: int | Array, index: Index) -> int | Array:
    """The sites of an access, of which there is one or one for so many bytes, by places."""
    if isinstance(sites, int):
        return sites
    assert not isinstance(index, Area)  # pieces of own memory have one site
    count = index.stop - index.start if isinstance(index, slice) else len(index)
    return sites if count == len(sites) else np.repeat(sites, count // len(sites))
