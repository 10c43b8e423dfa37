"""The barrier of a cluster: ``barrier.cluster``.

Source: PTX ISA, "barrier.cluster".
"""

from __future__ import annotations

from ptxdsl.sim.host import Group, Wait, WaitsFor, handles
from ptxdsl.sim.machine.cta import Cluster
from ptxdsl.sim.machine.faults import CLUSTER_MISUSE
from ptxdsl.sim.machine.warp import Warp

_KEY = "barriers"


class ClusterBarrier:
    """A cluster's hardware barrier. arrived: lanes of each warp in the generation under way.

    pending: of each warp the lanes that have arrived and not yet waited.
    """

    __slots__ = ("arrived", "cluster", "done_at", "generation", "known", "latest", "pending", "stamp")

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.generation = 0
        self.latest = self.done_at = 0
        self.arrived: dict[Warp, int] = {}
        self.pending: dict[Warp, int] = {}
        self.stamp = (-1, -1)
        self.known = False

    def satisfied(self) -> bool:
        """Whether all threads that have not exited have arrived. Counted again when a thread arrived or exited."""
        stamp = (sum(mask.bit_count() for mask in self.arrived.values()), sum(cta.exits for cta in self.cluster.ctas))
        if stamp != self.stamp:
            self.stamp = stamp
            self.known = bool(self.arrived) and not self.missing()
        return self.known

    def missing(self) -> tuple[Warp, ...]:
        arrived = self.arrived
        return tuple(w for cta in self.cluster.ctas for w in cta.warps if w.live & ~arrived.get(w, 0))

    def complete(self) -> None:
        if self.satisfied():
            self.generation += 1
            self.done_at = self.latest
            self.arrived = {}
            self.stamp = (-1, -1)

    def describe(self) -> WaitsFor:
        arrived = sum(mask.bit_count() for mask in self.arrived.values())
        threads = sum(cta.live_threads for cta in self.cluster.ctas)
        state = f"{arrived} of {threads} threads have arrived"
        return WaitsFor("cluster barrier", "", state, key=self, by=self.missing())


@handles("barrier.cluster.arrive")
def cluster_arrive(group: Group) -> None:
    barrier = _cluster_barrier(group)
    again = barrier.pending.get(group.warp, 0) & group.mask
    if again:
        raise group.fault(
            CLUSTER_MISUSE,
            "a second barrier.cluster.arrive without a barrier.cluster.wait between the two",
            "a thread arrives once, then waits",
        )
    for lanes in (barrier.arrived, barrier.pending):
        lanes[group.warp] = lanes.get(group.warp, 0) | group.mask
    barrier.latest = max(barrier.latest, group.time)
    group.touch(barrier)
    if group.machine.watch is not None:
        group.machine.watch.comes(group, barrier, barrier.generation)
    barrier.complete()


@handles("barrier.cluster.wait")
def cluster_wait(group: Group) -> Wait | None:
    barrier = _cluster_barrier(group)
    warp = group.warp
    if group.mask & ~barrier.pending.get(warp, 0):
        raise group.fault(
            CLUSTER_MISUSE,
            "barrier.cluster.wait without a barrier.cluster.arrive before it",
            "every thread arrives first: barrier.cluster.arrive",
        )
    arrived = barrier.arrived.get(warp, 0) & group.mask
    generation = barrier.generation + (1 if arrived else 0)

    def then(group: Group) -> None:
        barrier.complete()
        group.after(barrier.done_at)
        if group.machine.watch is not None:
            group.machine.watch.leaves(group, barrier, generation - 1)
        barrier.pending[warp] &= ~group.mask

    def ready() -> bool:
        return barrier.generation >= generation or barrier.satisfied()

    if ready():
        then(group)
        return None
    return Wait(ready, barrier.describe, then, at=lambda: barrier.done_at)


def _cluster_barrier(group: Group) -> ClusterBarrier:
    if "aligned" in group.instruction.opcode:
        group.require_whole_warp()
    cluster = group.cta.cluster
    return group.machine.state(cluster, _KEY, lambda: ClusterBarrier(cluster))
