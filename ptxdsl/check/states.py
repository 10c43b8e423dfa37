"""A state of the whole kernel in a proof: where each agent is, what the barriers have, and who knows what.

*Knowledge* is what happens-before is here. Everything that matters later (the last access of an agent to some bytes,
the last completion of a barrier's phase, …) is an event with a bit; an agent or a barrier *knows* an event if it
happened before, in every schedule. An agent's knowledge goes into the barrier at which it arrives, and that of the
completed phase to those who waited for it. When an event happens anew nobody else knows it any more. So knowledge is
finite, whatever has happened, and two states with the same knowledge go on alike.

``proxied`` is the part of the knowledge that went through a proxy fence: what the async proxy sees of the threads' own
accesses.
"""

from __future__ import annotations

from ptxdsl.check.facts import Facts
from ptxdsl.check.values import Value
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.record import dataclass
from ptxdsl.source import Span

if TYPE_CHECKING:
    from ptxdsl.check.parts import Touch


class _Left:
    """The counter of a loop that was left."""

    def __repr__(self) -> str:
        return "left"


LEFT = _Left()
Lives = tuple[tuple[Span, int], ...]  # where a barrier was initialised, and for how many arrivals


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """A barrier's state; made by ``phase``, equal ones are one object.

    expected: arrivals per phase, 0: not initialised. parity: of the current phase. arrived: agents that have arrived in
    this phase, as bits. announced: whether bytes were counted in this phase. begun: whether a phase is complete (for
    messages: true of all where there are none).
    unclear: whether an arrival may have fallen into another phase.
    """

    expected: int
    pending: int
    bytes: Any
    parity: int
    arrived: int
    announced: bool
    begun: bool
    unclear: bool


_phases: dict[tuple[Any, ...], Phase] = {}
_MOST_PHASES = 100_000  # of a process that proves many kernels


def phase(
    expected: int,
    pending: int,
    bytes: Any = 0,
    parity: int = 0,
    arrived: int = 0,
    announced: bool = False,
    begun: bool = False,
    unclear: bool = False,
) -> Phase:
    key = expected, pending, bytes, parity, arrived, announced, begun, unclear
    found = _phases.get(key)
    if found is None:
        if len(_phases) >= _MOST_PHASES:
            _phases.clear()
        found = _phases[key] = Phase(*key)
    return found


UNINITIALISED = phase(0, 0)


class State:
    """places: each agent's step. environments: their variables. facts: what is decided.

    known, proxied: by holder (agents, then what barriers hold). live: events that have happened. phases: of mbarriers.
    meetings: of named, CTA and cluster barriers. groups: of each agent, asynchronous work that it has not waited for,
    by mechanism: the open group, then the committed ones. fresh: of each agent, its own events since its threads last
    met; met: those of them that the lanes of each warp have met after. path: decisions taken, the latest first.
    fenced: of each agent, what it knows by ``tcgen05.fence`` of tensor memory. tensor: allocations, by array and CTA.
    times: how often each event has happened, where somebody wants to know. trips: of accesses, where the one who has
    made it last was in his loops, and what he had waited for, where somebody wants to know. lives: of barriers that are
    initialised more than once, where that was, the last one last. fill: of the way to the state (``unwritten.Fill``).
    answers: of cluster launch control, by address, the group of the asker's loop and the turn in which he asked
    (``answers.py``).
    held: what lies in shared memory, by CTA, address and bytes, as far as that was asked (``held.py``).
    """

    __slots__ = (
        "answers", "environments", "facts", "fenced", "fill", "fresh", "groups", "held", "known", "live", "lives",
        "meetings", "met", "path", "phases", "places", "proxied", "tensor", "times", "trips", "waited",
    )  # fmt: skip

    def __init__(self) -> None:
        self.places: list[int] = []
        self.environments: list[list[Any]] = []
        self.facts = Facts({}, {})
        self.known: list[int] = []
        self.proxied: list[int] = []
        self.live = 0
        self.phases: list[Phase] = []
        self.meetings: dict[Any, Any] = {}
        self.groups: list[dict[str, tuple[int, ...]]] = []
        self.fresh: list[int] = []
        self.met: list[int] = []
        self.waited: list[dict[int, Any]] = []
        self.path: Any = None
        self.fenced: list[int] = []
        self.tensor: dict[tuple[int, int], int] = {}
        self.times: dict[int, int] | None = None
        self.trips: dict[int, tuple[tuple[Any, ...], tuple[Any, ...]]] | None = None
        self.lives: dict[int, Lives] = {}
        self.fill: Any = None
        self.answers: dict[int, tuple[int, int] | None] = {}
        self.held: dict[tuple[int, int, int], Value] = {}

    def copy(self) -> State:
        new = State.__new__(State)
        new.places = self.places[:]
        new.environments = [env[:] for env in self.environments]
        new.facts = self.facts.copy()
        new.known = self.known[:]
        new.proxied = self.proxied[:]
        new.live = self.live
        new.phases = self.phases[:]
        new.meetings = dict(self.meetings)
        new.groups = [dict(g) for g in self.groups]
        new.fresh = self.fresh[:]
        new.met = self.met[:]
        new.waited = [dict(w) for w in self.waited]
        new.path = self.path
        new.fenced = self.fenced[:]
        new.tensor = dict(self.tensor)
        new.times = None if self.times is None else dict(self.times)
        new.trips = None if self.trips is None else dict(self.trips)
        new.lives = dict(self.lives)
        new.fill = self.fill.copy()
        new.answers = dict(self.answers)
        new.held = dict(self.held)
        return new

    def count(self, touch: Touch) -> None:
        """Notes that an access has happened."""
        bit = touch.bit
        if self.times is not None:
            self.times[bit] = self.times.get(bit, 0) + 1
        if self.trips is not None:
            env = self.environments[touch.agent]
            counters = tuple([env[counter] for _, counter, _ in touch.site.nesting])
            self.trips[bit] = counters, tuple(self.waited[touch.agent].items())
