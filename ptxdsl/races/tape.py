"""Times and other counts of a state in one row, so that two states can be compared and one be moved on.

Whatever grows in a run is a number of a *counter*: the times of one component, the phases of one mbarrier. What is done
with the numbers of a counter is this: they are compared with one another, the larger or smaller of two is taken, and
the next one is made of the largest. All of that commutes with a map that keeps their order. ``moved`` looks for such a
map from one state to a later one: of each counter, numbers up to a bound stay, those above all grow by one amount.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.races.clocks import MOST_COMPONENTS
from ptxdsl.record import dataclass

Numbers = npt.NDArray[np.int64]

_MOST = 1 << 18  # numbers
_LEAST_OF_NONE = np.iinfo(np.int64).max


class Unrepeatable(Exception):
    """There is something in a state of which it cannot be said when it is the same again."""


class Counters:
    """Numbers the counters: those of a domain's components follow upon one another."""

    def __init__(self) -> None:
        self._first: dict[object, int] = {}
        self.count = 0

    def of(self, what: object, many: int = 1) -> int:
        first = self._first.get(what)
        if first is None:
            first = self._first[what] = self.count
            self.count += many
        return first

    def component(self, domain: int) -> int:
        """Of a domain's first component."""
        return self.of(domain, MOST_COMPONENTS)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """same: what two states must have alike. counters, numbers: of each number its counter."""

    same: list[object]
    counters: Numbers
    numbers: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """Of each counter, by how much numbers above ``bound`` grow from one state to the other."""

    bound: Numbers
    growth: Numbers

    def after(self, counters: Any, numbers: Any, times: Any) -> Numbers:
        """Numbers of a state after so many more steps of this kind."""
        moves = numbers > self.bound[counters]
        return np.asarray(numbers + np.where(moves, self.growth[counters] * times, 0))


class Tape:
    """Takes the numbers of a state down, or gives others back in the same order."""

    def __init__(self, counters: Counters, given: Numbers | None = None) -> None:
        self.counters = counters
        self.seen: dict[int, int] = {}  # objects that are a part of the state already
        self._same: list[object] = []
        self._of: list[Numbers] = []
        self._numbers: list[Numbers] = []
        self._given = given
        self._at = 0

    def same(self, *what: object) -> None:
        self._same.append(what)

    def first(self, thing: object) -> bool:
        """Whether it has not been met before. Either way, the states must agree on that."""
        number = self.seen.get(id(thing))
        self._same.append(number)
        if number is None:
            self.seen[id(thing)] = len(self.seen)
        return number is None

    def number(self, counter: int, number: int) -> int:
        return int(self.numbers(counter, np.array([number]))[0])

    def numbers(self, counters: Any, numbers: Any) -> Numbers:
        """counters: of all numbers one, or an array. Raises Unrepeatable where the state is too large to look at."""
        self._at += numbers.size
        if self._given is None:
            if self._at > _MOST:
                raise Unrepeatable
            self._of.append(np.broadcast_to(counters, numbers.shape).reshape(-1))
            self._numbers.append(numbers.reshape(-1).astype(np.int64))
            self._same.append(numbers.shape)
            return np.asarray(numbers)
        return self._given[self._at - numbers.size : self._at].reshape(numbers.shape)

    def state(self) -> State:
        return State(self._same, np.concatenate(self._of), np.concatenate(self._numbers))


def moved(before: State, after: State, count: int) -> Shift | None:
    """How one of the states has become the other, if it is the same but for that. count: of counters."""
    if len(before.counters) != len(after.counters) or before.same != after.same:
        return None
    if not np.array_equal(before.counters, after.counters):
        return None
    grown = after.numbers - before.numbers
    moves = grown != 0
    which, amounts = before.counters[moves], grown[moves]
    growth = np.zeros(count, np.int64)
    growth[which] = amounts
    if (amounts < 0).any() or (growth[which] != amounts).any():
        return None
    bound, least = np.zeros(count, np.int64), np.full(count, _LEAST_OF_NONE)
    np.maximum.at(bound, before.counters[~moves], before.numbers[~moves])
    np.minimum.at(least, which, before.numbers[moves])
    # A zero means "never" in many places: none that moves is one.
    return Shift(bound, growth) if (bound < least).all() else None
