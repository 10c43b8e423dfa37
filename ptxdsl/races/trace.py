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

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy.typing as npt

from ptxdsl.artifact import Compiled
from ptxdsl.cuda.simulated import Kernel, LaunchShape, simulation
from ptxdsl.diagnostics import Diagnostic, counted
from ptxdsl.races.accesses import Piece, elsewhere
from ptxdsl.races.by_lanes import ByLanes
from ptxdsl.races.findings import Race
from ptxdsl.races.in_bulk import Batch, InBulk
from ptxdsl.races.repeats import OneByOne, Repeats
from ptxdsl.races.shadow import Cells
from ptxdsl.races.trace_ends import TraceEnds
from ptxdsl.races.trace_memory import Step
from ptxdsl.record import dataclass
from ptxdsl.sim.copies.transfer import Transfer
from ptxdsl.sim.launch import Report
from ptxdsl.sim.matrix.wgmma import issued_before
from ptxdsl.sim.watch import How, Watch

if TYPE_CHECKING:
    from ptxdsl.sim.barriers.mbarrier import Barrier
    from ptxdsl.sim.host import Group
    from ptxdsl.sim.limits import Limits
    from ptxdsl.sim.machine.cta import AgentEntity, Cluster, Cta
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.schedule import Schedule
    from ptxdsl.sim.machine.warp import Warp

Array = npt.NDArray[Any]


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
        found = [
            {
                "kind": r.kind, "place": r.place, "stage": r.stage, "trip": r.trip,
                "before": {"stage": r.before_stage, "trip": r.before_trip},
            }
            for r in self.races
        ]  # fmt: skip
        return {"found": found, "incomplete": list(self.incomplete)}

    def summary(self) -> str:
        count = len(self.races)
        found = f"{counted(count, 'race')} found" if count else "no race found"
        return "; ".join([f"races: {found}", *self.incomplete])


def check_trace(
    kernel: Kernel | Compiled,
    arguments: Sequence[Any],
    *,
    arch: str = "sm_90a",
    schedule: Schedule | str | None = None,
    limits: Limits | None = None,
    by_lanes: bool = False,
    **shape: Unpack[LaunchShape],
) -> tuple[Found, Report]:
    """Simulates a launch and looks for races. Arrays are changed in place. by_lanes: see ``TraceCheck``.

    kernel: of the Python API, compiled for ``arch``, or what a compilation gave, with a single kernel. The other
    parameters are those of ``Kernel.simulate``. Raises what that raises.
    """
    watch = TraceCheck(by_lanes)
    report = simulation(kernel, arguments, arch, **shape)(schedule=schedule, limits=limits, watch=watch)
    return watch.found(), report


