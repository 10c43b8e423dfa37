"""All that the trace check knows of a run, but of global memory, as a row of numbers (``tape``).

The walk goes over everything that a later event can come upon. What it leaves out is nothing but words (which waits and
pieces of asynchronous work are remembered for reports) and what was computed before and would be again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

import numpy as np

from ptxdsl.races.actors import Passed, Strand, Work
from ptxdsl.races.clocks import MOST_COMPONENTS, SHIFT, Clock
from ptxdsl.races.findings import Findings, Issue
from ptxdsl.races.shadow import Cells
from ptxdsl.races.tape import Counters, Shift, Tape, Unrepeatable
from ptxdsl.races.trace_order import Gate, TraceOrder
from ptxdsl.races.writes import COMPONENT, Writes

T = TypeVar("T")

_AGENTS = "agents"  # the counter of asynchronous operations


def walk(order: TraceOrder, tape: Tape) -> None:
    """Takes the state down, or moves it on to the numbers that the tape gives. Raises Unrepeatable."""
    if order.flags.released:
        raise Unrepeatable
    for domain in order.domains.values():
        tape.same(domain.number, len(domain.what), domain.capacity)
    for warp, lanes in order.lanes.items():
        tape.same(warp, tuple(lanes.components.values()), len(lanes.strands))
        for strand in lanes.strands:
            _strand(tape, strand)
    _asynchronous(order, tape)
    _standing(order, tape)
    for barrier, gate in order.gates.items():
        tape.same(barrier)
        _gate(tape, gate, tape.counters.of(barrier))
    for meeting, clocks in order.meetings.items():
        counter = tape.counters.of(meeting)
        for clock in clocks.values():
            _clock(tape, clock)
        order.meetings[meeting] = {tape.number(counter, number): clock for number, clock in clocks.items()}
    for known in (order.spaces.shared_cells, order.spaces.tensor_cells):
        for cta, cells in known.items():
            tape.same(cta)
            _cells(tape, cells, tape.counters.component(order.domain(cta.cluster).number))
    arrived = order.races.last_arrivals
    for number, arrival in arrived.items():
        tape.same(arrival.barrier, arrival.instruction)
        arrived[number] = _passed(tape, arrival, number=number)


class Words:
    """What is remembered for reports alone, from now on."""

    def __init__(self, races: Findings) -> None:
        self._races = races
        self._last_waits = {number: waits[-1] for number, waits in races.waits.items()}
        self._last_works = {number: works[-1] for number, works in races.works.items()}

    def repeat(self, shift: Shift, counters: Counters, turns: int) -> None:
        """What has come since comes as often again, moved each time."""
        for number, waits in self._races.waits.items():
            visit = partial(_passed, number=number)
            _repeat(waits, self._last_waits.get(number), shift, counters, turns, visit)
        for number, works in self._races.works.items():
            issued = partial(_issued, number=number)
            _repeat(works, self._last_works.get(number), shift, counters, turns, issued)


def _repeat(
    kept: deque[T], last: T | None, shift: Shift, counters: Counters, turns: int, visit: Callable[[Tape, T], T]
) -> None:
    new = list(takewhile(lambda one: one is not last, reversed(kept)))[::-1]
    if not new:
        return
    tape = Tape(counters)
    for one in new:
        visit(tape, one)
    state = tape.state()
    for turn in range(max(turns - (kept.maxlen or 0) // len(new), 1), turns + 1):
        given = Tape(counters, shift.after(state.counters, state.numbers, turn))
        kept.extend([visit(given, one) for one in new])


def _issued(tape: Tape, work: Issue, *, number: int) -> Issue:
    end, issuer, issued, instruction = work
    return tape.number(_counter(tape, number), end), issuer, tape.number(_counter(tape, issuer), issued), instruction


def _passed(tape: Tape, wait: Passed, *, number: int) -> Passed:
    """A wait or arrival of the actor with this number."""
    time = tape.number(_counter(tape, number), wait.time)
    phase = tape.number(tape.counters.of(wait.barrier), wait.phase)
    return Passed(time, wait.barrier, phase, wait.instruction, wait.again, wait.stage)


def _counter(tape: Tape, number: int) -> int:
    """Of an actor's times."""
    return tape.counters.component(number >> SHIFT) + (number & MOST_COMPONENTS - 1)


def _clock(tape: Tape, clock: Clock | None) -> None:
    if clock is None:
        tape.same(None)
        return
    if clock.foreign:
        raise Unrepeatable
    tape.same(clock.domain)
    clock.own[...] = tape.numbers(tape.counters.component(clock.domain) + np.arange(clock.own.shape[1]), clock.own)


def _strand(tape: Tape, strand: Strand) -> None:
    first = tape.counters.component(strand.domain.number)
    counter = first + strand.component
    tape.same(strand.mask, strand.component, tuple((c, done[2]) for c, done in strand.apart.items()))
    for clock in (strand.clock, strand.fenced, strand.seen):
        _clock(tape, clock)
    strand.time = tape.number(counter, strand.time)
    strand.met = tape.number(counter, strand.met)
    for c, (after, until, lanes) in strand.apart.items():
        strand.apart[c] = tape.number(first + c, after), tape.number(first + c, until), lanes


