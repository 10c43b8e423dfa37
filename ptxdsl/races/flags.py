"""Synchronisation by memory: what is released at a location, and who learns of it by reading there.

A release pattern is a release operation, or a fence and a later strong write of the same thread; an acquire pattern is
an acquire operation, or a strong read and a later fence. Reading at a location gives what all releases there so far
have to give (a reader that sees the last of several writes may know less than that; nothing is reported for it).
Scopes are taken to include one another.

Source: PTX ISA, "Release and Acquire Patterns", "Synchronizes-with".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.races.accesses import FENCE
from ptxdsl.races.clocks import Clock, nothing
from ptxdsl.sim.layout import RANK_SHIFT, SHARED_WINDOW, SPACES

if TYPE_CHECKING:
    from ptxdsl.races.actors import Strand
    from ptxdsl.races.site_kinds import Kind, Sites
    from ptxdsl.sim.machine.cta import Cta

Array = npt.NDArray[Any]
Location = tuple[int, int]  # the CTA's number and an offset in shared memory; -1 and a global address

_MOST_PLAIN = 1 << 12
_SHARED_SPACES = (SPACES["shared"], SPACES["cluster"])


class Flags:
    """Of a launch."""

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.released: dict[Location, Clock] = {}
        self._plain: set[bytes] = set()  # the sites of turns that have none which orders
        self.orders = np.array([k.fence or k.strong or k.meets for k in sites.kinds], bool)

    def split(self, records: Array) -> list[tuple[bool, Array]]:
        """The records in order, cut into those that order others (True), each alone, and runs of the rest."""
        sites = records["site"].tobytes()
        if sites in self._plain:
            return [(False, records)]
        ordering = self.orders[records["site"]]
        if not ordering.any():
            if len(self._plain) < _MOST_PLAIN:
                self._plain.add(sites)
            return [(False, records)]
        parts, start = [], 0
        for at in np.flatnonzero(ordering).tolist():
            if at > start:
                parts.append((False, records[start:at]))
            parts.append((True, records[at : at + 1]))
            start = at + 1
        if start < len(records):
            parts.append((False, records[start:]))
        return parts

    def order(self, strand: Strand, record: Array) -> None:
        """What one of the first sort does to what a strand knows."""
        kind = self.sites.kinds[int(record["site"][0])]
        if kind.meets:
            strand.meet()
            return
        if int(record["kind"][0]) == FENCE:
            self._fence(strand, kind)
            return
        for location in self._locations(strand.warp.cta, record):
            if kind.reads:
                self._read(strand, location, kind)
            if kind.writes:
                self._write(strand, location, kind)

    def _fence(self, strand: Strand, kind: Kind) -> None:
        if kind.acquires and strand.seen is not None:
            strand.clock.join(strand.seen)
            strand.seen = None
        if kind.releases:
            strand.fenced = strand.clock.copy()
            strand.tick()

    def _read(self, strand: Strand, location: Location, kind: Kind) -> None:
        released = self.released.get(location)
        if released is None:
            return
        if kind.acquires:
            strand.clock.join(released)
            return
        if strand.seen is None:
            strand.seen = nothing(strand.clock.domain)
        strand.seen.join(released)

    def _write(self, strand: Strand, location: Location, kind: Kind) -> None:
        given = strand.clock if kind.releases else strand.fenced
        if given is None:
            return
        released = self.released.get(location)
        if released is None:
            released = self.released[location] = nothing()
        released.join(given)
        if kind.releases:
            strand.tick()

    def _locations(self, cta: Cta, record: Array) -> set[Location]:
        mask, space = int(record["mask"][0]), int(record["space"][0])
        addresses = [a for i, a in enumerate(record["addresses"][0].tolist()) if mask >> i & 1]
        found = set()
        for address in addresses:
            if space not in _SHARED_SPACES and SHARED_WINDOW <= address < SHARED_WINDOW + (1 << 32):
                address -= SHARED_WINDOW
            elif space not in _SHARED_SPACES:
                found.add((-1, address))
                continue
            rank = address >> RANK_SHIFT
            if rank < len(cta.cluster.ctas):
                found.add((cta.cluster.ctas[rank].linear, address & ((1 << RANK_SHIFT) - 1)))
        return found
