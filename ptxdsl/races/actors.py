"""Who accesses memory: the lanes of warps that run together, and asynchronous work.

Lanes of a warp that stand before the same instruction go on as one *strand*. Where they part each strand has a clock of
its own; where they meet again it is one strand once more, that knows what all of them knew. Lanes that run together are
taken to be ordered as the simulator ordered them, though the ISA promises that only after ``bar.warp.sync``; but what
some of them tell others by an arrival or asynchronous work says nothing of what other lanes have done since they met.

Asynchronous work begins with what its thread knew when it was issued, and is known to others only by the ways in which
it tells of its end. Units that do their work in order (wgmma of a warpgroup, tcgen05 and cp.async of a warp) are one
actor each. Copies are one actor each while they are under way; later ones take the component of an earlier one that
their thread knows to be over. What copies write to global memory is known to be over in the order of issue alone, by
waits for groups: these halves of a warp's copies share a component, too, but none knows of those before it.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from ptxdsl.races.clocks import (
    ASYNC_GLOBAL,
    ASYNC_SHARED,
    GENERIC,
    INIT,
    SHIFT,
    WAITS,
    Clock,
    Domain,
    single,
)
from ptxdsl.record import dataclass, field

if TYPE_CHECKING:
    from ptxdsl.ptx.module import Instruction
    from ptxdsl.sim.barriers.mbarrier import Barrier
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.warp import Warp

_MOST_STRANDS = 16  # of a warp that have a component of their own
_LOOKED_AT = 10  # components in use no more, for one that a thread knows to be so
_MOST_IN_FLIGHT = 512  # copies of one kind in a CTA that nobody has waited for; more share components


@dataclass(frozen=True, slots=True)
class Who:
    """Whose a component is, for reports. warp: of a strand its number, None of asynchronous work of a unit. lane: of a
    strand that is one lane of a check by lanes."""

    cta: tuple[int, int, int]
    linear: int
    warp: int | None
    unit: str
    lane: int | None = None


@dataclass(frozen=True, slots=True)
class Passed:
    """A wait that a strand has passed: on what, which phase of it, where; time: the strand's after it. again: the same
    phase had let it pass before. stage: of a RolePipeline, if the mbarrier is one of such."""

    time: int
    barrier: Barrier
    phase: int
    instruction: Instruction
    again: bool
    stage: int | None


class Actor:
    """clock: what it knows; its own component is its ``time``. rows: those of the clock that count for its accesses to
    shared and to global memory. in_order: what its component has done before it is over."""

    __slots__ = ("clock", "component", "domain", "in_order", "number", "rows", "time")

    def __init__(self, domain: Domain, component: int, clock: Clock, asynchronous: bool) -> None:
        self.domain = domain
        self.component = component
        self.number = domain.number << SHIFT | component
        self.clock = clock
        self.time: int = clock.own.item(GENERIC, component)
        self.rows = (ASYNC_SHARED, ASYNC_GLOBAL) if asynchronous else (GENERIC, GENERIC)
        self.in_order = True

    @property
    def asynchronous(self) -> bool:
        return self.rows[0] != GENERIC


Part = tuple[int, int, int, int]  # of a component's times up to one, done by some lanes, the part of some of those


class Strand(Actor):
    """Lanes of a warp. fenced: what it knew at its last fence; seen: what it read from and has not fenced since.

    met: its time when its lanes last met. apart: what its lanes and others have done together since they met, by
    component: after which time, up to which, and those lanes.
    """

    __slots__ = ("_times", "_times_of", "apart", "fenced", "mask", "met", "seen", "warp")

    def __init__(self, domain: Domain, component: int, clock: Clock, warp: Warp, mask: int) -> None:
        super().__init__(domain, component, clock, False)
        self.warp = warp
        self.mask = mask
        self.fenced: Clock | None = None
        self.seen: Clock | None = None
        self.met = 0
        self.apart: dict[int, tuple[int, int, int]] = {}
        self._times_of = clock.own
        self._times = single(clock.own)

    def meet(self) -> None:
        """Its lanes have met: each knows what all have done."""
        self.apart = {c: done for c, done in self.apart.items() if done[2] & ~self.mask}
        self.met = self.time
        self.tick()

    def told(self, clock: Clock) -> None:
        """It learns what a clock has: what all of the lanes have told that had done something."""
        if not self.apart:
            return
        own = clock.own
        for component, (_, until, _) in list(self.apart.items()):
            if component < own.shape[1] and own[GENERIC, component] >= until:
                del self.apart[component]

    def tells(self) -> tuple[Clock, list[Part]]:
        """What its lanes know for certain, and their parts of what they have done together with others.

        That the others have passed their waits is taken for granted: lanes that go on together meet before they part.
        """
        if not self.apart:
            return self.clock, []
        others = [(c, done) for c, done in self.apart.items() if done[2] & ~self.mask]
        if not others:
            return self.clock, []
        clock = self.clock.copy()
        for component, (after, _, _) in others:
            known = clock.own[:, component]
            known[WAITS] = max(known[WAITS], known[GENERIC])
            np.minimum(known[:WAITS], after, out=known[:WAITS])
        return clock, [(c, until, lanes, lanes & self.mask) for c, (_, until, lanes) in others]

    def tick(self) -> None:
        """What comes now is not part of what has been released."""
        own = self.clock.own
        if own is not self._times_of:
            self._times_of, self._times = own, single(own)
        self.time += 1
        self._times[GENERIC, self.component] = self.time  # through a view, as often as this happens

    def know(self, component: int, time: int) -> None:
        """Asynchronous work is over; its end is known to all proxies."""
        own = self.clock.own
        if component >= own.shape[1]:
            self.clock.fit(self.domain.capacity)
            own = self.clock.own
        for row in range(len(own)):
            if own[row, component] < time:
                own[row, component] = time

    def fence(self, *rows: int) -> None:
        """Other proxies will see what the generic one sees."""
        own = self.clock.own
        for row in rows:
            own[row] = own[[row, GENERIC]].max(axis=0)
        self.tick()

    def fence_all(self) -> None:
        self.fence(ASYNC_SHARED, ASYNC_GLOBAL, INIT)


class WarpLanes:
    """A warp's strands."""

    def __init__(self, domain: Domain, warp: Warp) -> None:
        self.domain = domain
        self.warp = warp
        self.components: dict[int, int] = {}  # by the lanes of a strand; of many strands by the lowest one
        component, clock = self._component(warp.live), domain.clock()
        first = Strand(domain, component, clock, warp, warp.live)
        first.tick()
        self.strands = [first]

    def _component(self, mask: int) -> int:
        component = self.components.get(mask)
        if component is None and len(self.components) >= _MOST_STRANDS:
            mask = -(mask & -mask)
            component = self.components.get(mask)
        if component is None:
            cta = self.warp.cta
            who = Who(cta.id, cta.linear, self.warp.index, "warp")
            component = self.components[mask] = self.domain.component(who)
        return component

    def of(self, mask: int) -> Strand:
        """The strand of these lanes, which run together."""
        for strand in self.strands:
            if strand.mask == mask:
                return strand
        return self._regrouped(mask)

    def _regrouped(self, mask: int) -> Strand:
        inside, outside = [], []
        for strand in self.strands:
            if not strand.mask & mask:
                outside.append(strand)
                continue
            if strand.mask & ~mask:
                outside.append(self._made(strand.mask & ~mask, [strand]))
            inside.append(strand)
        found = self._made(mask, inside)
        for strand in (found, *outside):
            strand.tick()
        self.strands = [found, *outside]
        return found

    def _made(self, mask: int, of: list[Strand]) -> Strand:
        component = self._component(mask)
        if of:
            clock = of[0].clock.copy()
            for other in of[1:]:
                clock.join(other.clock)
        else:  # lanes that were not there before: never
            clock = self.domain.clock()
        clock.fit(self.domain.capacity)
        made = Strand(self.domain, component, clock, self.warp, mask)
        made.met = made.time
        for strand in of:
            for who, done in (*strand.apart.items(), (strand.component, (strand.met, strand.time, strand.mask))):
                before = made.apart.get(who, done)
                made.apart[who] = min(before[0], done[0]), max(before[1], done[1]), before[2] | done[2]
        for strand in of:
            for name in ("fenced", "seen"):
                theirs = getattr(strand, name)
                if theirs is not None:
                    mine = getattr(made, name)
                    if mine is None:
                        setattr(made, name, theirs.copy())
                    else:
                        mine.join(theirs)
        return made

    def all(self) -> Clock:
        """What its lanes know together."""
        clock = self.strands[0].clock.copy()
        for strand in self.strands[1:]:
            clock.join(strand.clock)
        return clock