class TraceCheck(Watch):
    """Watches a run: makes events of what it is told, each with what it needs to be worked through later.

    A key says all of an event that what is known afterwards hangs on; numbers that grow (of a phase, of an asynchronous
    operation) follow from the events before, or are given as differences.
    """

    def __init__(self, by_lanes: bool = False) -> None:
        """by_lanes: no two lanes are taken for ordered because they run together (``by_lanes``); for small launches."""
        self.by_lanes = by_lanes
        self.in_bulk = not by_lanes

    def begin(self, machine: Machine) -> None:
        self.order = ByLanes(machine) if self.by_lanes else TraceEnds(machine)
        self.repeats = OneByOne()
        if self.in_bulk:
            self.repeats = repeats = Repeats(self.order)
            self.in_host_code = InBulk(self, repeats)
        self.agents = 0  # that have been issued

    def found(self) -> Found:
        """After the run."""
        incomplete = []
        log, races = self.order.machine.log, self.order.races
        if log is not None and log.lost:
            incomplete.append(f"{log.lost:,} accesses were not looked at")
        if races.cut:
            incomplete.append(f"{races.cut} more pairs of instructions are not shown")
        return Found(tuple(races.found), tuple(incomplete))

    # Accesses

    def happened(self, events: Array, phases: Array, words: memoryview) -> None:
        self.in_host_code.happened(Batch(events, phases, words))

    def ran(self, warp: Warp) -> None:
        steps = self.order.steps(warp)
        if steps and self.by_lanes:
            self.order.ran(warp, steps)
        elif steps:
            self.accessed(warp, steps)

    def accessed(self, warp: Warp, steps: list[Step]) -> None:
        """Compiled code of a warp has come back."""
        key: list[Hashable] = ["ran", warp]
        own: list[Step] = []
        others: list[Piece[Cells]] = []
        for lanes, what in steps:
            key.append(lanes)
            if not isinstance(what, list):
                site = int(what["site"][0])
                # What operations order by way of memory is not repeated.
                key.append(site if self.order.sites.kinds[site].meets else object())
                own.append((lanes, what))
                continue
            there = [piece for piece in what if not piece.cells.own]
            if not there:
                key += what
                own.append((lanes, what))
                continue
            key += [piece if piece.cells.own else elsewhere(piece) for piece in what]
            own.append((lanes, [piece for piece in what if piece.cells.own]))
            others += there
        if others:
            self.repeats.tell_accesses(tuple(key), others, self.order.ran, (warp, steps), (warp, own))
        else:
            self.repeats.tell(tuple(key), self.order.ran, warp, steps)

    def touches(self, cta: Cta, space: str, starts: int | Array, size: int, how: How) -> None:
        tile = self.order.tile(cta, space, starts, size, how)
        if tile is not None:
            self.repeats.tell(tile, self.order.touches, tile.parts[0])
            return
        pieces = self.order.touched(cta, space, starts, size, how)
        key: list[Hashable] = ["touches"]
        for piece in pieces:
            key.append(_here(piece) if piece.cells.own else elsewhere(piece))
        others = [piece for piece in pieces if not piece.cells.own]
        own = [piece for piece in pieces if piece.cells.own]
        self.repeats.tell_accesses(tuple(key), others, self.order.touches, (pieces,), (own,))

    def touches_in_parts(self, cta: Cta, space: str, parts: tuple[Array, ...], size: int, how: How) -> None:
        tile = self.order.tile_of_parts(cta, space, parts, size, how)
        self.repeats.tell(tile, self.order.touches_in_parts, tile)

    def tensor(self, cta: Cta, lanes: int, first: int, end: int, how: How) -> None:
        self.repeats.tell(("tensor", cta, lanes, first, end, how), self.order.tensor, cta, lanes, first, end, how)

    def joined(self, warp: Warp, mask: int) -> None:
        self.repeats.tell(("joined", warp, mask), self.order.joined, warp, mask)

    # Instructions

    def stands(self, group: Group) -> None:
        instruction = group.instruction
        issued = issued_before(group) if instruction.opcode.startswith("wgmma.mma_async") else None
        self.repeats.tell(("stands", group.warp, instruction, group.mask), self.order.stands, group, issued)

    def only(self, mask: int) -> None:
        if isinstance(self.order, ByLanes):
            self.order.only(mask)

    def executed(self, group: Group) -> None:
        if not group.instruction.opcode.startswith("mbarrier"):  # these are told of by what they do
            self.repeats.tell("executed", self.order.executed, group)

    def comes(self, group: Group, meeting: object, generation: int) -> None:
        self.repeats.tell(("comes", meeting), self.order.comes, group, meeting, generation)

    def leaves(self, group: Group, meeting: object, generation: int) -> None:
        self.repeats.tell(("leaves", meeting), self.order.leaves, group, meeting, generation)

    # Asynchronous work

    def issued(self, entity: AgentEntity) -> None:
        self.agents += 1
        self.repeats.tell(("issued", entity.cta, entity.unit, type(entity.agent)), self.order.issued, entity)

    def turn(self, entity: AgentEntity) -> None:
        agent = entity.agent
        read_done = isinstance(agent, Transfer) and agent.read_done
        self.repeats.tell(("turn", self.agents - entity.number, read_done), self.order.turn, entity, read_done)

    def part(self, rank: int) -> None:
        self.repeats.tell(("part", rank), self.order.part, rank)

    # mbarriers

    def initialised(self, barrier: Barrier) -> None:
        self.repeats.once(self.order.initialised, barrier)

    def invalidated(self, barrier: Barrier) -> None:
        self.repeats.once(self.order.invalidated, barrier)

    def used(self, barrier: Barrier) -> None:
        self.repeats.tell(("used", barrier), self.order.used, barrier)

    def arrives(self, barrier: Barrier, count: int) -> None:
        self.repeats.tell(("arrives", barrier), self.order.arrives, barrier, barrier.phase)

    def completed(self, barrier: Barrier) -> None:
        self.repeats.tell(("completed", barrier), self.order.completed, barrier, barrier.phase - 1)

    def saw(self, group: Group, barrier: Barrier) -> None:
        self.repeats.tell(("saw", barrier), self.order.saw, group, barrier, barrier.phase - 1)

    # Ends

    def exited(self, cta: Cta) -> None:
        self.repeats.once(self.order.exited, cta)

    def gone(self, cluster: Cluster) -> None:
        self.repeats.once(self.order.gone, cluster)


def _here(piece: Piece[Cells]) -> Hashable:
    """What there is to say of an access to memory of a cluster's own."""
    starts = piece.starts
    return piece.cells, piece.kind, piece.size, starts if isinstance(starts, int) else starts.tobytes()
