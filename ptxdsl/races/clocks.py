"""Vector clocks: what each thread of control knows of all others, by memory proxy.

A *domain* is a cluster: threads of different clusters have nothing to do with one another but through global memory. In
a domain every actor (the lanes of a warp that run together, an asynchronous copy, a matrix unit) has a component, a
number that counts its releases. A clock holds for each component the time up to which the actor's accesses happen
before; several rows of it say in whose eyes: those of the generic proxy, and those of the async proxy in shared and in
global memory, which sees what threads wrote only after a ``fence.proxy.async`` on the way (PTX ISA, "Proxies",
"Causality order"). Two more rows are about mbarriers: ``fence.mbarrier_init`` orders their initialisation; and that a
wait is over may be known where no more is (``Strand.tells``).

An access is remembered by its epoch alone, the actor and its time (FastTrack; Flanagan, Freund 2009): it happens before
whoever has at least that time in his clock.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

GENERIC, ASYNC_SHARED, ASYNC_GLOBAL, INIT, WAITS = range(5)  # rows of a clock
ROWS = 5
SHIFT = 16  # an actor's number in a launch is domain << SHIFT | component
MOST_COMPONENTS = 1 << SHIFT
NO_DOMAIN = -1

Times = npt.NDArray[np.int32]  # (ROWS, components)


class Clock:
    """own: of the domain's components. foreign: of others', where something is known of them."""

    __slots__ = ("domain", "foreign", "own")

    def __init__(self, domain: int, own: Times, foreign: dict[int, Times] | None = None) -> None:
        self.domain = domain
        self.own = own
        self.foreign = foreign

    def copy(self) -> Clock:
        return Clock(self.domain, self.own.copy(), dict(self.foreign) if self.foreign else None)

    def join(self, other: Clock) -> None:
        """Knows what the other one knows, too."""
        if other.domain == self.domain:
            own, others = self.own, other.own
            if own.shape == others.shape:
                np.maximum(own, others, out=own)
            else:
                self.own = joined(own, others)
            if other.foreign is None:
                return
        if other.domain not in (self.domain, NO_DOMAIN):
            self._learn(other.domain, other.own)
        for domain, times in (other.foreign or {}).items():
            self._learn(domain, times)

    def _learn(self, domain: int, times: Times) -> None:
        if domain == self.domain:
            self.own = joined(self.own, times)
            return
        if self.foreign is None:
            self.foreign = {}
        known = self.foreign.get(domain)
        self.foreign[domain] = times.copy() if known is None else joined(known.copy(), times)

    def knows(self, number: int, time: int) -> bool:
        """Whether an epoch of its own domain happens before (in the eyes of the generic proxy)."""
        component = number & MOST_COMPONENTS - 1
        if number >> SHIFT != self.domain or component >= self.own.shape[1]:
            return False
        return bool(self.own[GENERIC, component] >= time)

    def fit(self, components: int) -> None:
        """Makes room for that many."""
        have = self.own.shape[1]
        if have < components:
            grown = np.zeros((ROWS, components), np.int32)
            grown[:, :have] = self.own
            self.own = grown


def joined(into: Times, times: Times) -> Times:
    """The larger of both in ``into``, or in a new array if it is too narrow."""
    have, width = into.shape[1], times.shape[1]
    if have == width:
        np.maximum(into, times, out=into)
        return into
    if have > width:
        np.maximum(into[:, :width], times, out=into[:, :width])
        return into
    grown = times.copy()
    np.maximum(grown[:, :have], into, out=grown[:, :have])
    return grown


def single(array: npt.NDArray[Any]) -> memoryview:
    """Of which single elements are read and written faster. (An empty one has no elements to ask for.)"""
    return array.data


def nothing(domain: int = NO_DOMAIN) -> Clock:
    """Of somebody who knows nobody."""
    return Clock(domain, np.zeros((ROWS, 1), np.int32))


class Domain:
    """A cluster. what: by component, the one whose it is."""

    def __init__(self, number: int, expected: int) -> None:
        self.number = number
        self.what: list[Any] = []
        self.capacity = max(expected, 8)

    def component(self, what: Any) -> int:
        """A new one. Raises OverflowError where there are too many."""
        if len(self.what) >= MOST_COMPONENTS:
            raise OverflowError("too many actors in a cluster")
        self.what.append(what)
        while self.capacity < len(self.what):
            self.capacity *= 2
        return len(self.what) - 1

    def clock(self) -> Clock:
        return Clock(self.number, np.zeros((ROWS, self.capacity), np.int32))
