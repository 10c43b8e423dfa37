"""What a proof knows of a kernel's parts: agents, barriers, meetings of threads, and what is touched."""

from __future__ import annotations

from ptxdsl.check.guards import Guard
from ptxdsl.check.intervals import Form, Intervals, Places, intervals_of, moved, overlap
from ptxdsl.check.states import Lives
from ptxdsl.check.threads import Mask, range_text
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.protocol.model import Array, Pipeline, Written
from ptxdsl.record import Slotted, field
from ptxdsl.source import Span

if TYPE_CHECKING:
    from ptxdsl.check.program import Step


_OF_MANY = {
    "arrives": "arrive", "comes": "come", "ends": "end", "goes": "go", "has": "have", "makes": "make", "waits": "wait"
}  # fmt: skip


class Agent(metaclass=Slotted, frozen=False):
    """Threads that take the same way (``agents.py``), in one CTA of a cluster. several: warps. uses: its arrivals
    elsewhere. products: the work of its tensor cores, which is done in order: what tells of some tells of all that was
    started before."""

    number: int
    mask: Mask
    cta: int
    count: int
    several: bool
    steps: list[Step] = field(default_factory=list)
    variables: list[int] = field(default_factory=list)
    alone: bool = True  # there is no other CTA to be told from
    uses: int = 0
    products: int = 0

    @property
    def name(self) -> str:
        return range_text(self.mask) if self.alone else f"{range_text(self.mask)} of CTA {self.cta}"

    def does(self, verb: str) -> str:
        """``warp 0 waits``, ``warps 1 to 4 wait``: for messages."""
        return f"{self.name} {verb if self.name.startswith(('warp ', 'thread ')) else _OF_MANY[verb]}"


class Barrier(metaclass=Slotted, frozen=False):
    """An mbarrier. init, last, before: bits of its initialisation and of its last two completions.

    each: where it is detailed, by agent the bits of its arrival in this phase, the last one, the one before.
    waits: by agent, the bit of its last wait. uses: of all other operations on it. holder: of what those know who
    waited for the last completed phase; the next one is of those that have arrived in the current one. initialised:
    where, in the state that is looked at. arrivals: sites that were seen to arrive since then, by agent, with how many
    arrivals they made; of_lives: the same after each initialisation. carries: what is passed on to who waits. told:
    agents of whom ``relevance.py`` has looked what they know. by_some: whether arrivals of some warps of an agent alone
    have been seen to complete a phase. own: of a barrier of another block that the block which
    is followed stands for, the followed block's own one at the same address.
    """

    number: int
    address: int
    cta: int
    init: int
    last: int
    before: int
    holder: int
    waits: dict[int, int] = field(default_factory=dict)
    uses: int = 0
    arrivals: dict[int, dict[Step, int]] = field(default_factory=dict)
    waiters: dict[int, Step] = field(default_factory=dict)
    initialised: Lives = ()
    of_lives: dict[Lives, dict[int, dict[Step, int]]] = field(default_factory=dict)
    place: tuple[Pipeline, str, int, int, int] | None = None
    carries: int = -1
    told: int = -1
    shared: bool = False
    relied: int | None = None
    by_some: bool = False
    detailed: bool = False
    each: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    announced: dict[tuple[int, Span], None] = field(default_factory=dict)  # agents with their lines
    copied: dict[tuple[int, Span], None] = field(default_factory=dict)
    own: Barrier | None = None

    @property
    def followed(self) -> Barrier:
        """The one whose phases are followed: this one, or the own one that it is like."""
        return self.own or self

    def live(self, lives: Lives) -> None:
        """Turns to the life that a state is in."""
        if self.initialised != lives:
            self.initialised = lives
            self.arrivals = self.of_lives.setdefault(lives, {})


class Meeting(metaclass=Slotted, frozen=False):
    """A barrier of threads. last: the bit of its last completion. holder: of what those who have come know."""

    key: Any
    number: int
    last: int
    holder: int


