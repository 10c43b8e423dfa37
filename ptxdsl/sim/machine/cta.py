"""Clusters, CTAs and warps, and the storage that they use one after another.

A CTA's window of shared memory, its local memory, records and register files are a ``CtaStorage``; when the CTA is done
the next one gets it. So a grid of ten thousand CTAs needs the memory of those that run at once.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.sim import layout
from ptxdsl.sim.layout import CTA, LANES, RANK_SHIFT, WARP, cells, offset
from ptxdsl.sim.machine.memory import CLUSTER_LIMIT, aligned_bytes, host_address
from ptxdsl.sim.machine.warp import Warp, WarpStorage

if TYPE_CHECKING:
    from ptxdsl.sim.host import Agent
    from ptxdsl.sim.machine.host_turns import HostTurns

UNINITIALISED = 0xFF  # what shared and local memory hold before the first write: NaN, -1
_SMS = 132  # %smid: CTAs are dealt to this many
_LIVE_WORD = offset(CTA, "live") // 4


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
        self.barriers: npt.NDArray[np.uint64] = aligned_bytes(shared_end // 8 * 8 + 8).view(np.uint64)
        self.tables: npt.NDArray[np.uint64] = aligned_bytes(8 * CLUSTER_LIMIT).view(np.uint64)
        self.tables[0] = host_address(self.barriers)
        self.fields["launch"] = launch_record
        self.fields["shared"] = self.window_address
        self.fields["shared_end"] = shared_end
        self.fields["peers"] = host_address(self.peers)
        self.fields["barriers"] = host_address(self.tables)
        self.fields["local"] = host_address(self.local)
        self.fields["local_bytes"] = local_bytes
        self.fields["warps"] = warps
        self.words = cells(record, "I")
        stride = -(-WARP.itemsize // 64) * 64
        records = aligned_bytes(warps * stride)
        file_stride = -(-max(register_bytes, 1) // 256) * 256
        files = aligned_bytes(warps * file_stride)
        self.files = files.reshape(warps, file_stride)  # of registers, one a warp
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

    def place_barrier(self, address: int, record: int) -> None:
        """An mbarrier lives at a shared address from now on, or (0) none. record: host address of its record."""
        self.barriers[(address & (1 << RANK_SHIFT) - 1) // 8] = record

    def reset(self) -> None:
        self.window[layout.SHARED_START :].fill(UNINITIALISED)
        self.local.fill(UNINITIALISED)
        self.barriers.fill(0)
        self.fields["named"] = self.fields["warpgroups"] = 0
        for warp in self.warps:
            warp.reset()


class Cta:
    """One CTA. linear: its number in the grid, x fastest; id: %ctaid; rank: %cluster_ctarank.

    window: its shared memory, indexed by offset. states: what families of instructions keep of it (``Machine.state``).
    """

    def __init__(
        self, cluster: Cluster, linear: int, id: tuple[int, int, int], rank: int, storage: CtaStorage, fuel: int
    ) -> None:
        self.cluster: Cluster = cluster
        self.linear = linear
        self.id = id
        self.rank: int = rank
        self.name = f"cta{linear}"
        self.storage: CtaStorage = storage
        self.window = storage.window
        self.local = storage.local
        self.states: dict[object, Any] = {}
        self.agents = 0  # under way
        self.agent_numbers: dict[str, int] = {}  # by unit, to name the next
        storage.reset()
        self.warps: list[Warp] = [Warp(self, i, warp, fuel) for i, warp in enumerate(storage.warps)]
        self.live_threads = sum(warp.live.bit_count() for warp in self.warps)
        self.live_warps = len(self.warps)
        self.exits = 0  # counts changes of live_threads

    @property
    def live_threads(self) -> int:
        """Threads that have not exited, as far as known."""
        return self.storage.words[_LIVE_WORD]

    @live_threads.setter
    def live_threads(self, count: int) -> None:
        self.storage.words[_LIVE_WORD] = count

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

    blocked: its warps and agents that wait, in the order in which they began to. host_turns: who keeps them, if turns
    are taken in host code.
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
        self.blocked: MutableMapping[Any, None] = {}
        self.host_turns: HostTurns | None = None
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
                storage.tables[: len(storages)] = [host_address(peer.barriers) for peer in storages]
            self.ctas.append(Cta(self, linear, id, rank, storage, fuel))
        for number, warp in enumerate(warp for cta in self.ctas for warp in cta.warps):
            warp.number = number

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

    __slots__ = ("agent", "clock", "cluster", "cta", "name", "number", "queued", "slot", "unit")

    def __init__(self, agent: Agent, name: str, number: int, clock: int) -> None:
        self.agent = agent
        self.number = number
        self.cta: Cta = agent.cta
        self.cluster: Cluster = agent.cta.cluster
        self.unit = agent.unit
        self.name = name
        self.clock = clock
        self.queued = False
        self.slot = 0  # see ``host_turns``

    def woken(self, time: int) -> None:
        """What it waited for was done at a time."""
        if time > self.clock:
            self.clock = time

    def __repr__(self) -> str:
        return self.name