class Work(Actor):
    """One asynchronous operation. end: the time of its component when it is over. issuer, issued: the strand's number
    and its time when it was issued. writer: of a copy out of shared memory, whose writes may be known later than its
    reads, the half that writes. met: in a check by lanes, what those of its warp knew together when it was issued.
    """

    __slots__ = ("cta", "end", "instruction", "issued", "issuer", "met", "site", "unit", "writer")

    def __init__(
        self,
        unit: Unit,
        component: int,
        end: int,
        clock: Clock,
        issuer: Strand,
        instruction: Instruction,
        site: int,
        *,
        in_order: bool = True,
    ) -> None:
        clock.fit(unit.domain.capacity)
        if in_order:
            clock.own[:, component] = end
        super().__init__(unit.domain, component, clock, unit.asynchronous)
        self.in_order, self.time = in_order, end
        self.unit = unit
        self.cta = unit.cta
        self.issuer = issuer.number
        self.issued = issuer.time
        self.instruction = instruction
        self.site = site
        self.end = end
        self.writer: Work | None = None
        self.met: Clock | None = None


@dataclass(slots=True, eq=False)
class Unit:
    """What does asynchronous work of one kind in a CTA. free: components that are in use no more, with their last
    times, oldest first. last: of a unit whose work is over in order, its only component and the time of the last."""

    domain: Domain
    cta: Cta
    name: str
    asynchronous: bool
    free: list[tuple[int, int]] = field(default_factory=list)
    made: int = 0
    last: tuple[int, int] | None = None

    def in_order(self) -> tuple[int, int]:
        """The component and the next time."""
        component, time = self.last or (self._component(), 0)
        self.last = component, time + 1
        return self.last

    def any_order(self, clock: Clock) -> tuple[int, int]:
        """A component whose earlier owners are known to a clock to be done, and its next time."""
        own = clock.own
        width, item = own.shape[1], own.item
        done = [(c, last) for c, last in self.free[:_LOOKED_AT] if c < width and item(GENERIC, c) >= last]
        if done:  # the least: so that a ring comes round to the same ones soon
            component, last = least = min(done)
            self.free.remove(least)
            return component, last + 1
        if self.made >= _MOST_IN_FLIGHT and self.free:
            component, last = self.free.pop(0)
            return component, last + 1
        self.made += 1
        return self._component(), 1

    def _component(self) -> int:
        return self.domain.component(Who(self.cta.id, self.cta.linear, None, self.name))


