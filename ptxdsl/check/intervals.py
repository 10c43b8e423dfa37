"""Bytes that accesses touch, as intervals, and by which threads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import gcd

from ptxdsl.check.threads import WARP, Mask, members
from ptxdsl.hints import Protocol

Intervals = tuple[tuple[int, int], ...]  # sorted, apart from one another; ends are exclusive
# Accesses of each thread: an offset for each (None: 0 for all), what is added to all of them, bytes.
Places = tuple[tuple[tuple[int, ...] | None, int, int], ...]


class Touched(Protocol):
    """What is asked of an access here."""

    intervals: Intervals
    mask: Mask
    places: Places


def overlap(a: Intervals, b: Intervals) -> bool:
    if a[-1][1] <= b[0][0] or b[-1][1] <= a[0][0]:
        return False
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i][1] <= b[j][0]:
            i += 1
        elif b[j][1] <= a[i][0]:
            j += 1
        else:
            return True
    return False


def threads_meet(a: Touched, b: Touched) -> tuple[bool, bool]:
    """Whether different threads of one warp, and of different warps, touch the same byte."""
    base = a.intervals[0][0]
    return _threads_meet(_Threads(a, base), _Threads(a if a is b else b, base))


class _Threads:
    """An access by how far it is from a place: stages of a ring are the same."""

    def __init__(self, touch: Touched, base: int) -> None:
        self.mask = touch.mask
        self.intervals = moved(touch.intervals, -base)
        self.places = tuple((lanes, shift - base, width) for lanes, shift, width in touch.places)
        self.key = self.mask, self.intervals, self.places

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Threads) and self.key == other.key


@lru_cache(1024)
def _threads_meet(a: _Threads, b: _Threads) -> tuple[bool, bool]:
    first = list(_thread_bytes(a))
    if a == b and sum(end - start for _, start, end in first) == sum(end - start for start, end in a.intervals):
        return False, False  # every byte is of one thread
    second = first if a == b else list(_thread_bytes(b))
    unit = 0
    for _, start, end in (*first, *second):
        unit = gcd(unit, start, end)
    within = across = False
    by_unit: dict[int, list[int]] = {}
    for t, start, end in first:
        for at in range(start, end, unit):
            by_unit.setdefault(at, []).append(t)
    for u, start, end in second:
        for at in range(start, end, unit):
            for t in by_unit.get(at, ()):
                if t // WARP != u // WARP:
                    across = True
                elif t != u:
                    within = True
        if across:
            break  # what must meet across warps must meet within them, too
    return within or across, across


def _thread_bytes(touch: Touched) -> Iterator[tuple[int, int, int]]:
    """thread, first byte, end; of accesses in unknown places, all of the touch for every thread."""
    threads = members(touch.mask)
    for lanes, shift, width in touch.places:
        for i, t in enumerate(threads):
            start = shift + (lanes[i] if lanes is not None else 0)
            yield t, start, start + width
    if not touch.places:
        for t in threads[:1] + threads[-1:]:
            yield t, touch.intervals[0][0], touch.intervals[-1][1]


def intervals_of(offsets: list[int], width: int) -> Intervals:
    """The bytes of accesses of one width at these offsets."""
    made: list[tuple[int, int]] = []
    for offset in sorted(set(offsets)):
        if made and offset <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], offset + width)
        else:
            made.append((offset, offset + width))
    return tuple(made)


def moved(intervals: Intervals, by: int) -> Intervals:
    return tuple((a + by, b + by) for a, b in intervals) if by else intervals


def merged(parts: list[Intervals]) -> Intervals:
    """All bytes of several."""
    if len(parts) == 1:
        return parts[0]
    made: list[tuple[int, int]] = []
    for start, end in sorted(i for part in parts for i in part):
        if made and start <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], end)
        else:
            made.append((start, end))
    return tuple(made)
