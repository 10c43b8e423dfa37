"""Runs that count the trips of loops, to hold what the proof says of them against: each thread writes down in global
memory where a loop begins and where a trip of it does, and the access log of the simulator has these writes among all
that the thread does, in its order. None of this is of the checker, nor of the compiler's own view of loops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from corpus import Entry

from ptxdsl.diagnostics import CompileError, Diagnostic, Trip
from ptxdsl.explore.counterexample import Fault, find, values_of
from ptxdsl.options import Options
from ptxdsl.races.trace import TraceCheck
from ptxdsl.run import specification
from ptxdsl.run.binding import bind
from ptxdsl.run.places import Shape, in_simulator
from ptxdsl.run.subject import Subject, compiled_subject
from ptxdsl.run.witness import Witness
from ptxdsl.sim.layout import ACCESS
from ptxdsl.sim.machine.schedule import SCHEDULE_MISMATCH, Schedule
from ptxdsl.source import Source

THREADS = 1 << 10  # of a block, at most
_LOOP = re.compile(r"( *)(?:for|while) .*:\s*(?:#.*)?$")
_STORE = 1
_WORDS = ACCESS.itemsize // 8


@dataclass(frozen=True)
class Counted:
    """A kernel that counts. lines: of each of its lines the one of the text that it was made from. loops: their
    lines."""

    text: str
    lines: list[int]
    loops: list[int]


def counted(text: str) -> Counted:
    """The kernel with a parameter ``trips`` more: a place for each loop's beginnings and trips, block and thread."""
    made: list[str] = []
    lines: list[int] = []
    loops: list[int] = []
    rows = text.splitlines()
    for number, row in enumerate(rows, 1):
        loop = _LOOP.fullmatch(row)
        if row.startswith("def "):
            row = row.replace("(", "(trips: Pointer[Int32, MutAnyOrigin], ", 1)
        inner = re.match(" *", rows[number]) if loop else None
        for place, text in ((0, loop and loop[1]), (None, row), (1, inner and inner[0])):
            if text is not None:
                lines.append(number)
                made.append(text if place is None else text + _note(2 * len(loops) + place))
        if loop:
            loops.append(number)
    return Counted("\n".join(made) + "\n", lines, loops)


def _note(place: int) -> str:
    block = "(Int32(block_idx.x) + Int32(grid_dim.x) * Int32(block_idx.y))"
    index = f"({place} * 16 + {block}) * {THREADS} + Int32(thread_idx.x)"
    return f"trips.unsafe_store[volatile=True]({index}, 0)"


@dataclass(frozen=True)
class Done:
    """Something that a thread has done: at a line, in trips by the lines of loops."""

    block: int
    thread: int
    line: int
    trips: tuple[tuple[int, int], ...]


@dataclass
class Shown:
    """What a run has come to. fault: its diagnostic, or that of the race; done: until then."""

    fault: Diagnostic
    done: list[Done]
    stuck: bool


