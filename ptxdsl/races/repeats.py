"""Repeated turns of a run, which show nothing that the turn before them has not shown.

A run is a row of events, each of which makes of what is known before it what is known after it (``trace_order``). A
ring that has filled goes on by the same events again and again, and what is known grows by the same amounts each time.
That is looked for, not assumed, in two steps:

1. The last events are the same as those before them, as often as is asked (a *turn*).
2. The state after one more such turn is the state before it, moved: there is a map of the times that keeps their order
   and makes of all numbers of the one those of the other (``tape.moved``; ``state.walk`` says which numbers).

What an event does hangs on the order of times alone. So from a moved state the same events lead to the moved one of
what they led to before, and find the same conflicts, between the same instructions: each is told once. While events go
on as expected they are counted, and no more. Addresses in global memory are no part of an event; instead each access to
it must be one that nothing can be in the way of (``fresh``). The first event that is another one, or whose accesses are
not, ends that: the state is moved by the turns that went by, the events of the turn under way are worked through, and
all is as if each event had been.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable
from typing import Any

from ptxdsl.races.accesses import Piece
from ptxdsl.races.fresh import Fresh
from ptxdsl.races.shadow import Cells
from ptxdsl.races.state import Words, walk
from ptxdsl.races.tape import Counters, Shift, State, Tape, Unrepeatable, moved
from ptxdsl.races.trace_order import TraceOrder
from ptxdsl.record import dataclass

Handler = Callable[..., None]

_FIRST_LOOK = 200  # events
_TAIL = 24  # events that are looked for among those before
_TRIES = 4  # turns after which their states are compared, before it is given up for a while
_MANY = 16  # turns
_MOST_PLACES = 16  # of the tail
_MOST_EVENTS = 1 << 20  # that are remembered


@dataclass(frozen=True, slots=True, eq=False)
class _Begin:
    """Of a turn: the state, how many accesses to global memory there have been, and what was remembered for words."""

    state: State
    trail: int
    words: Words


class OneByOne:
    """Hands every event on."""

    def once(self, handler: Handler, *arguments: Any) -> None:
        """One that does not come again."""
        self.tell(object(), handler, *arguments)

    def tell(self, key: Hashable, handler: Handler, *arguments: Any) -> None:
        handler(*arguments)

    def tell_accesses(
        self, key: Hashable, others: list[Piece[Cells]], handler: Handler, given: tuple[Any, ...], own: tuple[Any, ...]
    ) -> None:
        handler(*given)


class Repeats(OneByOne):
    """Hands events on to ``order``, or passes over them."""

    def __init__(self, order: TraceOrder) -> None:
        self.order = order
        self._ids: dict[Hashable, int] = {}
        self._events = array("l")  # the ids of those since the last that were passed over
        self._look = _FIRST_LOOK  # when there are so many
        self._shortest = 1  # turn that is looked for
        self._turn: list[Hashable] = []  # the events that are expected
        self._at = 0  # of the next one
        self._counters = Counters()
        self._begun: list[_Begin] = []  # this turn and the ones before it
        # While events are passed over:
        self._from: _Begin | None = None  # the state at their beginning, and the words of the turn before
        self._shift: Shift | None = None  # from one turn to the next
        self._fresh = Fresh([], self._counters)
        self._turns = 0  # that have gone by
        self._waiting: list[tuple[Handler, tuple[Any, ...]]] = []  # the events of the turn under way

    # Events

    def tell(self, key: Hashable, handler: Handler, *arguments: Any) -> None:
        """What it is, and what is to be done for it. Equal keys mean that the same is done."""
        if self._shift is not None:
            if key == self._turn[self._at]:
                self.skip(1, (handler, arguments))
                return
            self._go_on()
        handler(*arguments)
        self._happened(key)

    def tell_accesses(
        self, key: Hashable, others: list[Piece[Cells]], handler: Handler, given: tuple[Any, ...], own: tuple[Any, ...]
    ) -> None:
        """The same of one that accesses global memory. others: these accesses; own: what is given without them."""
        if self._shift is not None:
            if key == self._turn[self._at] and self._fresh.take(others):
                self.skip(1, (handler, own))
                return
            self._go_on()
        handler(*given)
        self._happened(key)

    # Events that are looked at many at once (``in_bulk``)

    @property
    def expected(self) -> list[Hashable]:
        """While events are passed over, those of a turn; else none."""
        return self._turn if self._shift is not None else []

    @property
    def at(self) -> int:
        """The number of the one that is expected next."""
        return self._at

    def take(self, others: list[Piece[Cells]]) -> bool:
        """Whether these accesses to global memory, the next ones, are such as can be passed over."""
        return self._fresh.take(others)

    def skip(self, count: int, handler: tuple[Handler, tuple[Any, ...]] | None) -> None:
        """So many events are as expected. handler: what is to be done for them if the turn does not come to its end; it
        may be None where it does."""
        self._at += count
        if self._at == len(self._turn):
            self._at = 0
            self._turns += 1
            self._waiting.clear()
        else:
            assert handler is not None
            self._waiting.append(handler)

    def _happened(self, key: Hashable) -> None:
        self._events.append(self._ids.setdefault(key, len(self._ids)))
        if self._turn:
            if key != self._turn[self._at]:
                self._give_up()
            else:
                self._at += 1
                if self._at == len(self._turn):
                    self._compare()
        elif len(self._events) >= self._look:
            self._look_for_turn()

    # Turns

    def _look_for_turn(self) -> None:
        """Whether the last events are those before them."""
        events = self._events
        if len(events) > _MOST_EVENTS:
            self._forget()
            return
        self._look = len(events) * 3 // 2
        data, width = events.tobytes(), events.itemsize
        tail = data[-_TAIL * width :]
        end = len(data) - self._shortest * width
        for _ in range(_MOST_PLACES):
            at = data.rfind(tail, 0, end)
            if at < 0:
                return
            end = at + len(tail) - 1
            length, rest = divmod(len(data) - len(tail) - at, width)
            if not rest and events[-length:] == events[-2 * length : -length]:
                keys = list(self._ids)
                self._turn = [keys[number] for number in events[-length:]]
                self._counters = Counters()
                self.order.trail = []
                self._begin()
                return

    def _begin(self) -> None:
        """A turn begins."""
        self._at = 0
        state = self._taken()
        if state is None:
            self._give_up()
            return
        assert self.order.trail is not None
        self._begun.append(_Begin(state, len(self.order.trail), Words(self.order.races)))

    def _taken(self) -> State | None:
        tape = Tape(self._counters)
        try:
            walk(self.order, tape)
        except Unrepeatable:
            return None
        return tape.state()

    def _give_up(self) -> None:
        self._turn, self._begun, self.order.trail = [], [], None

    def _forget(self) -> None:
        self._ids.clear()
        self._events = array("l")
        self._look, self._shortest = _FIRST_LOOK, 1

    def _compare(self) -> None:
        """A turn has come to its end, and its events were as expected."""
        self._begin()
        trail = self.order.trail
        if trail is None:
            return
        *earlier, last = self._begun
        for turns, begin in enumerate(reversed(earlier), 1):
            shift = moved(begin.state, last.state, self._counters.count)
            if shift is not None:
                self._turn *= turns
                self._fresh = Fresh(trail[begin.trail :], self._counters)
                self._from = _Begin(last.state, 0, begin.words)
                self._shift, self._turns = shift, 0
                self._begun, self.order.trail = [], None
                return
        if len(earlier) == _TRIES or len(earlier[-1].state.numbers) != len(last.state.numbers):  # or it grows
            self._give_up()
            self._look = 2 * len(self._events)

    def _go_on(self) -> None:
        """Makes what is known what it would be if each event had been worked through."""
        shift, turns, begin = self._shift, self._turns, self._from
        assert shift is not None and begin is not None
        state, self._shift = begin.state, None
        if turns:
            begin.words.repeat(shift, self._counters, turns)
            walk(self.order, Tape(self._counters, shift.after(state.counters, state.numbers, turns)))
        self._fresh.settle(shift)
        waiting, self._waiting = self._waiting, []
        for handler, arguments in waiting:
            handler(*arguments)
        if turns >= _MANY:
            self._forget()
        else:  # these turns are part of longer ones
            self._events.extend(turns * self._events[-len(self._turn) :])
            self._shortest = len(self._turn) + 1
            self._look = len(self._events) + _FIRST_LOOK
        self._give_up()
