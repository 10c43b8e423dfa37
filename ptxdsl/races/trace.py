"""The trace check: races in one simulated run, also such as another schedule alone would have shown.

Whatever orders two accesses in every run that takes the same decisions is an edge here (``clocks``, ``actors``): the
order of a program, barriers of warps' lanes, CTAs and clusters, arrivals on mbarriers and the waits that see them,
completions of asynchronous work and the groups or barriers that tell of them, fences and flags in memory. Two accesses
that touch the same memory, one of them a write, without a chain of edges between them are a race, in whatever order
this run made them (Lamport 1978; Flanagan, Freund 2009). What the async proxy does is ordered after what the generic
proxy did only by a chain that has a proxy fence on it.

It says nothing of code that this run did not execute, nor of what another outcome of a race would lead to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ptxdsl.artifact import Compiled
from ptxdsl.cuda.simulated import Kernel, LaunchShape, simulation
from ptxdsl.diagnostics import Diagnostic
from ptxdsl.races.clocks import GENERIC, Clock
from ptxdsl.races.races import Race
from ptxdsl.races.trace_order import TraceOrder
from ptxdsl.record import dataclass
from ptxdsl.sim.barriers.cta_barriers import ClusterBarrier, NamedBarrier
from ptxdsl.sim.launch import Report

if TYPE_CHECKING:
    from ptxdsl.sim.limits import Limits
    from ptxdsl.sim.machine.cta import Cluster, Cta
    from ptxdsl.sim.machine.schedule import Schedule


@dataclass(frozen=True)
class Found:
    """What a watched run has shown. incomplete: why there may be more in the same run, in sentences. remarks: warnings
    of comments that allow a race and give no reason."""

    races: tuple[Race, ...]
    incomplete: tuple[str, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(race.diagnostic for race in self.races)

    def allowed(self) -> Found:
        """Without the races that a comment of the source allows (``report.suppressed``)."""
        from ptxdsl.check.report import suppressed

        kept = suppressed(self.diagnostics)
        races = tuple(race for race in self.races if race.diagnostic in kept)
        remarks = tuple(d for d in kept if d not in self.diagnostics)
        return Found(races, self.incomplete, remarks)

    def as_json(self) -> dict[str, Any]:
        """The stable form (``--json``): of each race, in the order of its diagnostic, what words do not say."""
        found = [{"kind": r.kind, "place": r.place, "stage": r.stage, "trip": r.trip} for r in self.races]
        return {"found": found, "incomplete": list(self.incomplete)}

    def summary(self) -> str:
        count = len(self.races)
        found = f"{count} race{'' if count == 1 else 's'} found" if count else "no race found"
        return "; ".join([f"races: {found}", *self.incomplete])


def check_trace(
    kernel: Kernel | Compiled,
    arguments: Sequence[Any],
    *,
    arch: str = "sm_90a",
    schedule: Schedule | str | None = None,
    limits: Limits | None = None,
    **shape: Unpack[LaunchShape],
) -> tuple[Found, Report]:
    """Simulates a launch and looks for races. Arrays are changed in place.

    kernel: of the Python API, compiled for ``arch``, or what a compilation gave, with a single kernel. The other
    parameters are those of ``Kernel.simulate``. Raises what that raises.
    """
    watch = TraceCheck()
    report = simulation(kernel, arguments, arch, **shape)(schedule=schedule, limits=limits, watch=watch)
    return watch.found(), report


class TraceCheck(TraceOrder):
    """Watches a run. races: what it has found."""

    def found(self) -> Found:
        """After the run."""
        incomplete = []
        log = self.machine.log
        if log is not None and log.lost:
            incomplete.append(f"{log.lost:,} accesses were not looked at")
        if self.races.cut:
            incomplete.append(f"{self.races.cut} more pairs of instructions are not shown")
        return Found(tuple(self.races.found), tuple(incomplete))

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