class Counting(TraceCheck):
    """The trace check, and what threads do with the trips in which they do it. lines: of the places looked for."""

    def __init__(self, kernel: Counted, lines: set[int]) -> None:
        super().__init__()
        self.in_bulk = False
        self.kernel = kernel
        self.lines = lines
        self.trips: dict[tuple[int, int], dict[int, int]] = {}
        self.done: list[Done] = []
        self.first: tuple[Diagnostic, int] | None = None  # a race at the lines, and how much was done until then

    def ran(self, warp: Any) -> None:
        log = self.order.machine.log
        for record in np.frombuffer(log.words[: log.count * _WORDS], ACCESS).copy() if log is not None else ():
            self._look(warp, record)
        super().ran(warp)
        self._races()

    def stands(self, group: Any) -> None:
        line = self._line(group.instruction)
        if line in self.lines:
            for lane in range(32):
                if group.mask >> lane & 1:
                    self._did(group.warp, lane, line)
        super().stands(group)
        self._races()

    def turn(self, entity: Any) -> None:
        super().turn(entity)
        self._races()

    def _look(self, warp: Any, record: Any) -> None:
        instruction = self.order.sites.instructions[int(record["site"])]
        region = self.order.machine.memory.region(int(record["addresses"][0])) if record["kind"] == _STORE else None
        notes = region is not None and region.name == "argument 'trips'" and "global" in instruction.opcode
        line = self._line(instruction)
        for at in range(8):
            if not record["mask"] >> at & 1:
                continue
            lane = int(record["first"]) + at
            if notes:
                assert region is not None
                self._note(warp, lane, (int(record["addresses"][at]) - region.start) // 4)
            elif line in self.lines:
                self._did(warp, lane, line)

    def _note(self, warp: Any, lane: int, index: int) -> None:
        loop, trip = divmod(index // THREADS // 16, 2)
        counts = self.trips.setdefault((warp.cta.linear, warp.index * 32 + lane), {})
        assert index % THREADS == warp.index * 32 + lane
        line = self.kernel.loops[loop]
        counts[line] = counts[line] + 1 if trip else 0

    def _did(self, warp: Any, lane: int, line: int) -> None:
        block, thread = warp.cta.linear, warp.index * 32 + lane
        self.done.append(Done(block, thread, line, tuple(self.trips.get((block, thread), {}).items())))

    def _line(self, instruction: Any) -> int:
        span = self.order.machine.places.source_span(instruction)
        return 0 if span is None else self.kernel.lines[span.line - 1]

    def _races(self) -> None:
        if self.first is None:
            for race in self.order.races.found:
                spans = [race.diagnostic.span, *(span for span, _ in race.diagnostic.notes)]
                if {self.kernel.lines[span.line - 1] for span in spans if span is not None} >= self.lines:
                    self.first = race.diagnostic, len(self.done)
                    return


def replays(entry: Entry) -> Iterator[tuple[Diagnostic, Shown | None]]:
    """Findings that say a trip, and what the simulator shows under the schedule of a witness; None where there is none
    or it shows nothing."""
    (known,) = entry.choices()
    constants = {name: str(known[name]) for name in entry.constants}
    verdict = entry.proof(known)
    options = Options(entry.arch, check="off")
    subject = compiled_subject(Source(entry.path.name, entry.text), None, constants, options)
    kernel = counted(entry.text)
    counting = compiled_subject(Source(entry.path.name, kernel.text), None, constants, options)
    for diagnostic, kind, values in zip(verdict.diagnostics, verdict.kinds, verdict.shows_with, strict=False):
        if diagnostic.trips:
            fault = Fault(diagnostic, kind, values_of(values))
            witness = find(subject, fault, verdict.block, verdict.cluster, {}, constants)
            yield diagnostic, replayed(kernel, counting, witness, diagnostic) if witness is not None else None


def replayed(kernel: Counted, subject: Subject, witness: Witness, diagnostic: Diagnostic) -> Shown | None:
    """The schedule of a witness, with the kernel that counts."""
    launch = witness.launch
    places = 2 * len(kernel.loops) * 16 * THREADS
    args = {**launch.args, "trips": f"zeros:i32:{places}"}
    bound = bind(subject, specification.arguments(f"{name}={text}" for name, text in args.items()))
    shape = Shape(launch.grid, launch.block, launch.cluster, launch.smem or 0)
    schedule = Schedule("recorded", recorded=witness.schedule, fuel=witness.schedule.fuel)
    watch = Counting(kernel, {trip.span.line for trip in diagnostic.trips})
    try:
        report = in_simulator(subject, bound, shape, schedule=schedule, watch=watch)
    except CompileError as problem:
        assert [d.code for d in problem.diagnostics] == [SCHEDULE_MISMATCH]
        return None
    if report.status in ("deadlock", "fault"):
        return Shown(report.diagnostics[0], watch.done, report.status == "deadlock")
    if watch.first is None:
        return None
    found, count = watch.first
    return Shown(found, watch.done[:count], False)


def threads(who: str) -> set[tuple[int, int]]:
    """Blocks and threads of ``warps 1 to 2 of CTA 1``, ``thread 3``, ``lane 0 of warps 0 to 3``."""
    said, _, block = who.partition(" of CTA ")
    lanes, _, of = said.partition(" of warps ")
    found = set(_numbers(of or said))
    if of:
        found = {32 * warp + lane for warp in found for lane in _numbers(lanes)}
    elif said.startswith("warp"):
        found = {32 * warp + lane for warp in found for lane in range(32)}
    return {(int(block or 0), thread) for thread in found}


def _numbers(text: str) -> Iterator[int]:
    for first, last in re.findall(r"(\d+)(?: to (\d+))?", text):
        yield from range(int(first), int(last or first) + 1)


def of_trip(trip: Trip, done: list[Done]) -> list[Done]:
    """What was done of it: at its line, by its threads, in these trips."""
    wanted = {loop.line: number for loop, number in trip.loops}
    return [one for one in _at_line(trip, done) if wanted.items() <= dict(one.trips).items()]


def last_of(trip: Trip, done: list[Done]) -> list[Done]:
    """What its threads have done last at its line."""
    return list({(one.block, one.thread): one for one in _at_line(trip, done)}.values())


def _at_line(trip: Trip, done: list[Done]) -> list[Done]:
    who = threads(trip.who)
    return [one for one in done if one.line == trip.span.line and (one.block, one.thread) in who]
