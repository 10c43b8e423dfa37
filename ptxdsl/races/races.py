"""Conflicting accesses in words, once for each pair of instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.check import classes
from ptxdsl.diagnostics import Diagnostic
from ptxdsl.races.actors import Actor, Passed
from ptxdsl.races.findings import Findings, Race
from ptxdsl.races.shadow import Before, Cells

if TYPE_CHECKING:
    from ptxdsl.races.accesses import Spaces
    from ptxdsl.sim.machine.cta import Cta

HELP = {
    classes.READ_BEFORE_FULL: "wait for the barrier that the one who fills it arrives on, with the stage's own phase",
    classes.OVERWRITTEN: "write only after a wait for the barrier on which all who use the memory arrive when they are "
    "done with it",
    classes.STALE_STAGE: "take slot, barrier and phase from the same state, before step()",
    classes.DATA_RACE: "put a barrier between the two, or use atomic operations or a flag with release and acquire",
}


class Races(Findings):
    """Tells conflicting accesses in words."""

    def add(self, actor: Actor, cells: Cells, before: Before, read: bool, spaces: Spaces[Cells]) -> None:
        now = self.sites.instructions[before.site_now]
        then = self.sites.instructions[before.site]
        span_now, span_then = self.machine.places.span(now), self.machine.places.span(then)
        # A loop that was unrolled has several instructions for one place of the source.
        if not self._new((span_now, span_then, before.read, read, before.fenced)):
            return
        wait_now = self._context(actor.number, actor.time)
        wait_then = self._context(before.actor, before.time)
        kind = self._classify(actor, cells, before, read, wait_now, wait_then)
        place, memory = self._place(cells, before.byte, spaces)
        notes = [(span_then, f"{self._name(before.actor, before.time)} {_verb(before.read)} it here")]
        for wait, number in ((wait_now, actor.number), (wait_then, before.actor)):
            if wait is not None:
                note = self.machine.places.span(wait.instruction), self._waited(wait, number)
                if note not in notes:
                    notes.append(note)
        does = "gives back" if self._gives_back(before.site_now) else _verb(read)
        message = f"{kind}: {self._name(actor.number, actor.time)} {does} {place} in {memory}" + _relation(kind, before)
        help = "put `syncwarp()` between the two" if before.met else self._help(kind, before, read)
        diagnostic = Diagnostic(classes.CODES[kind], message, span_now, tuple(notes), help)
        self.found.append(Race(kind, diagnostic, now, then, place, *_turn(wait_now or wait_then), *_turn(wait_then)))

    def _classify(
        self,
        actor: Actor,
        cells: Cells,
        before: Before,
        read: bool,
        wait_now: Passed | None,
        wait_then: Passed | None,
    ) -> str:
        if before.fenced:
            return classes.PROXY_FENCE
        if before.met and self.warp_of(before.actor, before.time) == self.warp_of(actor.number, actor.time):
            return classes.DATA_RACE
        then, now = self._who(before.actor), self._who(actor.number)
        asynchronous = then.warp is None or now.warp is None
        if not cells.own or not (asynchronous or self.pipelines):
            return classes.DATA_RACE
        if before.read and not read:
            issue = self._issue(before.actor, before.time)
            if issue is not None and actor.clock.knows(*issue):
                return classes.UNDRAINED
        if _other_stage(wait_now, wait_then):
            return classes.STALE_STAGE
        if read:
            early = self.pipelines and (wait_now is None or wait_now.again)
            overtaken = before.first[1] and actor.clock.knows(*before.first) and not early
            return classes.OVERWRITTEN if overtaken else classes.READ_BEFORE_FULL
        if before.read and not self._gives_back(before.site_now):
            early = wait_then is None or wait_then.again
            at_once = then.warp is not None or then.unit == "tcgen05.ld"  # reads when it is executed
            if (early and at_once) or (wait_then is not None and self._committed(actor, wait_then, wait_now)):
                return classes.READ_BEFORE_FULL
        return classes.OVERWRITTEN

    def _gives_back(self, site: int) -> bool:
        return self.sites.instructions[site].opcode.startswith("tcgen05.dealloc")

    def _committed(self, actor: Actor, wait: Passed, own: Passed | None) -> bool:
        """Whether an actor that writes now has arrived already, where the reader has waited for it."""
        arrival = self.last_arrivals.get(actor.number)
        if arrival is None or (own is not None and own.time > arrival.time):
            return False
        return (arrival.barrier.name, arrival.phase) == (wait.barrier.name, wait.phase)

    def _place(self, cells: Cells, byte: int, spaces: Spaces[Cells]) -> tuple[str, str]:
        """The memory of a byte, and what sort of memory it is."""
        for cta, shared in spaces.shared_cells.items():
            if shared is cells:
                return self.machine.memory.shared.place(byte), self._shared_of(cta)
        for _, tensor in spaces.tensor_cells.items():
            if tensor is cells:
                granule, column = divmod(byte // 4, 512)
                return f"column {column} of lanes {16 * granule}-{16 * granule + 15}", "tensor memory"
        for start, part in spaces.global_cells.items():
            if part is cells:
                region = self.machine.memory.region(start)
                name = region.name if region is not None else hex(start)
                return f"byte {byte} of {name}", "global memory"
        return f"byte {byte}", "memory"

    def _shared_of(self, cta: Cta) -> str:
        return "shared memory" if self.machine.cta_count == 1 else f"shared memory of CTA {cta.id}"

    def _help(self, kind: str, before: Before, read: bool) -> str:
        if kind == classes.PROXY_FENCE:
            access = "read" if read or before.read else "written"
            return (
                f"the threads that have {access} it execute fence_proxy_async() after that, and before the barrier or "
                "arrival that lets the asynchronous operation come"
            )
        if kind == classes.UNDRAINED:
            unit = self._who(before.actor).unit
            waits = {
                "wgmma": "wgmma_wait_group",
                "tma": "cp_async_bulk_wait_group",
                "cp.async": "cp_async_wait_group",
                "tcgen05": "a tcgen05.commit on the barrier that gives it back",
                "tcgen05.ld": "tcgen05.wait::ld",
                "tcgen05.st": "tcgen05.wait::st",
            }
            return f"the release must come after {waits.get(unit, 'the wait for it')}"
        return HELP[kind]


def _turn(wait: Passed | None) -> tuple[int | None, int | None]:
    """The stage that a wait was for, and the number of its phase."""
    return (None, None) if wait is None else (wait.stage, max(wait.phase, 0))


def _verb(read: bool) -> str:
    return "reads" if read else "writes"


def _relation(kind: str, before: Before) -> str:
    """What is wrong between an access and the earlier one, after the words for the first."""
    if kind == classes.PROXY_FENCE:
        what = "read" if before.read else "written"
        return f", which is {what} through the other proxy, and no proxy fence is between the two"
    return f", and nothing orders that with the {'read' if before.read else 'write'} elsewhere"


def _other_stage(now: Passed | None, then: Passed | None) -> bool:
    """Whether two accesses to the same memory come after waits for different stages of one RolePipeline."""
    if now is None or then is None or now.stage is None or then.stage is None:
        return False
    return now.stage != then.stage and now.barrier.name.partition("[")[0] == then.barrier.name.partition("[")[0]
