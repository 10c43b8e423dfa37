"""The trace check at the end of CTAs and clusters: what must be over then, and what is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.races.clocks import GENERIC, Clock
from ptxdsl.races.trace_order import TraceOrder
from ptxdsl.sim.barriers.cluster_barrier import ClusterBarrier
from ptxdsl.sim.barriers.named_barrier import NamedBarrier

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cluster, Cta


class TraceEnds(TraceOrder):
    """All that the check does with the events of a run."""

    def exited(self, cta: Cta) -> None:
        domain = self.domain(cta.cluster)
        known = domain.clock()
        for warp in cta.warps:
            if warp in self.lanes:
                known.join(self.lanes[warp].all())
        known.fit(domain.capacity)
        for component, (end, instruction) in self.unfinished.pop(cta, {}).items():
            if known.own[GENERIC, component] < end:
                self.races.add_exit(cta, instruction, domain.what[component].unit)
        if len(cta.cluster.ctas) > 1:
            self._remote_at_exit(cta, known)

    def _remote_at_exit(self, cta: Cta, known: Clock) -> None:
        """What others of the cluster do to a CTA's memory and barriers must be over when it exits."""
        for barrier, gate in self.gates.items():
            if barrier.table is cta.cluster.states.get(type(barrier.table)) and barrier.rank == cta.rank:
                for component, (time, instruction) in gate.used.items():
                    if known.own[GENERIC, component] < time:
                        self.races.add_exit_use(cta, barrier, instruction, component)
                        break
        cells = self.spaces.shared_cells.get(cta)
        if cells is None:
            return
        for actor, site in cells.unknown_to(known.own[GENERIC]):
            self.races.add_exit_access(cta, actor, site)

    def gone(self, cluster: Cluster) -> None:
        for cta in cluster.ctas:
            self.spaces.forget(cta)
            self.ranges.forget(cta)
            self.tiles.pop(cta, None)
            self.unfinished.pop(cta, None)
            for warp in cta.warps:
                self.lanes.pop(warp, None)
                self.products.pop(warp, None)
        ctas = set(cluster.ctas)
        self.gates = {b: g for b, g in self.gates.items() if g.domain is not self.domains.get(cluster)}
        self.units = {key: unit for key, unit in self.units.items() if key[0] not in ctas}
        self.groups = {key: groups for key, groups in self.groups.items() if key[0].cta not in ctas}
        self.meetings = {m: c for m, c in self.meetings.items() if not self._of(m, cluster)}
        self.domains.pop(cluster, None)

    @staticmethod
    def _of(meeting: object, cluster: Cluster) -> bool:
        if isinstance(meeting, ClusterBarrier):
            return meeting.cluster is cluster
        return isinstance(meeting, NamedBarrier) and meeting.cta.cluster is cluster
