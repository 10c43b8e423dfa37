"""What the trace check has found, but for conflicting accesses (``races``); and who does what, in words."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING

from ptxdsl.check import classes
from ptxdsl.diagnostics import Diagnostic
from ptxdsl.races.actors import Actor, Passed, Strand, Who, Work
from ptxdsl.races.clocks import MOST_COMPONENTS, SHIFT, Domain
from ptxdsl.record import dataclass

if TYPE_CHECKING:
    from ptxdsl.ptx.module import Instruction
    from ptxdsl.races.site_kinds import Sites
    from ptxdsl.sim.barriers.mbarrier import Barrier
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.machine import Machine

_KEPT = 128  # waits and pieces of asynchronous work that are remembered, of each component
_MOST = 50  # findings of one run

Issue = tuple[int, int, int, "Instruction"]  # of asynchronous work its end, and its issuer's number and time then


@dataclass(frozen=True)
class Race:
    """A finding. kind: one of ``classes``. now, before: the instructions, in the order in which the run executed them.

    place: the memory in words. stage, trip: of the RolePipeline for whose stage the one of ``now`` has waited last, and
    the number of the phase that it waited for, from 0. before_stage, before_trip: the same of the one of ``before``.
    """

    kind: str
    diagnostic: Diagnostic
    now: Instruction
    before: Instruction
    place: str
    stage: int | None
    trip: int | None
    before_stage: int | None = None
    before_trip: int | None = None


class Findings:
    """Collects them. It is told of what strands do with mbarriers, and of asynchronous work, for words."""

    def __init__(self, machine: Machine, sites: Sites) -> None:
        self.machine = machine
        self.sites = sites
        self.domains: list[Domain] = []
        self.found: list[Race] = []
        self.cut = 0  # findings beyond the limit
        self._known: set[tuple[object, ...]] = set()
        self.waits: dict[int, deque[Passed]] = {}
        self.last_arrivals: dict[int, Passed] = {}  # the last arrival on an mbarrier
        self.pipelines = False  # whether there are mbarriers
        self.works: dict[int, deque[Issue]] = {}

    # What is remembered for words

    def passed(self, strand: Strand, wait: Passed) -> None:
        waits = self.waits.get(strand.number)
        if waits is None:
            waits = self.waits[strand.number] = deque(maxlen=_KEPT)
        waits.append(wait)

    def arrived(self, strand: Strand, arrival: Passed) -> None:
        self.last_arrivals[strand.number] = arrival

    def remember(self, work: Work) -> None:
        kept = self.works.get(work.number)
        if kept is None:
            kept = self.works[work.number] = deque(maxlen=_KEPT)
        kept.append((work.end, work.issuer, work.issued, work.instruction))

    def _issue(self, number: int, time: int) -> tuple[int, int] | None:
        """Of an epoch of asynchronous work, its strand's number and time when it was issued."""
        for end, issuer, issued, _ in reversed(self.works.get(number, ())):
            if end == time:
                return issuer, issued
        return None

    def _context(self, number: int, time: int) -> Passed | None:
        """The last wait that an actor had passed; of asynchronous work, who issued it."""
        issue = self._issue(number, time)
        if issue is not None:
            number, time = issue
        waits = list(self.waits.get(number, ()))
        at = bisect_right([wait.time for wait in waits], time)
        return waits[at - 1] if at else None

    def warp_of(self, number: int, time: int) -> tuple[int, int | None]:
        """The CTA and warp of an epoch, of asynchronous work those of the strand that has issued it."""
        issue = self._issue(number, time)
        who = self._who(number if issue is None else issue[0])
        return who.linear, who.warp

    def _who(self, number: int) -> Who:
        who: Who = self.domains[number >> SHIFT].what[number & MOST_COMPONENTS - 1]
        return who

    def _name(self, number: int, time: int) -> str:
        """Who it is: ``warp 3``, ``the tma copy that warp 0 issued``."""
        who = self._who(number)
        where = f" of CTA {who.cta}" if self.machine.cta_count > 1 else ""
        if who.warp is not None:
            return f"{_warp(who)}{where}"
        issue = self._issue(number, time)
        by = f" issued by {_warp(self._who(issue[0]))}" if issue is not None else ""
        return f"{who.unit} work{by}{where}"

    def _waited(self, wait: Passed, number: int) -> str:
        who = self._who(number)
        again = ", for which it had waited before" if wait.again else ""
        name = _warp(who) if who.warp is not None else "the warp that issued it"
        if wait.phase < 0:
            place = wait.barrier.place
            return f"{name} has last waited here; {place} lets it pass before its first phase is complete{again}"
        return f"{name} has last waited here, for phase {wait.phase} of {wait.barrier.place}{again}"

    # Findings

    def _new(self, key: tuple[object, ...]) -> bool:
        if key in self._known:
            return False
        self._known.add(key)
        if len(self.found) >= _MOST:
            self.cut += 1
            return False
        return True

    def add_uninitialised(self, barrier: Barrier, origin: Instruction, actor: Actor, site: int, generic: bool) -> None:
        instruction = self.sites.instructions[site]
        if not self._new(("init", id(origin), site, generic)):
            return
        name = self._name(actor.number, actor.time)
        if generic:
            message = (
                f"{name} uses the mbarrier {barrier.place} asynchronously, and no fence orders its initialisation "
                "before that"
            )
            help = "the thread that initialises executes fence_mbarrier_init() after it, before the barrier"
        else:
            message = f"{name} uses the mbarrier {barrier.place}, and nothing orders its initialisation before that"
            help = "put a barrier of the block, or of the cluster, between the initialisation and the first use"
        self._say(
            classes.EARLY_USE, message, instruction, origin, f"{barrier.name} is initialised here", help, barrier.name
        )

    def add_live(self, barrier: Barrier, strand: Strand, site: int, used: Instruction, component: int) -> None:
        if not self._new(("live", site, id(used))):
            return
        who = self._who(strand.domain.number << SHIFT | component)
        ends = _warp(self._who(strand.number))
        user = _warp(who) if who.warp is not None else f"{who.unit} work"
        self._say(
            classes.LIVE_REINIT,
            f"{ends} invalidates the mbarrier {barrier.place}, and nothing orders the use of it by {user} before that",
            self.sites.instructions[site],
            used,
            "the use",
            "put a barrier of the block between the last use and inval",
            barrier.name,
        )

    def add_alias(
        self, barrier: Barrier, phase: int, domain: Domain, component: int, wait: Instruction, site: int
    ) -> None:
        arrival = self.sites.instructions[site]
        span, at = self.machine.places.span(wait), self.machine.places.span(arrival)
        if not self._new(("alias", span, at)):
            return
        who = self._who(domain.number << SHIFT | component)
        name = _warp(who) + (f" of CTA {who.cta}" if self.machine.cta_count > 1 else "")
        self._say(
            classes.WRONG_PARITY,
            f"{name} waits for phase {phase} of the mbarrier {barrier.place}, and nothing keeps phase {phase + 1} from "
            "being complete before it looks; then the parity means another phase",
            wait,
            arrival,
            f"with this phase {phase + 1} is complete",
            "arrive in the next phase only after those have passed who wait for this one: wait for a barrier on which "
            "they arrive",
            barrier.name,
        )

    def add_written_over(self, barrier: Barrier, actor: Actor, site: int) -> None:
        if not self._new(("over", site)):
            return
        self._say(
            classes.LIVE_REINIT,
            f"{self._name(actor.number, actor.time)} writes data over the mbarrier {barrier.place}, whose life has not "
            "been ended",
            self.sites.instructions[site],
            barrier.origin,
            f"{barrier.name} is initialised here",
            "execute mbarrier.inval, by one thread, and a barrier of the block before the memory is used otherwise",
            barrier.name,
        )

    def add_exit(self, cta: Cta, instruction: Instruction, unit: str) -> None:
        if not self._new(("exit", id(instruction))):
            return
        self._say(
            classes.EXIT_IN_FLIGHT,
            f"no thread of CTA {cta.id} waits for the {unit} work that is issued here before the last one exits",
            instruction,
            instruction,
            "",
            "wait for its barrier or group before the exit",
            "",
        )

    def add_exit_use(self, cta: Cta, barrier: Barrier, used: Instruction, component: int) -> None:
        who = self._user(cta, component)
        if who.linear == cta.linear or not self._new(("exit use", id(used))):
            return
        self._say(
            classes.EXIT_IN_FLIGHT,
            f"CTA {cta.id} may have exited when CTA {who.cta} uses its mbarrier {barrier.place} here",
            used,
            used,
            "",
            "let the threads of a CTA stay until all others have done with its memory: a cluster barrier before the "
            "exit",
            barrier.name,
        )

    def add_exit_access(self, cta: Cta, number: int, site: int) -> None:
        who = self._who(number)
        instruction = self.sites.instructions[site]
        if who.linear == cta.linear or not self._new(("exit access", site)):
            return
        self._say(
            classes.EXIT_IN_FLIGHT,
            f"CTA {cta.id} may have exited when CTA {who.cta} accesses its shared memory here",
            instruction,
            instruction,
            "",
            "let the threads of a CTA stay until all others have done with its memory: a cluster barrier before the "
            "exit",
            "",
        )

    def _user(self, cta: Cta, component: int) -> Who:
        for domain in reversed(self.domains):
            if component < len(domain.what) and any(w.linear == cta.linear for w in domain.what):
                who: Who = domain.what[component]
                return who
        raise KeyError(component)

    def _say(
        self, kind: str, message: str, at: Instruction, other: Instruction, label: str, help: str, place: str
    ) -> None:
        places = self.machine.places
        notes = ((places.span(other), label),) if label else ()
        diagnostic = Diagnostic(classes.CODES[kind], f"{kind}: {message}", places.span(at), notes, help)
        self.found.append(Race(kind, diagnostic, at, other, place, None, None))


def _warp(who: Who) -> str:
    return f"warp {who.warp}" if who.lane is None else f"lane {who.lane} of warp {who.warp}"