class Clash(metaclass=Slotted):
    """Two threads that write different values to the same bytes in one execution of a statement, and where that is."""

    span: Span
    one: int
    other: int


class Touch(metaclass=Slotted, frozen=False):
    """Bytes of an array that one site of an agent reads or writes: an event, known by its bit.

    places: what each thread of the mask touches. spans: where it is written, of each place and then of what is touched
    somewhere. slot: the number of the stage as the site computes it. exact:
    whether the bytes are known. tensor: of tensor memory. pipe: done in order with such of the same agent. grouped:
    work of which each thread or warp waits for its own. together: by several warps, each with all that they do.
    certain: whether it happens to these bytes whenever the site is reached. used: of a read, whether it is certain that
    somebody looks at what it gives. writers: of a read, the bits of what
    writes any of its bytes. readers: of a write, the ``bytes`` of what reads any; bytes: a bit for an agent's reads
    of the same bytes. filled, handed: ``unwritten.py``. conflicts: bits of the touches that it must be ordered
    with, needers: of their agents. within, across: of such of the same agent, made by other threads of the same warp,
    of another warp. stale, given, free: ``brackets.describe``. under: the barriers of its array, as far as they are
    known. low, high: where the first of its bytes is in any block, and the end of the last. when: which of its threads
    do it (``guards.py``). elsewhere: the same of the other blocks that the followed one stands for, by rank; none where
    they touch the same. clash: of a write, threads that get into each other's way by themselves (``written.py``); says:
    what one statement writes, if nothing else is written.
    """

    bit: int
    agent: int
    writes: bool
    atomic: bool
    asynchronous: bool
    array: Array | None
    cta: int
    intervals: Intervals
    mask: Mask
    site: Step
    slot: int | None
    places: Places
    exact: bool = True
    tensor: bool = False
    pipe: bool = False
    grouped: bool = False
    together: bool = False
    certain: bool = True
    used: bool = True
    writers: int = 0
    readers: int = 0
    bytes: int = 0
    filled: dict[int, bool] = field(default_factory=dict)
    handed: dict[tuple[int, int, int], bool] = field(default_factory=dict)
    conflicts: int = 0
    needers: int = 0
    within: int = 0
    across: int = 0
    stale: int | None = None
    given: bool = False
    free: tuple[int, ...] = ()
    elsewhere: tuple[Touch, ...] = ()
    under: list[Barrier] = field(default_factory=list)
    low: int = 0
    high: int = 0
    when: Guard | None = None
    known_form: Form | None = None
    clash: Clash | None = None
    says: Written | None = None
    spans: tuple[Span, ...] = ()

    @property
    def span(self) -> Span | None:
        """Where it is written: of what is not known to be exact, what is touched somewhere."""
        if not self.spans:
            return self.site.span
        return self.spans[len(self.places) if len(self.places) < len(self.spans) else 0]

    def span_over(self, other: Touch) -> Span | None:
        """Where bytes of another one are touched: a site may be of many lines."""
        for (lanes, at, width), span in zip(self.places, self.spans, strict=False):
            if overlap(moved(intervals_of(lanes or (0,), width), at), other.intervals):
                return span
        return self.span

    @property
    def is_apart(self) -> bool:
        """Whether its places are apart from one another."""
        each = sum(end - at for lanes, _, width in self.places for at, end in intervals_of(lanes or (0,), width))
        return each == sum(end - at for at, end in self.intervals)

    def of(self, rank: int) -> Touch:
        """The same of a block."""
        return self.elsewhere[rank - 1] if rank and self.elsewhere else self

    @property
    def form(self) -> Form:
        """Which threads touch what, wherever it lies."""
        found = self.known_form
        if found is None:
            places = self.places if self.exact else ()
            found = self.known_form = Form(self.mask, self.intervals, places, self.when)
        return found
