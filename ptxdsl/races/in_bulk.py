"""Events of turns in host code, which come many at once.

While turns of the run repeat themselves (``repeats``), their bytes are compared with those that are expected, and only
accesses to global memory are looked at one by one. Else each event is worked through by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ptxdsl.races.accesses import FENCE, GENERIC, GLOBAL, LOCAL, Piece, elsewhere
from ptxdsl.races.ranges import idle_lanes
from ptxdsl.races.shadow import Cells
from ptxdsl.races.trace_memory import Step
from ptxdsl.sim.layout import ACCESS, ARRIVED, CAME, COMPLETED, EVENT, EXECUTED, ISSUED, MET, RAN, WAITED, WENT
from ptxdsl.sim.machine.group import WarpGroup
from ptxdsl.sim.machine.warp import Warp

if TYPE_CHECKING:
    from ptxdsl.races.repeats import Repeats
    from ptxdsl.races.trace import TraceCheck

Array = npt.NDArray[Any]

WORDS = ACCESS.itemsize // 8
_BYTES = EVENT.itemsize
_ADDRESSES = 3  # the words of a record before them


class Key(NamedTuple):
    """What there is to say of an event: its own bytes; of the accesses that it speaks of the words, without addresses
    in global memory, and what else is known of those."""

    text: bytes
    words: bytes = b""
    elsewhere: tuple[Hashable, ...] = ()


class Batch:
    """Events, the phases that they speak of, and the access log. first: of each event the record from which on its own
    are there."""

    def __init__(self, events: Array, phases: Array, words: memoryview) -> None:
        self.count = len(events)
        self.events = events
        self.text = events.tobytes()
        self.phases = phases
        self.words = words
        self.first = list(accumulate(events["logged"].tolist(), initial=0))

    def words_of(self, at: int, count: int = 1) -> memoryview:
        """Of the records of some events."""
        return self.words[self.first[at] * WORDS : self.first[at + count] * WORDS]


class Expected:
    """The events of a turn by their bytes. ends: where those that come without one of the machine's between end."""

    def __init__(self, turn: Sequence[Hashable]) -> None:
        keys = [key if isinstance(key, Key) else None for key in turn]
        self.text = b"".join(bytes(_BYTES) if key is None else key.text for key in keys)
        self.bytes = b"".join(key.words for key in keys if key is not None)
        self.words: Array = np.frombuffer(self.bytes, np.uint64)
        self.compared = _compared(self.words)
        counts = [0 if key is None else len(key.words) // ACCESS.itemsize for key in keys]
        self.first = list(accumulate(counts, initial=0))
        self.elsewhere = {at: key.elsewhere for at, key in enumerate(keys) if key is not None and key.elsewhere}
        self.ends = [0] * len(keys)
        end = len(keys)
        for at in reversed(range(len(keys))):
            if keys[at] is None:
                end = at
            self.ends[at] = end

    def alike(self, at: int, batch: Batch, place: int, count: int) -> int:
        """How many of so many events of a batch, from a place on, are those expected from ``at`` on."""
        ours, theirs = self.text[at * _BYTES : (at + count) * _BYTES], batch.text
        if ours != theirs[place * _BYTES : (place + count) * _BYTES]:
            count = next(
                n
                for n in range(count)
                if ours[n * _BYTES : (n + 1) * _BYTES] != theirs[(place + n) * _BYTES : (place + n + 1) * _BYTES]
            )
        first, end = self.first[at] * WORDS, self.first[at + count] * WORDS
        theirs = batch.words_of(place, count).tobytes()
        if theirs == self.bytes[8 * first : 8 * end]:
            return count
        apart = (np.frombuffer(theirs, np.uint64) ^ self.words[first:end]) & self.compared[first:end]
        if not apart.any():
            return count
        record = int(np.flatnonzero(apart)[0]) // WORDS + self.first[at]
        return next(n for n in range(count) if self.first[at + n + 1] > record)


def _compared(words: Array) -> Array:
    """Of records a mask of the words that two turns must have alike: not addresses in global memory, none of local
    memory, which nobody shares, and none of lanes that access nothing."""
    mask: Array = np.full((len(words) // WORDS, WORDS), np.uint64(0xFFFFFFFFFFFFFFFF))
    space, kind = words[2::WORDS] & np.uint64(0xFF), words[1::WORDS] >> np.uint64(48)
    mask[(space == GLOBAL) | (space == LOCAL) | (kind >= FENCE), _ADDRESSES:] = 0
    idle = idle_lanes(words)
    if idle is not None:
        mask.reshape(-1)[idle] = 0
    return mask.reshape(-1)


class InBulk:
    """Hands events of host code on to a check."""

    def __init__(self, check: TraceCheck, repeats: Repeats) -> None:
        self.check = check
        self.order = check.order
        self.repeats = repeats
        self.machine = check.order.machine
        self._expected: tuple[Sequence[Hashable], Expected] | None = None  # and the turn that it is of

    def happened(self, batch: Batch) -> None:
        at = 0
        while at < batch.count:
            turn = self.repeats.expected
            if turn:
                at = self._passed_over(turn, batch, at)
                if at == batch.count:
                    return
            self._event(batch, at)
            at += 1

    # Turns that repeat themselves

    def _passed_over(self, turn: Sequence[Hashable], batch: Batch, at: int) -> int:
        """Passes over events, from one on, that are as expected. Gives the first that is not."""
        if self._expected is None or self._expected[0] is not turn:
            self._expected = turn, Expected(turn)
        expected = self._expected[1]
        while at < batch.count:
            place = self.repeats.at
            asked = min(batch.count - at, expected.ends[place] - place)
            found = self._fresh(expected, place, batch, at, expected.alike(place, batch, at, asked)) if asked else 0
            if found:
                again = place + found < len(turn)  # else nothing has to be remembered
                self.repeats.skip(found, (self._again, self._kept(batch, at, found)) if again else None)
                at += found
            if found < asked or not asked:
                break
        return at

    def _fresh(self, expected: Expected, place: int, batch: Batch, at: int, count: int) -> int:
        """How many of these events have only accesses to global memory that nothing can be in the way of."""
        for n in range(count):
            there = expected.elsewhere.get(place + n)
            if there is not None:
                others = _elsewhere(self._steps(batch, at + n))
                if tuple(map(elsewhere, others)) != there or not self.repeats.take(others):
                    return n
        return count

    @staticmethod
    def _kept(batch: Batch, at: int, count: int) -> tuple[bytes, bytes, bytes]:
        """What is needed of events if they have to be worked through later."""
        text = batch.text[at * _BYTES : (at + count) * _BYTES]
        return text, batch.phases[at : at + count].tobytes(), batch.words_of(at, count).tobytes()

    def _again(self, text: bytes, phases: bytes, words: bytes) -> None:
        """Works events through that were passed over."""
        batch = Batch(np.frombuffer(text, EVENT), np.frombuffer(phases, np.int64), memoryview(words).cast("Q"))
        for at in range(batch.count):
            kind, warp, *rest = self._read(batch, at)
            if kind == RAN:
                self.order.ran(warp, _own(self._steps(batch, at)))
            else:
                self._instruction(kind, warp, *rest)

    # One by one

    def _read(self, batch: Batch, at: int) -> tuple[int, Warp, int, int, int, int]:
        """An event: kind, warp, site, lanes, host address of the mbarrier's record, phase."""
        kind, slot, site, mask, barrier, _ = batch.events[at].item()
        turns = self.machine.host_turns
        assert turns is not None
        warp = turns.entity(slot)
        assert isinstance(warp, Warp)
        return kind, warp, site, mask, barrier, int(batch.phases[at])

    def _event(self, batch: Batch, at: int) -> None:
        kind, warp, *rest = self._read(batch, at)
        text = batch.text[at * _BYTES : (at + 1) * _BYTES]
        if kind != RAN:
            self.repeats.tell(Key(text), self._instruction, kind, warp, *rest)
            return
        steps = self._steps(batch, at)
        others = _elsewhere(steps)
        words = np.frombuffer(batch.words_of(at), np.uint64)
        if not self._said_by(words, steps, bool(others)):
            self.check.accessed(warp, steps)
            return
        key = Key(text, (words & _compared(words)).tobytes(), tuple(map(elsewhere, others)))
        if others:
            self.repeats.tell_accesses(key, others, self.order.ran, (warp, steps), (warp, _own(steps)))
        else:
            self.repeats.tell(key, self.order.ran, warp, steps)

    def _steps(self, batch: Batch, at: int) -> list[Step]:
        """What an event has done to memory."""
        _, warp, *_ = self._read(batch, at)
        return self.order.steps_of(warp, batch.words_of(at))

    def _said_by(self, words: Array, steps: list[Step], others: bool) -> bool:
        """Whether the words say all that what they do hangs on: nothing is ordered by way of memory, and it is known of
        an address whether it is one of global memory. others: whether there are such."""
        kinds = self.order.sites.kinds
        if not all(isinstance(what, list) or kinds[int(what["site"][0])].meets for _, what in steps):
            return False
        return not others or not ((words[2::WORDS] & np.uint64(0xFF)) == GENERIC).any()

    def _instruction(self, kind: int, warp: Warp, site: int, mask: int, record: int, phase: int) -> None:
        """Lanes have executed an instruction that host code knows."""
        order, turns = self.order, self.machine.host_turns
        group = WarpGroup(self.machine, warp, self.machine.sites[site].instruction, mask)
        order.stands(group, phase if kind == ISSUED else None)
        if kind == ISSUED:
            return
        if kind == EXECUTED:
            order.executed(group)
            return
        assert turns is not None
        if kind in (CAME, WENT, MET):
            meeting = turns.meetings[record]
            if kind != WENT:
                order.comes(group, meeting, phase)
            if kind != CAME:
                order.leaves(group, meeting, phase)
            return
        barrier = turns.barriers[record]
        order.used(barrier)
        if kind in (ARRIVED, COMPLETED):
            order.arrives(barrier, phase)
            if kind == COMPLETED:
                order.completed(barrier, phase)
        elif kind != WAITED:
            order.saw(group, barrier, phase)


def _own(steps: list[Step]) -> list[Step]:
    """Without accesses to global memory."""
    return [
        (lanes, [piece for piece in what if piece.cells.own] if isinstance(what, list) else what)
        for lanes, what in steps
    ]


def _elsewhere(steps: list[Step]) -> list[Piece[Cells]]:
    """The accesses to global memory."""
    return [piece for _, what in steps if isinstance(what, list) for piece in what if not piece.cells.own]
