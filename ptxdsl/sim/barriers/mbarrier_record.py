"""What is counted of an mbarrier, in a record that turns in host code change as well (``layout.BARRIER``).

Host code notes what warps bring and see; here that becomes the ledgers and tables of the reports, when these are asked
for or before the machine adds to them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from ptxdsl.sim.layout import BARRIER, KNOWN, cells, offset
from ptxdsl.sim.machine.ledger import Ledger
from ptxdsl.sim.machine.memory import aligned_bytes, host_address
from ptxdsl.sim.record_fields import fields_of

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cluster
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.warp import Warp

_BROUGHT, _BEFORE = offset(BARRIER, "brought") // 4, offset(BARRIER, "brought_before") // 4
_FIRST_FIELD = "word"
_BY_MACHINE = -1


class Record(ctypes.Structure):
    """Counts are of the phase under way, ``phase`` its number from 0. seen: the newest phase that a wait has found
    complete, -1 if none. done_at: the time at which the last phase was completed, ``latest`` that of the phase's
    arrivals. word: what the last operation left in memory."""

    _fields_ = fields_of(BARRIER, _FIRST_FIELD, "tx")
    word: int
    phase: int
    seen: int
    latest: int
    done_at: int
    pending: int
    expected: int
    tx: int
    fields: npt.NDArray[Any]

    def __new__(cls, *_: object) -> Self:
        memory = aligned_bytes(BARRIER.itemsize)
        made = cls.from_buffer(cells(memory[offset(BARRIER, _FIRST_FIELD) :], "Q"))
        made.fields = memory.view(BARRIER)
        return made

    __hash__ = object.__hash__  # ctypes has none

    def __init__(self, machine: Machine | None, cluster: Cluster | None, cell: int) -> None:
        """cell: host address of its 8 bytes. Without a cluster nobody is known."""
        self._machine = machine
        warps: Sequence[Warp] = () if cluster is None else [warp for cta in cluster.ctas for warp in cta.warps]
        self._warps = warps
        self._known = aligned_bytes(KNOWN.itemsize * len(warps)).view(KNOWN)
        self._words = cells(self.fields.view(np.uint8), "i")
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
        count = self._words[_BROUGHT]
        if count:
            machine = self._machine
            assert machine is not None
            for phase, warp, site, arrivals, expected in self.fields["records"][0][:count].tolist():
                self._turn_to(phase)
                self._ledger.add(self._warps[warp], machine.sites[site].instruction, arrivals, expected, 0)
            self._words[_BROUGHT] = self._words[_BEFORE] = 0
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