Copies = dict[tuple[int, int | None], Work]  # by its component and that of its writes the last work


class Groups:
    """The groups of asynchronous work of one kind that a warp's lanes have committed, as if they were one lane's: what
    a wait of some of them covers is taken to be over for those of the others too. most_left: how many groups a wait
    leaves under way at most. Those before them are one: who knows the end of work knows that of work before it of the
    same components."""

    def __init__(self, most_left: int) -> None:
        self._kept = most_left + 1
        self.open: Copies = {}
        self.committed: deque[Copies] = deque()
        self.gone = 0  # groups that have left ``committed``
        self.known: dict[int, int] = {}  # by a strand's component, of how many groups it knows that they have read
        self.numbers: deque[int] = deque()  # of wgmma-groups, the last product of each

    def add(self, work: Work) -> None:
        self.open[work.component, None if work.writer is None else work.writer.component] = work

    def commit(self) -> None:
        self.committed.append(self.open)
        self.open = {}
        if len(self.committed) > self._kept:
            older = self.committed.popleft()
            self.committed[0] = {**older, **self.committed[0]}
            self.gone += 1

    def waited(self, keep: int) -> list[Work]:
        """What is over once only the ``keep`` newest groups may be under way."""
        found: list[Work] = []
        while len(self.committed) > keep:
            found += self.committed.popleft().values()
            self.gone += 1
        return found

    def read(self, component: int, keep: int) -> list[Work]:
        """What has been read once only the ``keep`` newest groups may not have been, and the strand did not know."""
        first = max(self.known.get(component, 0), self.gone)
        last = self.gone + len(self.committed) - keep
        if last <= first:
            return []
        self.known[component] = last
        groups = islice(self.committed, first - self.gone, last - self.gone)
        return [work for works in groups for work in works.values()]
