"""From a run's events to what a timeline shows: a lane for each warp, each asynchronous unit and each stage.

A stage is a pair of mbarriers that hand a slot to and fro: who has waited for the one arrives on the other. The one
that is named so, or whose first phase completes first, is its "full" barrier. A stage is *empty* until a producer has
its slot, *filling* until the full barrier completes a phase, *full* until a consumer has seen it, and *in use* until
the empty barrier completes. An mbarrier without a partner has a lane of its own that shows its phases.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ptxdsl.record import dataclass, field
from ptxdsl.sim.machine.timeline import Event


@dataclass(frozen=True)
class Bar:
    """Cycles [start, end). state: ``run``, ``wait``, ``work``, ``empty``, ``filling``, ``full``, ``in use``, ``phase``.

    line: of the PTX text, 0 if none.
    """

    start: int
    end: int
    state: str
    label: str
    line: int = 0


@dataclass
class Lane:
    """kind: ``warp``, ``unit`` or ``stage``; bars in the order of time, without overlap."""

    name: str
    kind: str
    bars: list[Bar] = field(default_factory=list)


def lanes(events: Sequence[Event]) -> list[Lane]:
    """All lanes: of each CTA the stages, then the warps, then the units."""
    end = max((event.time for event in events), default=0)
    ordered = sorted(events, key=lambda event: event.time)
    made = [*_stages(ordered, end), *_warps(ordered, end), *_units(ordered, end)]
    rank = {"stage": 0, "warp": 1, "unit": 2}
    return sorted(made, key=lambda lane: (_numbers(lane.name.partition(".")[0]), rank[lane.kind], _numbers(lane.name)))


def _numbers(name: str) -> list[int | str]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _warps(events: Iterable[Event], end: int) -> Iterator[Lane]:
    since: dict[str, tuple[int, str, str, int]] = {}
    found: dict[str, Lane] = {}
    for event in events:
        if event.kind not in ("start", "wait", "resume", "exit"):
            continue
        lane = found.setdefault(event.entity, Lane(event.entity, "warp"))
        if event.entity in since:
            start, state, label, line = since.pop(event.entity)
            if event.time > start:
                lane.bars.append(Bar(start, event.time, state, label, line))
        if event.kind == "wait":
            since[event.entity] = (event.time, "wait", f"waits for {event.detail}", event.line)
        elif event.kind != "exit":
            since[event.entity] = (event.time, "run", "runs", event.line)
    for name, (start, state, label, line) in since.items():
        found[name].bars.append(Bar(start, max(end, start + 1), state, f"{label} to the end", line))
    yield from found.values()


def _units(events: Iterable[Event], end: int) -> Iterator[Lane]:
    """Work of one unit that overlaps lies in as many lanes as it needs."""
    begun: dict[str, Event] = {}
    bars: dict[str, list[Bar]] = defaultdict(list)
    for event in events:
        if event.kind == "begin":
            begun[event.entity] = event
        elif event.kind == "end" and event.entity in begun:
            start = begun.pop(event.entity)
            bars[event.entity.partition("#")[0]].append(_work(start, event.time))
    for name, start in begun.items():
        bars[name.partition("#")[0]].append(_work(start, end))
    for unit, work in bars.items():
        rows: list[Lane] = []
        for bar in sorted(work, key=lambda bar: bar.start):
            row = next((r for r in rows if r.bars[-1].end <= bar.start), None)
            if row is None:
                row = Lane(unit if not rows else f"{unit} ({len(rows) + 1})", "unit")
                rows.append(row)
            row.bars.append(bar)
        yield from rows


def _work(start: Event, end: int) -> Bar:
    return Bar(
        start.time, max(end, start.time + 1), "work", f"{start.entity.partition('.')[2]}: {start.detail}", start.line
    )


# ----------------------------------------------------------------------------------------------------------- stages


@dataclass
class _Barrier:
    """seen: when a wait for it was over. phases: when they completed."""

    name: str
    phases: list[Event] = field(default_factory=list)
    seen: list[Event] = field(default_factory=list)


def _stages(events: Sequence[Event], end: int) -> Iterator[Lane]:
    barriers: dict[str, _Barrier] = {}
    partners: dict[str, Counter[str]] = defaultdict(Counter)
    seen: dict[str, str] = {}  # by warp: the barrier whose wait was over last
    for event in events:
        if event.kind not in ("seen", "arrive", "phase"):
            continue
        place = event.detail.rpartition(" phase ")[0] if event.kind == "phase" else event.detail
        name = f"{event.entity.partition('.')[0]}.{place}"
        barrier = barriers.setdefault(name, _Barrier(name))
        if event.kind == "phase":
            barrier.phases.append(event)
        elif event.kind == "seen":
            barrier.seen.append(event)
            seen[event.entity] = name
        elif event.entity in seen:
            partners[seen[event.entity]][name] += 1
    best = {name: counter.most_common(1)[0][0] for name, counter in partners.items()}
    best |= _by_role(barriers)
    done: set[str] = set()
    for name, barrier in barriers.items():
        other = barriers.get(best.get(name, ""))
        if name in done:
            continue
        if other is not None and best.get(other.name) == name and name != other.name:
            done.add(other.name)
            full, empty = (barrier, other) if _is_full(barrier, other) else (other, barrier)
            yield Lane(_stage_name(full.name, empty.name), "stage", list(_occupancy(full, empty, end)))
        else:
            yield Lane(name, "stage", list(_phases(barrier, end)))


# What the simulator says of a barrier that it knows to be a RolePipeline's.
_ROLE = re.compile(r" \((producer|consumer)_mbar of (stage \d+.*)\)$")


def _by_role(names: Iterable[str]) -> dict[str, str]:
    """The partners of those whose names say it: the same stage of the same CTA, in the same array if there are more."""
    found: dict[str, str] = {}
    sides: dict[tuple[str, str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in names:
        role = _ROLE.search(name)
        if role:
            cta, _, variable = name.partition(".")
            for array in ("", variable.partition("[")[0]):
                sides[cta, role[2], array][role[1]].append(name)
    for side in sides.values():
        producers, consumers = side["producer"], side["consumer"]
        if len(producers) == len(consumers) == 1:
            found |= {producers[0]: consumers[0], consumers[0]: producers[0]}
    return found


def _stage_name(full: str, empty: str) -> str:
    """``cta0.stage 0 (bars[0], bars[3])``."""
    cta, _, name = full.partition(".")
    role = _ROLE.search(name)
    other = _ROLE.sub("", empty.partition(".")[2])
    return f"{cta}.{role[2] if role else 'stage'} ({_ROLE.sub('', name)}, {other})"


def _is_full(barrier: _Barrier, other: _Barrier) -> bool:
    role = _ROLE.search(barrier.name)
    return role[1] == "producer" if role else _first(barrier) <= _first(other)


def _first(barrier: _Barrier) -> int:
    return barrier.phases[0].time if barrier.phases else 1 << 62


def _occupancy(full: _Barrier, empty: _Barrier, end: int) -> Iterator[Bar]:
    """From four kinds of moments to four states; a moment that fits no transition is passed over."""
    order = {"free": 0, "taken": 1, "filled": 2, "seen": 3}
    moments = [
        *((event.time, "filled", event) for event in full.phases),
        *((event.time, "seen", event) for event in full.seen),
        *((event.time, "free", event) for event in empty.phases),
        *((event.time, "taken", event) for event in empty.seen),
    ]
    moments.sort(key=lambda moment: (moment[0], order[moment[1]]))
    following = {
        ("empty", "taken"): "filling",
        ("empty", "filled"): "full",  # a producer whose first wait was left out
        ("filling", "filled"): "full",
        ("full", "seen"): "in use",
        ("in use", "free"): "empty",
        ("full", "free"): "empty",
    }
    state, start, line, turn = "empty", 0, 0, 0
    for time, moment, event in moments:
        after = following.get((state, moment))
        if after is None:
            continue
        if time > start:
            yield Bar(start, time, state, f"{state}, turn {turn}", line)
        turn += after == "empty"
        state, start, line = after, time, event.line
    if end > start:
        yield Bar(start, end, state, f"{state}, turn {turn}, to the end", line)


def _phases(barrier: _Barrier, end: int) -> Iterator[Bar]:
    start = 0
    for number, event in enumerate(barrier.phases):
        yield Bar(start, max(event.time, start + 1), "phase", f"phase {number}", event.line)
        start = max(event.time, start + 1)
    if end > start:
        yield Bar(start, end, "phase", f"phase {len(barrier.phases)}, not completed", 0)
