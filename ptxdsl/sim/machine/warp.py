"""Warps: 32 lanes that run together, their record and their register file."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from ptxdsl.sim.layout import BLOCKED, EXITED, LANES, RUNNABLE, WARP, cells, offset
from ptxdsl.sim.machine.memory import Bytes, host_address
from ptxdsl.sim.record_fields import fields_of

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.polling import Poll
    from ptxdsl.sim.machine.waits import Blocked

FULL = (1 << LANES) - 1

# Indices of a warp record's fields in its 32-bit words and, for those of 64 bits, its 64-bit words.
WAIT_QUAD = offset(WARP, "wait") // 8
FUEL_WORD = offset(WARP, "fuel") // 4
MASK_WORD = offset(WARP, "mask") // 4
SITE_WORD = offset(WARP, "site") // 4
MEMBERS_WORD = offset(WARP, "members") // 4
RETIRED_QUAD = offset(WARP, "retired") // 8
ISSUED_QUAD = offset(WARP, "issued") // 8
TOLD_RETIRED_QUAD = offset(WARP, "told_retired") // 8
TOLD_ISSUED_QUAD = offset(WARP, "told_issued") // 8

_FIRST_FIELD = "clock"
# Those that begin with zero.
_ZERO = (
    "retired", "issued", "issued_before", "own", "clock", "changes", "woken_at", "told_issued", "told_retired",
    "turns_alone", "blocked", "queued", "unfenced", "stray_site", "wait",
)  # fmt: skip

_LANE_BITS = np.arange(LANES, dtype=np.uint32)


@lru_cache(4096)
def lanes_of(mask: int) -> npt.NDArray[np.bool_]:
    """32 booleans, shared: not to be changed."""
    lanes: npt.NDArray[np.bool_] = (np.uint32(mask) >> _LANE_BITS & 1).astype(bool)
    lanes.flags.writeable = False
    return lanes


@lru_cache(4096)
def lane_numbers(mask: int) -> tuple[int, ...]:
    """The lanes of a mask, in order."""
    return tuple(lane for lane in range(LANES) if mask >> lane & 1)


def mask_of(lanes: npt.NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(lanes, bitorder="little").tobytes(), "little")


class WarpStorage:
    """A warp's record and register file, and views of them that are made once."""

    def __init__(
        self, record: Bytes, registers: Bytes, cta_record: int, index: int, block: tuple[int, int, int]
    ) -> None:
        self.address = host_address(record)
        self.machines = cells(record[offset(WARP, _FIRST_FIELD) :], "Q")  # what ``Warp`` has as attributes
        self.words = cells(record, "I")
        self.quads = cells(record, "Q")
        fields: npt.NDArray[Any] = record.view(WARP)
        self.pc: npt.NDArray[np.int32] = fields["pc"][0]
        self.status: npt.NDArray[np.int32] = fields["status"][0]
        self.fields = fields
        self.registers = registers
        self.views: dict[tuple[str, str], Any] = {}  # by Group: register and type -> view
        self.bits: dict[tuple[int, str], Any] = {}  # by Group: operand and type -> what reads its bytes
        thread = index * LANES + np.arange(LANES)
        self.tid: npt.NDArray[np.uint32] = fields["tid"][0]
        self.tid[:] = (thread % block[0], thread // block[0] % block[1], thread // (block[0] * block[1]))
        threads = block[0] * block[1] * block[2]
        self.first_status = np.where(thread < threads, RUNNABLE, EXITED).astype(np.int32)
        self.lanes = mask_of(thread < threads)
        fields["cta"] = cta_record
        fields["registers"] = host_address(registers)
        fields["index"] = index

    def reset(self) -> None:
        self.pc.fill(0)
        self.status[:] = self.first_status
        self.registers.fill(0)
        for name in _ZERO:
            self.fields[name] = 0


class Warp(ctypes.Structure):
    """32 lanes. ``live``: those that have not exited, as far as known (``refresh``); ``blocked``: those that wait.

    clock: cycles of the cost model. changes: host instructions that changed something. turns_alone: of some lanes while
    others could run. unfenced: live mbarriers that it has initialised and not fenced. number: in its cluster; slot:
    among those that move (``host_turns``). stray_site, stray_lanes: see ``layout.WARP``. polls: what is known of loops
    that only look (``polling``).
    """

    unit = "warp"

    _fields_ = fields_of(WARP, _FIRST_FIELD, "stray_lanes")
    clock: int
    changes: int
    woken_at: int
    turns_alone: int
    blocked: int
    live: int
    queued: int
    slot: int
    number: int
    unfenced: int
    stray_site: int
    stray_lanes: int

    def __new__(cls, cta: Cta, index: int, storage: WarpStorage, fuel: int) -> Self:
        return cls.from_buffer(storage.machines)

    __hash__ = object.__hash__  # ctypes has none

    def __init__(self, cta: Cta, index: int, storage: WarpStorage, fuel: int) -> None:
        self.cta = cta
        self.index = index
        self.name = f"{cta.name}.warp{index}"
        self.storage = storage
        self.address = storage.address
        self.words = storage.words
        self.quads = storage.quads
        self.pc = storage.pc
        self.status = storage.status
        self.registers = storage.registers
        self.live = storage.lanes
        self._waits: list[Blocked] = []
        self.fuel = fuel
        self.polls: dict[tuple[int, int], Poll] = {}  # by site and mask
        self.poll_changes = 0  # ``changes`` when they were begun
        self.probe = False  # the next turn looks whether it is still in a loop that only looks
        self.patience = 0  # turns between such looks at a long loop
        self.patience_left = 0
        self.parked = 0  # lanes that stand back for one turn so that others of the warp come on
        self.states: dict[object, Any] = {}

    @property
    def waits(self) -> list[Blocked]:
        if self.quads[WAIT_QUAD]:
            assert self.cta.cluster.host_turns is not None
            self._waits.append(self.cta.cluster.host_turns.take_back(self))
        return self._waits

    @waits.setter
    def waits(self, waits: list[Blocked]) -> None:
        self._waits = waits

    @property
    def has_waits(self) -> bool:
        """Whether the machine keeps any."""
        return bool(self._waits)

    def woken(self, time: int) -> None:
        """What its lanes waited for was done at a time."""
        self.woken_at = time

    def refresh(self) -> None:
        """Looks which lanes have exited since."""
        live = mask_of(self.status != EXITED)
        if live != self.live:
            self.cta.live_threads -= (self.live & ~live).bit_count()
            self.cta.exits += 1
            self.live = live

    def block(self, mask: int) -> None:
        self.blocked |= mask
        if mask == FULL:
            self.status.fill(BLOCKED)
        else:
            self.status[lanes_of(mask)] = BLOCKED

    def release(self, mask: int, pc: int | None = None) -> None:
        """Lets blocked lanes run again, at another block if one is given."""
        self.blocked &= ~mask
        if mask == FULL:
            self.status.fill(RUNNABLE)
            if pc is not None:
                self.pc.fill(pc)
            return
        lanes = lanes_of(mask)
        self.status[lanes] = RUNNABLE
        if pc is not None:
            self.pc[lanes] = pc

    def advance(self, mask: int, pc: int) -> None:
        """Lanes that run go on at a block."""
        if mask == FULL:
            self.pc.fill(pc)
        else:
            self.pc[lanes_of(mask)] = pc

    def __repr__(self) -> str:
        return self.name
