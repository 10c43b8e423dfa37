"""What trials of steps answer (``alike.py``)."""

from __future__ import annotations

from ptxdsl.check.parts import Barrier
from ptxdsl.check.turns import Ring
from ptxdsl.hints import Any
from ptxdsl.record import dataclass


@dataclass(frozen=True)
class Answer:
    """Of a step for some values: the barriers that it comes to, a wait's parity, its events, and what must be the same
    for all stages."""

    barriers: tuple[Barrier, ...]
    parity: int
    events: tuple[int, ...]
    same: Any


@dataclass(frozen=True)
class Answers:
    """Of a step, by the values of variables in their order. barriers, events: of all of them."""

    variables: tuple[int, ...]
    by_values: dict[tuple[int, ...], Answer]
    barriers: frozenset[Barrier]
    events: int


class Untouched:
    """What steps come to that have no part in a ring: barriers, those of them that are waited for, and events."""

    def __init__(self) -> None:
        self.barriers: set[Barrier] = set()
        self.waited: set[Barrier] = set()
        self.events = 0

    def add(self, answers: Answers, *, waits: bool) -> None:
        self.barriers |= answers.barriers
        self.events |= answers.events
        if waits:
            self.waited |= answers.barriers

    def moved_by(self, ring: Ring) -> bool:
        """Whether turning a ring renames any of it, or changes a parity that is waited for."""
        return (
            any(ring.barriers.get(barrier, barrier) is not barrier for barrier in self.barriers)
            or any(ring.flips.get(barrier, 0) for barrier in self.waited)
            or any(bit & self.events and bit != other for bit, other in ring.bits.items())
        )
