"""Clusters, CTAs and warps, and the storage that they use one after another.

A CTA's window of shared memory, its local memory, records and register files are a ``CtaStorage``; when the CTA is done
the next one gets it. So a grid of ten thousand CTAs needs the memory of those that run at once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.sim import layout
from ptxdsl.sim.layout import BLOCKED, CTA, EXITED, LANES, RUNNABLE, WARP, cells, offset
from ptxdsl.sim.machine.memory import CLUSTER_LIMIT, Bytes, aligned_bytes, host_address

if TYPE_CHECKING:
    from ptxdsl.sim.host import Agent
    from ptxdsl.sim.machine.polling import Poll
    from ptxdsl.sim.machine.waits import Blocked

FULL = (1 << LANES) - 1
UNINITIALISED = 0xFF  # what shared and local memory hold before the first write: NaN, -1
_SMS = 132  # %smid: CTAs are dealt to this many

# Indices of a warp record's fields in its 32-bit words and, for those of 64 bits, its 64-bit words.
FUEL_WORD = offset(WARP, "fuel") // 4
MASK_WORD = offset(WARP, "mask") // 4
SITE_WORD = offset(WARP, "site") // 4
MEMBERS_WORD = offset(WARP, "members") // 4
RETIRED_QUAD = offset(WARP, "retired") // 8
ISSUED_QUAD = offset(WARP, "issued") // 8

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
        for name in ("retired", "issued", "issued_before", "own"):
            self.fields[name] = 0


class CtaStorage:
    """Memory of one CTA. ``bytes`` is its size."""

    def __init__(
        self, block: tuple[int, int, int], shared_end: int, local_bytes: int, register_bytes: int, launch_record: int
    ) -> None:
        threads = block[0] * block[1] * block[2]
        warps = -(-threads // LANES)
        self.window = aligned_bytes(shared_end)
        self.local = aligned_bytes(threads * local_bytes)
        self.peers: npt.NDArray[np.uint64] = aligned_bytes(8 * CLUSTER_LIMIT).view(np.uint64)
        record = aligned_bytes(CTA.itemsize)
        self.fields: npt.NDArray[Any] = record.view(CTA)
        self.address = host_address(record)
        self.window_address = host_address(self.window)
        self.peers[0] = self.window_address  # of a CTA without a cluster
        self.fields["launch"] = launch_record
        self.fields["shared"] = self.window_address
        self.fields["shared_end"] = shared_end
        self.fields["peers"] = host_address(self.peers)
        self.fields["local"] = host_address(self.local)
        self.fields["local_bytes"] = local_bytes
        stride = -(-WARP.itemsize // 64) * 64
        records = aligned_bytes(warps * stride)
        file_stride = -(-max(register_bytes, 1) // 256) * 256
        files = aligned_bytes(warps * file_stride)
        self.warps = [
            WarpStorage(
                records[i * stride : i * stride + WARP.itemsize],
                files[i * file_stride : (i + 1) * file_stride],
                self.address,
                i,
                block,
            )
            for i in range(warps)
        ]
        self.bytes = len(self.window) + len(self.local) + len(records) + len(files)

    def reset(self) -> None:
        self.window[layout.SHARED_START :].fill(UNINITIALISED)
        self.local.fill(UNINITIALISED)
        for warp in self.warps:
            warp.reset()


class Warp:
    """32 lanes. ``live``: those that have not exited, as far as known (``refresh``); ``blocked``: those that wait.

    clock: cycles of the cost model. polls: what is known of loops that only look (``polling``).
    """

    unit = "warp"

    __slots__ = (
        "address",
        "blocked",
        "changes",
        "clock",
        "cta",
        "fuel",
        "index",
        "issued",
        "live",
        "name",
        "parked",
        "patience",
        "patience_left",
        "pc",
        "poll_changes",
        "polls",
        "probe",
        "quads",
        "queued",
        "registers",
        "retired",
        "states",
        "status",
        "storage",
        "turns_alone",
        "waits",
        "woken_at",
        "words",
    )

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
        self.blocked = 0
        self.waits: list[Blocked] = []
        self.queued = False
        self.clock: int = 0
        self.fuel = fuel
        self.changes = 0  # host instructions of this warp that changed something
        self.retired = 0
        self.issued = 0
        self.polls: dict[tuple[int, int], Poll] = {}  # by site and mask
        self.poll_changes = 0  # ``changes`` when they were begun
        self.probe = False  # the next turn looks whether it is still in a loop that only looks
        self.patience = 0  # turns between such looks at a long loop
        self.patience_left = 0
        self.parked = 0  # lanes that stand back for one turn so that others of the warp come on
        self.woken_at = 0
        self.turns_alone = 0
        self.states: dict[object, Any] = {}

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


class Cta:
    """One CTA. linear: its number in the grid, x fastest; id: %ctaid; rank: %cluster_ctarank.

    window: its shared memory, indexed by offset. states: what families of instructions keep of it (``Machine.state``).
    """

    def __init__(
        self, cluster: Cluster, linear: int, id: tuple[int, int, int], rank: int, storage: CtaStorage, fuel: int
    ) -> None:
        self.cluster = cluster
        self.linear = linear
        self.id = id
        self.rank = rank
        self.name = f"cta{linear}"
        self.storage = storage
        self.window = storage.window
        self.local = storage.local
        self.states: dict[object, Any] = {}
        self.agents = 0  # under way
        self.agent_numbers: dict[str, int] = {}  # by unit, to name the next
        storage.reset()
        self.warps = [Warp(self, i, warp, fuel) for i, warp in enumerate(storage.warps)]
        self.live_threads = sum(warp.live.bit_count() for warp in self.warps)
        self.live_warps = len(self.warps)
        self.exits = 0  # counts changes of live_threads

    @property
    def exited(self) -> bool:
        """No thread is left (asynchronous work may be)."""
        return self.live_warps == 0

    @property
    def done(self) -> bool:
        return self.live_warps == 0 and self.agents == 0

    def __repr__(self) -> str:
        return self.name


class Cluster:
    """CTAs that share memory; a launch without clusters has one CTA in each.

    blocked: its warps and agents that wait, in the order in which they began to.
    """

    def __init__(
        self,
        index: int,
        grid: tuple[int, int, int],
        shape: tuple[int, int, int],
        storages: list[CtaStorage],
        fuel: int,
    ) -> None:
        self.index = index
        self.name = f"cluster{index}"
        self.states: dict[object, Any] = {}
        self.blocked: dict[Any, None] = {}
        self.storages = storages
        counts = tuple(g // s for g, s in zip(grid, shape, strict=True))
        at = (index % counts[0], index // counts[0] % counts[1], index // (counts[0] * counts[1]))
        self.ctas: list[Cta] = []
        for rank, storage in enumerate(storages):
            inner = (rank % shape[0], rank // shape[0] % shape[1], rank // (shape[0] * shape[1]))
            id = (at[0] * shape[0] + inner[0], at[1] * shape[1] + inner[1], at[2] * shape[2] + inner[2])
            linear = id[0] + grid[0] * (id[1] + grid[1] * id[2])
            fields = storage.fields
            fields["rank"] = rank
            fields["id"] = id
            fields["cluster_id"] = at
            fields["cluster_cta_id"] = inner
            fields["smid"] = linear % _SMS
            if len(storages) > 1:  # CTAs that exited before were cut off
                storage.peers[: len(storages)] = [peer.window_address for peer in storages]
            self.ctas.append(Cta(self, linear, id, rank, storage, fuel))

    def cut_off(self, cta: Cta) -> None:
        """The threads of a CTA have exited: its shared memory cannot be reached by the others any more."""
        for peer in self.ctas:
            if peer is not cta:
                peer.storage.peers[cta.rank] = 0

    def __repr__(self) -> str:
        return self.name


class AgentEntity:
    """An asynchronous agent in the schedule. number: in the launch, in the order in which they began. clock: when it
    began, or was last made ready."""

    __slots__ = ("agent", "clock", "cluster", "cta", "name", "number", "queued", "unit")

    def __init__(self, agent: Agent, name: str, number: int, clock: int) -> None:
        self.agent = agent
        self.number = number
        self.cta: Cta = agent.cta
        self.cluster: Cluster = agent.cta.cluster
        self.unit = agent.unit
        self.name = name
        self.clock = clock
        self.queued = False

    def woken(self, time: int) -> None:
        """What it waited for was done at a time."""
        if time > self.clock:
            self.clock = time

    def __repr__(self) -> str:
        return self.name
