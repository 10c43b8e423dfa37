"""Bytes that accesses touch, as intervals, and by which threads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import gcd

from ptxdsl.check.guards import Guard, together
from ptxdsl.check.threads import WARP, Mask, members
from ptxdsl.hints import Any

Intervals = tuple[tuple[int, int], ...]  # sorted, apart from one another; ends are exclusive
_Bytes = tuple[int, int, int]  # a thread, and the first byte and the end of what it touches
_Cases = tuple[tuple[int, ...], tuple[int, ...]] | None  # ``guards.together``
# Accesses of each thread: an offset for each (None: 0 for all), what is added to all of them, bytes.
Places = tuple[tuple[tuple[int, ...] | None, int, int], ...]


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


_keys: dict[Any, Any] = {}
_MOST_KEYS = 10_000  # of a process that proves many kernels


class Form:
    """An access by how far its bytes are from its first one: stages of a ring have the same."""

    __slots__ = ("first", "hashed", "intervals", "key", "mask", "places", "when")

    def __init__(self, mask: Mask, intervals: Intervals, places: Places, when: Guard | None = None) -> None:
        self.when = when
        self.first = first = intervals[0][0]
        self.mask = mask
        self.intervals = moved(intervals, -first)
        self.places = tuple([(lanes, shift - first, width) for lanes, shift, width in places])
        if len(_keys) >= _MOST_KEYS:
            _keys.clear()
        key = mask, self.intervals, self.places, when
        self.key = _keys.setdefault(key, key)  # equal ones are mostly one object: they are compared often
        self.hashed = hash(self.key)

    def __hash__(self) -> int:
        return self.hashed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and (self.key is other.key or self.key == other.key)


def threads_meet(a: Form, b: Form) -> tuple[bool, bool]:
    """Whether different threads of one warp, and of different warps, touch the same byte."""
    return _threads_meet(a, b, b.first - a.first)


@lru_cache(1024)
def _threads_meet(a: Form, b: Form, by: int) -> tuple[bool, bool]:
    first = list(_thread_bytes(a, 0))
    if (
        a == b
        and not by
        and sum(end - start for _, start, end in first) == sum(end - start for start, end in a.intervals)
    ):
        return False, False  # every byte is of one thread
    second = list(_thread_bytes(b, by))
    if not (a.places and b.places):
        return _ranges_meet(first, second, together(a.when, b.when))
    unit = 0
    for _, start, end in (*first, *second):
        unit = gcd(unit, start, end)
    within = across = False
    cases = together(a.when, b.when)
    by_unit: dict[int, list[int]] = {}
    for t, start, end in first:
        for at in range(start, end, unit):
            by_unit.setdefault(at, []).append(t)
    for u, start, end in second:
        for at in range(start, end, unit):
            for t in by_unit.get(at, ()):
                if cases is not None and not cases[0][t] & cases[1][u]:
                    continue
                if t // WARP != u // WARP:
                    across = True
                elif t != u:
                    within = True
        if across:
            break  # what must meet across warps must meet within them, too
    return within or across, across


def by_one_thread(form: Form) -> bool:
    """Whether no two threads come to an access."""
    threads = members(form.mask)
    cases = together(form.when, form.when)
    if cases is None:
        return len(threads) == 1
    seen = 0
    for t in threads:
        if cases[0][t] & seen:
            return False
        seen |= cases[0][t]
    return True


@lru_cache(1024)
def written_twice(form: Form) -> tuple[int, int, bool] | None:
    """Of the places of one access the numbers of two at which different threads write the same byte; whether threads of
    different warps do."""
    threads = members(form.mask)
    all_bytes = len(threads) * sum(width for *_, width in form.places)
    if by_one_thread(form) or all_bytes == sum(end - start for start, end in form.intervals):
        return None
    written = [
        (place, t, shift + (lanes[i] if lanes is not None else 0), width)
        for place, (lanes, shift, width) in enumerate(form.places)
        for i, t in enumerate(threads)
    ]
    cases = together(form.when, form.when)
    unit = gcd(*(at for *_, start, width in written for at in (start, width)))
    before: dict[int, dict[int, list[int]]] = {}  # threads, by byte and place
    for place, t, start, width in written:
        for at in range(start, start + width, unit):
            by_place = before.setdefault(at, {})
            for other, others in by_place.items():
                if other != place and any(t != u and (cases is None or cases[0][t] & cases[1][u]) for u in others):
                    return other, place, threads_meet(_of_place(form, other), _of_place(form, place))[1]
            by_place.setdefault(place, []).append(t)
    return None


def _of_place(form: Form, number: int) -> Form:
    """One place of an access as an access."""
    lanes, at, width = form.places[number]
    return Form(form.mask, moved(intervals_of(lanes or (0,), width), at), (form.places[number],), form.when)


def _ranges_meet(first: list[_Bytes], second: list[_Bytes], cases: _Cases) -> tuple[bool, bool]:
    """``threads_meet`` of few ranges, which are large."""
    within = False
    for t, start, end in first:
        for u, other, last in second:
            if t != u and start < last and other < end and (cases is None or cases[0][t] & cases[1][u]):
                if t // WARP != u // WARP:
                    return True, True
                within = True
    return within, False


def _thread_bytes(form: Form, by: int) -> Iterator[_Bytes]:
    """thread, first byte, end, that far from the form's; of accesses in unknown places, all of it for every thread."""
    threads = members(form.mask)
    for lanes, shift, width in form.places:
        for i, t in enumerate(threads):
            start = shift + by + (lanes[i] if lanes is not None else 0)
            yield t, start, start + width
    if not form.places:
        for t in threads if form.when is not None else threads[:1] + threads[-1:]:
            yield t, form.intervals[0][0] + by, form.intervals[-1][1] + by


@lru_cache(1024)
def intervals_of(offsets: tuple[int, ...], width: int) -> Intervals:
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
