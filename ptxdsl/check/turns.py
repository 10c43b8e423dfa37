"""What turning a ring by some stages renames: barriers, their parities, events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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

    def becomes(self, barrier: Barrier, other: Barrier) -> None:
        if self.barriers.setdefault(barrier, other) is not other:
            raise Different

    def flip(self, barrier: Barrier, flips: int) -> None:
        if self.flips.setdefault(barrier, flips) != flips:
            raise Different

    def rename(self, bit: int, other: int) -> None:
        if self.bits.setdefault(bit, other) != other:
            raise Different


class Names(dict[int, int]):
    """Renamed events, by events. moved: those that get another name. ones: the places of each (``cluster.py``)."""

    def __init__(self, bits: dict[int, int], ones: int = 1) -> None:
        super().__init__()
        self.bits = bits
        self.moved = 0
        self._shifts: dict[int, int] = {}  # by how far bits move, as bits
        for bit, other in bits.items():
            if bit != other:
                everywhere = bit * ones
                self.moved |= everywhere
                by = other.bit_length() - bit.bit_length()
                self._shifts[by] = self._shifts.get(by, 0) | everywhere

    def __missing__(self, events: int) -> int:
        found = events & ~self.moved
        if found != events:
            for by, bits in self._shifts.items():
                some = events & bits
                if some:
                    found |= some << by if by > 0 else some >> -by
        self[events] = found
        return found


class Turn:
    """What turning rings, each by some stages, renames: barriers, their numbers, events, and ``Touch.bytes``."""

    def __init__(self, turned: Iterable[tuple[Ring, int]], ones: int) -> None:
        self.barriers: dict[Barrier, Barrier] = {}
        self.flips: dict[Barrier, int] = {}
        bits: dict[int, int] = {}
        bytes: dict[int, int] = {}
        for ring, stages in turned:
            if stages:
                self._turn(ring, stages)
                bits = _followed(bits, _repeated(ring.bits, stages))
                bytes = _followed(bytes, _repeated(ring.bytes, stages))
        self.numbers = {barrier.number: other.number for barrier, other in self.barriers.items()}
        self.events = Names(bits, ones)
        self.bytes = Names(bytes)

    def _turn(self, ring: Ring, stages: int) -> None:
        for barrier, other in ({b: b for b in ring.barriers} | self.barriers).items():
            flips = self.flips.get(barrier, 0)
            for _ in range(stages):
                flips ^= ring.flips.get(other, 0)
                other = ring.barriers.get(other, other)
            self.barriers[barrier], self.flips[barrier] = other, flips


def _repeated(names: dict[int, int], times: int) -> dict[int, int]:
    """What becomes of names that are changed so often."""
    found = names
    for _ in range(times - 1):
        found = {name: names[other] for name, other in found.items()}
    return found


def _followed(first: dict[int, int], then: dict[int, int]) -> dict[int, int]:
    return {b: then.get(other, other) for b, other in ({b: b for b in then} | first).items()}


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
