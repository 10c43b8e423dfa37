"""What one proof knows apart from its states: agents, barriers, events, and whose accesses are in each other's way."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.check.cluster import Blocks
from ptxdsl.check.conflicts import relate
from ptxdsl.check.counters import Counters
from ptxdsl.check.guards import Guard
from ptxdsl.check.intervals import Intervals, Places, overlap
from ptxdsl.check.layout import Layout
from ptxdsl.check.parts import Agent, Barrier, Meeting, Touch
from ptxdsl.check.states import UNINITIALISED
from ptxdsl.check.supposed import Supposed
from ptxdsl.check.threads import Mask, warps, whole_warps
from ptxdsl.check.values import Symbols
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.protocol.expressions import CTA_SHIFT, TENSOR
from ptxdsl.protocol.model import Array, Kernel, Written
from ptxdsl.record import replace
from ptxdsl.source import Span

if TYPE_CHECKING:
    from ptxdsl.check.findings import Fault, Finding
    from ptxdsl.check.program import Step
    from ptxdsl.check.states import State

BARRIER_BYTES = 8
_MOST_LAST = 8  # sites of faults that are told where there are no others


class Context(Layout):
    """size: threads of a block. ctas: of a cluster. blocks: those that are followed as one."""

    def __init__(
        self, kernel: Kernel, counters: Counters, symbols: Symbols, size: int, ctas: int, blocks: Blocks
    ) -> None:
        super().__init__(kernel)
        self.counters = counters
        self.symbols = symbols
        self.size = size
        self.every: Mask = (1 << size) - 1
        self.ctas = ctas
        self.blocks = blocks
        self.agents: list[Agent] = []  # that are followed
        self.barriers: list[Barrier] = []
        self.holders = self.bits = self.events = 0  # events: all bits that are some event's
        self.plain = 0  # bits of touches by the generic proxy
        self.stores = 0  # of those that write
        self.narrow: dict[int, bool] = {}  # barriers by address: whether waits of the block's own scope are for them
        self.tensor = 0  # of those of tensor memory
        self.accesses = 0  # of all
        self.masks: dict[int, Mask] = {}  # the threads that made an event
        self.waits_by_warps = 0  # waits of agents of several warps: each warp knows of its own
        self.touches: dict[int, Touch] = {}
        self._classes: dict[int, Touch] = {}  # ``touches``, by the events of other blocks as well
        self._barriers: dict[tuple[int, int], Barrier] = {}
        self._touches: dict[Any, Touch] = {}
        self._read: dict[Any, int] = {}  # ``bytes``, by agent and bytes
        self._of_array: dict[tuple[Any, int], list[Touch]] = {}
        self._excluded: dict[tuple[int, int, Mask], int] = {}
        self._meetings: dict[Any, Meeting] = {}
        self._uses: dict[int, dict[tuple[int, int, bool], int]] = {}  # by barrier, agent, its CTA, and whether later
        # Arrivals that a CTA's own threads do not see to: of other CTAs, of asynchronous work; by bit.
        self.incoming: dict[int, tuple[Barrier, Step]] = {}
        self.shared: set[tuple[int, int]] = set()  # barriers that are known to have arrivals of several
        self.detailed: set[tuple[int, int]] = set()  # those of which each arrival is followed
        self.tracks_uses = False  # whether barriers are invalidated
        self.mixed: frozenset[int] = frozenset()  # arrays (by their tag) that have barriers and data
        self._under: dict[tuple[Any, int], list[Barrier]] = {}  # barriers by array and CTA
        self._full: dict[tuple[Any, int, int], int] = {}  # ``full_of``
        self.boxes: dict[int, int] = {}  # bytes of tensor copies, by place
        self.related = 0  # how many pairs of touches conflict
        self.meetings = 0  # how often a step came to barriers that were new to it
        self.unclear: dict[int, Exception] = {}  # by barrier: an arrival that may fall into the wrong phase
        self.races = True  # whether to look at accesses
        self.coarse = False  # whether what is said of faults is thrown away
        self.natural = True  # whether parameters of trip counts are taken not to be negative
        self.joined: set[int] = set()  # tables of barriers that the text does not address as one
        self.proxies = True  # whether there is an async proxy to look after
        self.asked_for: set[int] = set()  # arrays of answers that somebody asks for
        self.live: list[list[int]] = []  # of each agent, the variables that matter at its steps, where that was asked
        self.last: dict[Step, Finding] = {}  # by site: what is a fault if there is no other
        self.supposed = Supposed()
        self.asked: Any = None  # a test that must be decided: step, agent, test, outcomes

    def fit(self, state: State) -> None:
        """Makes a state large enough for all barriers and holders known by now."""
        missing = self.holders - len(state.known)
        if missing > 0:
            state.known += [0] * missing
            state.proxied += [0] * missing
        missing = len(self.barriers) - len(state.phases)
        if missing > 0:
            state.phases += [UNINITIALISED] * missing

    def turn_to(self, state: State) -> None:
        """Barriers that have several lives turn to those of a state."""
        for number, lives in state.lives.items():
            self.barriers[number].live(lives)

    def bit(self) -> int:
        """A new event's."""
        made = 1 << self.bits
        self.bits += self.blocks.count
        self.events = (1 << self.bits) - 1
        return made

    def forget(self, state: State, bits: int, *, seen: bool = True) -> None:
        """Events that happen anew, or are over, are known to nobody. seen: whether they may have gone through a fence,
        as accesses and initialisations do."""
        keep = self.events ^ bits
        state.known = [k & keep for k in state.known]
        if not seen:
            return
        state.proxied = [k & keep for k in state.proxied]
        if state.tensor:
            state.fenced = [k & keep for k in state.fenced]

    def happens_elsewhere(self, state: State, bits: int) -> None:
        """Events of a step happen anew in the other blocks that do the same at once: nobody here knows of them."""
        others = self.blocks.everywhere(bits) ^ bits
        if others:
            self.forget(state, others)
            state.live |= others

    # ---------------------------------------------------------------------------------------------------- barriers

    def barrier(self, address: int, own: int) -> Barrier:
        """The mbarrier at an address as an agent of CTA ``own`` writes it."""
        rank = address >> CTA_SHIFT
        cta, at = (rank - 1 if rank else own), address & ((1 << CTA_SHIFT) - 1)
        found = self._barriers.get((cta, at))
        if found is None:
            if cta and self.blocks.count > 1:
                return self._barrier_elsewhere(cta, at)
            found = Barrier(len(self.barriers), at, cta, self.bit(), self.bit(), self.bit(), self.holders)
            found.place = self.stage_of(at)
            found.shared = (cta, at) in self.shared
            found.detailed = (cta, at) in self.detailed
            self.holders += 2
            self.barriers.append(found)
            self._barriers[cta, at] = found
            self._under.setdefault((self.array(at), cta), []).append(found)
        return found

    def _barrier_elsewhere(self, cta: int, at: int) -> Barrier:
        """The barrier of a block that the followed one stands for: as its own one, but for who sees its events."""
        own = self.barrier(at, 0)
        found = self._barriers[cta, at] = Barrier(
            own.number, at, cta, own.init << cta, own.last << cta, own.before << cta, own.holder
        )
        found.place, found.own = own.place, own
        return found

    def under(self, touch: Touch) -> list[Barrier]:
        """The barriers, known by now, whose bytes a touch has."""
        if not touch.under:
            return []
        forms = touch, *touch.elsewhere
        return [
            b
            for b in touch.under
            if any(overlap(form.intervals, ((b.address, b.address + BARRIER_BYTES),)) for form in forms)
        ]

    def barrier_text(self, barrier: Barrier) -> str:
        """``consumer_mbar of stage 2`` or ``bars[3]``."""
        place = barrier.place
        if place is not None:
            _, side, stage, sub, subs = place
            return f"{side}{f'[{sub}]' if subs > 1 else ''} of stage {stage}"
        array = self.array(barrier.address)
        if array is None:
            return "a barrier"
        return f"{array.name}[{(barrier.address - array.base) // 8}]"

    def full_of(self, barrier: Barrier) -> int:
        """The numbers, as bits, of the barriers with which the stage is handed over that this one gives back."""
        assert barrier.place is not None
        pipeline, _, stage, *_ = barrier.place
        key = pipeline.full, stage, len(self.barriers)
        found = self._full.get(key)
        if found is None:
            found = 0
            for other in self.barriers:
                place = other.place
                if place is not None and place[0].full == pipeline.full and place[1:3] == ("producer_mbar", stage):
                    found |= 1 << other.number
            self._full[key] = found
        return found

    def wait_bit(self, barrier: Barrier, agent: int) -> int:
        found = barrier.waits.get(agent)
        if found is None:
            found = barrier.waits[agent] = self.bit()
        return found

    def use_bit(self, barrier: Barrier, agent: Agent, step: Step | None, *, later: bool = False) -> int:
        """later: of an arrival that comes when asynchronous work is done."""
        uses = self._uses.setdefault(barrier.number, {})
        key = agent.number, barrier.cta, later
        found = uses.get(key)
        if found is None:
            found = uses[key] = self.bit()
            agent.uses |= found
            barrier.followed.uses |= self.seen_there(barrier, found)
            if step is not None and (later or barrier.cta != agent.cta):
                self.incoming[found] = barrier, step
        return found

    def uses_of(self, barrier: Barrier) -> list[tuple[int, int, int]]:
        """The events of uses of a barrier: the agent, the place of the barrier as it sees it, the event."""
        uses = self._uses.get(barrier.number, {})
        return [(agent, cta - barrier.cta, bit) for (agent, cta, _), bit in uses.items()]

    def use_bits(self, barrier: Barrier, other: Barrier) -> list[tuple[int, int]]:
        """The events of uses of a barrier, and those of the same uses of another one."""
        found = []
        for (agent, cta, later), bit in list(self._uses.get(barrier.number, {}).items()):
            _, step = self.incoming.get(bit, (None, None))
            there = self.barrier(other.address, cta)
            found.append((bit, self.use_bit(there, self.agents[agent], step, later=later)))
        return found

    def agent(self, number: int) -> Agent:
        """The agent that has a number for a barrier."""
        return self.agents[number % len(self.agents)]

    def number_there(self, agent: Agent, barrier: Barrier) -> int:
        """An agent's number for a barrier: agents of other blocks are others."""
        if barrier.own is None:
            return agent.number
        return agent.number + len(self.agents) * self.blocks.back(barrier.cta)

    def seen_there(self, barrier: Barrier, bits: int) -> int:
        """What an agent knows, as the block of a barrier sees it."""
        return bits if barrier.own is None else self.blocks.seen_from(barrier.cta, bits)

    def each_bits(self, barrier: Barrier, agent: int) -> tuple[int, int, int]:
        """The events of an agent's arrivals at a detailed barrier: in this phase, the last one, the one before."""
        found = barrier.each.get(agent)
        if found is None:
            found = barrier.each[agent] = self.bit(), self.bit(), self.bit()
        return found

    def initialisations(self) -> int:
        """The bits of all barriers' initialisations."""
        return self.blocks.everywhere(sum(barrier.init for barrier in self.barriers))  # each has a bit of its own

    def meeting(self, key: Any, state: State) -> Meeting:
        found = self._meetings.get(key)
        if found is None:
            found = self._meetings[key] = Meeting(key, len(self._meetings), self.bit(), self.holders)
            self.holders += 2
        self.fit(state)
        return found

    def meetings_of_all(self, state: State) -> list[Meeting]:
        """Barriers to which some have come, of a block or of the cluster."""
        found = [meeting for key, meeting in self._meetings.items() if key == "cluster" or len(key) == 2]
        return [meeting for meeting in found if state.meetings.get(meeting.number, (0,))[0]]

    def begun_meetings(self, state: State) -> Iterator[tuple[int, list[Agent]]]:
        """Barriers of threads to which some have come: the holder, and who is still to come."""
        for key, meeting in self._meetings.items():
            begun = state.meetings.get(meeting.number)
            if begun is None:
                continue
            if key == "cluster":
                yield meeting.holder, [agent for agent in self.agents if not begun[2] >> agent.number & 1]
                continue
            if len(key) == 3:
                missing = key[2] & ~begun[0]
            elif begun[1] == self.size:
                missing = self.every
                for number, _ in begun[2]:
                    missing &= ~self.agents[number].mask
            else:
                continue
            yield meeting.holder, [agent for agent in self.agents if agent.cta == key[0] and agent.mask & missing]

    def tell_last(self, site: Step, found: Fault) -> None:
        """Keeps a fault that may only be a consequence of another."""
        if len(self.last) < _MOST_LAST:
            self.last.setdefault(site, found.finding)

    def told_cluster(self, state: State) -> Meeting | None:
        """The cluster's barrier, if anybody has come to it, and all who have know of its last completion."""
        meeting = self._meetings.get("cluster")
        if meeting is None:
            return None
        _, turn, _ = state.meetings.get(meeting.number, (0, 0, 0))
        came = [at for key, at in state.meetings.items() if isinstance(key, tuple) and key[0] == "cluster"]
        return meeting if all(at == turn for at in came) else None

    # ---------------------------------------------------------------------------------------------------- knowledge

    def hidden(self, state: State, agent: Agent, mask: Mask) -> int:
        """Events of the agent's own threads that those of a mask cannot know of: they have not met since."""
        fresh = state.fresh[agent.number]
        if not fresh or mask == agent.mask:
            return 0
        met = state.met[agent.number] & fresh
        key = fresh, met, mask
        found = self._excluded.get(key)
        if found is None:
            found = 0
            warps = whole_warps(mask, agent.mask)
            rest = fresh
            while rest:
                bit = rest & -rest
                rest ^= bit
                made_by = self.masks.get(bit, 0)
                if made_by & ~mask and (not bit & met or made_by & ~warps):
                    found |= bit
            self._excluded[key] = found
        return found

    # ------------------------------------------------------------------------------------------------------ touches

    def touch(
        self,
        site: Step,
        agent: Agent,
        array: Array | None,
        cta: int,
        intervals: Intervals,
        *,
        writes: bool,
        mask: Mask,
        atomic: bool = False,
        asynchronous: bool = False,
        slot: int | None = None,
        places: Places = (),
        exact: bool = True,
        pipe: bool = False,
        grouped: bool = False,
        together: bool = False,
        certain: bool = True,
        used: bool = True,
        when: Guard | None = None,
        elsewhere: tuple[tuple[Intervals, Places], ...] = (),
        spans: tuple[Span, ...] = (),
        says: Written | None = None,
    ) -> Touch:
        """elsewhere: its intervals and places in other blocks, by rank, where they are not the same."""
        key = (agent.number, writes, atomic, asynchronous, array, cta, intervals, mask, places, site.number, elsewhere)
        found = self._touches.get(key)
        if found is not None:
            return found
        bit = self.bit()
        made = Touch(
            bit, agent.number, writes, atomic, asynchronous, array, cta, intervals, mask, site, slot, places, exact,
        )  # fmt: skip
        made.spans, made.pipe, made.grouped, made.certain, made.when = spans, pipe, grouped, certain, when
        made.used, made.says = used, says
        made.together = together and len(warps(mask)) > 1
        made.elsewhere = tuple([replace(made, intervals=other, places=there) for other, there in elsewhere])
        forms = made, *made.elsewhere
        made.low = min([form.intervals[0][0] for form in forms])
        made.high = max([form.intervals[-1][1] for form in forms])
        if pipe:
            agent.products |= bit
        everywhere = self.blocks.everywhere(bit)
        self.accesses |= everywhere
        made.tensor = array is not None and bool(array.base & TENSOR)
        if made.tensor:
            self.tensor |= everywhere
        elif not asynchronous:
            self.plain |= everywhere
            if writes:
                self.stores |= everywhere
        self.masks[bit] = mask
        self.touches[bit] = made
        self._classes.update((bit << place, made) for place in range(self.blocks.count))
        here = 0 if self.blocks.count > 1 else cta
        made.under = self._under.setdefault((array, here), [])
        if not writes:
            made.bytes = self._read.setdefault((agent.number, array, cta, intervals, elsewhere), 1 << len(self._read))
        others = self._of_array.setdefault((array, here), [])
        others.append(made)
        for other in others:
            if made.low < other.high and other.low < made.high:  # else they are apart in every block
                relate(self, made, other)
        self._touches[key] = made
        return made

    def touch_of(self, bit: int) -> Touch:
        """The touch whose event this is, in whatever block."""
        return self._classes[bit]

    def place_of(self, bit: int) -> int:
        """At which place the block is whose event this is."""
        return (bit.bit_length() - 1) % self.blocks.count

    def seat(self, agent: int, place: int = 0) -> int:
        """An agent of a block at a place, as a bit: agents have places as events have."""
        return 1 << (agent * self.blocks.count + place)
