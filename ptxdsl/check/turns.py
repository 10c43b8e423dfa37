"""What turning a ring by some stages renames: barriers, their parities, events."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.check.parts import Barrier
from ptxdsl.check.states import Phase, phase


class Different(Exception):
    """The stages of a ring are not alike."""


class Ring:
    """Variables of agents that stand for stages of the same barriers, and what turning by one stage renames.

    order: after how many stages it is where it was. barriers: which becomes which. flips: those whose parity changes.
    bits: of events. bytes: of ``Touch.bytes``.
    """

    def __init__(self) -> None:
        self.variables: list[tuple[int, int]] = []
        self.order = 1
        self.barriers: dict[Barrier, Barrier] = {}
        self.flips: dict[Barrier, int] = {}
        self.bits: dict[int, int] = {}
        self.bytes: dict[int, int] = {}
        self.turns: dict[int, Turn] = {}

    def becomes(self, barrier: Barrier, other: Barrier) -> None:
        if self.barriers.setdefault(barrier, other) is not other:
            raise Different

    def flip(self, barrier: Barrier, flips: int) -> None:
        if self.flips.setdefault(barrier, flips) != flips:
            raise Different

    def rename(self, bit: int, other: int) -> None:
        if self.bits.setdefault(bit, other) != other:
            raise Different


class Names:
    """A renaming of bits. moved: those that get another name."""

    def __init__(self, bits: dict[int, int]) -> None:
        self.bits = bits
        self.moved = 0
        for bit, other in bits.items():
            if bit != other:
                self.moved |= bit
        self._known: dict[int, int] = {}

    def renamed(self, events: int) -> int:
        rest = events & self.moved
        if not rest:
            return events
        found = self._known.get(rest)
        if found is None:
            found, left, bits = 0, rest, self.bits
            while left:
                bit = left & -left
                left ^= bit
                found |= bits[bit]
            self._known[rest] = found
        return events & ~self.moved | found


class Turn:
    """A ring's renaming for some stages at once: of barriers, their numbers, events, and ``Touch.bytes``."""

    def __init__(
        self, barriers: dict[Barrier, Barrier], flips: dict[Barrier, int], bits: dict[int, int], bytes: dict[int, int]
    ) -> None:
        self.barriers, self.flips = barriers, flips
        self.numbers = {barrier.number: other.number for barrier, other in barriers.items()}
        self.events = Names(bits)
        self.bytes = Names(bytes)


def orbits(barriers: dict[Barrier, Barrier]) -> Iterator[list[Barrier]]:
    seen: set[Barrier] = set()
    for barrier in barriers:
        orbit = []
        while barrier not in seen:
            seen.add(barrier)
            orbit.append(barrier)
            barrier = barriers[barrier]
        if orbit:
            yield orbit


def flipped(old: Phase) -> Phase:
    return phase(
        old.expected, old.pending, old.bytes, old.parity ^ 1, old.arrived, old.announced, old.begun, old.unclear
    )
