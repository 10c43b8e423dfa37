"""What is counted of an mbarrier, in a record that turns in host code change as well (``layout.BARRIER``).

Host code notes what warps bring and see; here that becomes the ledgers and tables of the reports, when these are asked
for or before the machine adds to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxdsl.sim.layout import BARRIER, KNOWN, cells, offset
from ptxdsl.sim.machine.ledger import Ledger
from ptxdsl.sim.machine.memory import aligned_bytes, host_address
from ptxdsl.sim.record_fields import Quad, Word

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cluster
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.warp import Warp

_BROUGHT, _BEFORE = offset(BARRIER, "brought") // 4, offset(BARRIER, "brought_before") // 4
_WORD = offset(BARRIER, "word") // 8
_BY_MACHINE = -1


class Record:
    """Counts are of the phase under way, ``phase`` its number from 0. seen: the newest phase that a wait has found
    complete, -1 if none. done_at: the time at which the last phase was completed, ``latest`` that of the phase's
    arrivals."""

    __slots__ = (
        "_before",
        "_known",
        "_ledger",
        "_ledger_phase",
        "_machine",
        "_natural_quads",
        "_waited",
        "_warps",
        "fields",
        "quads",
        "words",
    )  # fmt: skip

    phase = Quad(BARRIER, "phase")
    seen = Quad(BARRIER, "seen")
    latest = Quad(BARRIER, "latest")
    done_at = Quad(BARRIER, "done_at")
    pending = Word(BARRIER, "pending")
    expected = Word(BARRIER, "expected")
    tx = Word(BARRIER, "tx")

    def __init__(self, machine: Machine | None, cluster: Cluster | None, cell: int) -> None:
        """cell: host address of its 8 bytes. Without a cluster nobody is known."""
        self._machine = machine
        warps: Sequence[Warp] = () if cluster is None else [warp for cta in cluster.ctas for warp in cta.warps]
        self._warps = warps
        record = aligned_bytes(BARRIER.itemsize)
        self._known = aligned_bytes(KNOWN.itemsize * len(warps)).view(KNOWN)
        self.fields = record.view(BARRIER)
        self.words, self.quads, self._natural_quads = cells(record, "i"), cells(record, "q"), cells(record, "Q")
        self.fields["cell"], self.fields["known"] = cell, host_address(self._known)
        self.seen = -1
        self._ledger = Ledger()
        self._before: Ledger | None = None
        self._ledger_phase = 0
        self._waited: dict[tuple[Warp, int], int] = {}

    @property
    def record(self) -> int:
        """Its host address."""
        return host_address(self.fields)

    @property
    def word(self) -> int:
        """What the last operation left in memory."""
        return self._natural_quads[_WORD]

    @word.setter
    def word(self, word: int) -> None:
        self._natural_quads[_WORD] = word

    # Who has brought what

    @property
    def ledger(self) -> Ledger:
        """Who has brought what in the phase under way."""
        self._take_in()
        return self._ledger

    @property
    def before(self) -> Ledger | None:
        """The same of the phase before it."""
        self._take_in()
        return self._before

    def _take_in(self) -> None:
        count = self.words[_BROUGHT]
        if count:
            machine = self._machine
            assert machine is not None
            for phase, warp, site, arrivals, expected in self.fields["records"][0][:count].tolist():
                self._turn_to(phase)
                self._ledger.add(self._warps[warp], machine.sites[site].instruction, arrivals, expected, 0)
            self.words[_BROUGHT] = self.words[_BEFORE] = 0
        self._turn_to(self.phase)

    def _turn_to(self, phase: int) -> None:
        if phase > self._ledger_phase:
            self._before = self._ledger if phase == self._ledger_phase + 1 else Ledger()
            self._ledger, self._ledger_phase = Ledger(), phase

    # Who has arrived and waited

    def touched(self, warp: Warp) -> None:
        """The machine has noted where a warp has arrived last."""
        self._known["arrived"][warp.number] = _BY_MACHINE

    def seen_by(self, warp: Warp, lanes: int, phase: int) -> bool:
        """Lanes of a warp have seen a phase complete. Whether they had seen the same one before."""
        known = self._known[warp.number]
        masks = known["masks"].tolist()
        for place, mask in enumerate(masks):
            if mask in (0, lanes):
                again: bool = mask == lanes and known["phases"].item(place) == phase
                known["masks"][place], known["phases"][place] = lanes, phase
                return again
        again = self._waited.get((warp, lanes)) == phase
        self._waited[warp, lanes] = phase
        return again

    def last_seen_by(self, warp: Warp) -> int:
        """The newest phase that lanes of a warp have seen complete, -1 if none."""
        known = self._known[warp.number]
        phases = known["phases"][known["masks"] != 0].tolist()
        return max([*phases, *(phase for (one, _), phase in self._waited.items() if one is warp)], default=-1)

    def arrivals_in_host_code(self) -> list[tuple[Warp, int]]:
        """Of warps that have arrived there since the machine noted it: the site of the last arrival."""
        arrived = self._known["arrived"].tolist()
        return [(warp, mark - 1) for warp, mark in zip(self._warps, arrived, strict=True) if mark > 0]