def _work(tape: Tape, work: Work | None) -> None:
    if work is None:
        tape.same(None)
        return
    if not tape.first(work):
        return
    tape.same(work.unit, work.number, work.issuer, work.instruction, work.site)
    _clock(tape, work.clock)
    work.end = tape.number(_counter(tape, work.number), work.end)
    work.time = tape.number(_counter(tape, work.number), work.time)
    work.issued = tape.number(_counter(tape, work.issuer), work.issued)
    _work(tape, work.writer)


def _asynchronous(order: TraceOrder, tape: Tape) -> None:
    for unit in order.units.values():
        first = tape.counters.component(unit.domain.number)
        tape.same(unit, unit.made, tuple(component for component, _ in unit.free))
        unit.free[:] = [(c, tape.number(first + c, time)) for c, time in unit.free]
        if unit.last is not None:
            component, time = unit.last
            tape.same(component)
            unit.last = component, tape.number(first + component, time)
    agents = tape.counters.of(_AGENTS)
    for work in order.works.values():
        _work(tape, work)
    order.works = {tape.number(agents, number): work for number, work in order.works.items()}
    for (warp, kind), groups in order.groups.items():
        tape.same(warp, kind, len(groups.committed))
        for copies in (groups.open, *groups.committed):
            tape.same(tuple(copies))
            for work in copies.values():
                _work(tape, work)
        gone = tape.counters.of(groups)
        groups.gone = tape.number(gone, groups.gone)
        for component, number in groups.known.items():
            tape.same(component)
            groups.known[component] = tape.number(gone, number)
        products = order.units.get((warp.cta, ("wgmma", warp)))
        if groups.numbers and products is not None and products.last is not None:
            counter = tape.counters.component(products.domain.number) + products.last[0]
            groups.numbers = deque(tape.number(counter, number) for number in groups.numbers)
    for warp, works in order.products.items():
        tape.same(warp, len(works))
        for work in works:
            _work(tape, work)
    for cta, last in order.unfinished.items():
        tape.same(cta)
        first = tape.counters.component(order.domain(cta.cluster).number)
        for component, (end, instruction) in last.items():
            tape.same(component, instruction)
            last[component] = tape.number(first + component, end), instruction


def _standing(order: TraceOrder, tape: Tape) -> None:
    """Who does what happens now."""
    group = order.group
    tape.same(None if group is None else (group.warp, group.instruction, group.mask))
    _work(tape, order.work)
    tape.same(len(order.parts))
    for work in order.parts:
        _work(tape, work)


def _gate(tape: Tape, gate: Gate, phases: int) -> None:
    first = tape.counters.component(gate.domain.number)
    _clock(tape, gate.pending)
    _clock(tape, gate.done)
    tape.same(gate.component, gate.stage, frozenset(gate.knowing), tuple(gate.passed))
    gate.time = tape.number(first + gate.component, gate.time)
    for component, (time, instruction) in gate.used.items():
        tape.same(component, instruction)
        gate.used[component] = tape.number(first + component, time), instruction
    for component, phase in gate.passed.items():
        gate.passed[component] = tape.number(phases, phase)
    waits, gate.waits = gate.waits, []
    for phase, component, time, instruction in waits:
        tape.same(component, instruction)
        gate.waits.append((tape.number(phases, phase), component, tape.number(first + component, time), instruction))
    parts, gate.parts = gate.parts, {}
    for (component, until), lanes in parts.items():
        tape.same(component, lanes)
        gate.parts[component, tape.number(first + component, until)] = lanes
    # Work that is over tells nothing any more.
    tape.same(tape.seen.get(id(gate.told_by)))


def _cells(tape: Tape, cells: Cells, first: int) -> None:
    patches = cells.patches
    assert patches is not None
    count, rows = patches.count, len(cells.rows)
    tape.same(cells.shift, patches.version, count, cells.written, tuple(cells.rows.items()))
    tape.same(None if cells.objects is None else cells.objects[:count].tobytes())
    for writes in (cells.writes, cells.strong_writes):
        if writes is None:
            tape.same(None)
        else:
            _writes(tape, writes, count, first)
    tape.same(cells.read_site[:rows, :count].tobytes())
    components: Any = np.array(list(cells.rows), np.int64).reshape(-1, 1)
    cells.read[:rows, :count] = tape.numbers(first + components, cells.read[:rows, :count])


def _writes(tape: Tape, writes: Writes, count: int, first: int) -> None:
    tape.same(writes.who[:count].tobytes(), writes.writer[:count].tobytes(), writes.site[:count].tobytes())
    for who, times in ((writes.who, writes.time), (writes.writer, writes.earlier)):
        times[:count] = tape.numbers(first + (who[:count] & COMPONENT).astype(np.int64), times[:count])
