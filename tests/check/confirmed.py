"""Verdicts of the proof, held against all interleavings of small launches and the races in them.

An instance is a file's kernel with small values for its parameters. The exploration runs all of its interleavings up to
equivalence; the trace check looks for races inside of a turn, with each lane of a warp by itself. A kernel that is
proved must come through all of its instances: always the same result, to the end, without a race. One with a fault must
fail in some instance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traced import Watched, file_kernel, kinds

from ptxdsl import driver
from ptxdsl.check import classes
from ptxdsl.check.report import FAULT, UNPROVED, verdicts
from ptxdsl.explore.counterexample import values_of
from ptxdsl.explore.explore import Bounds, Exploration, explore
from ptxdsl.options import Options
from ptxdsl.races.trace import Found
from ptxdsl.sim.launch import Report
from ptxdsl.source import Source

if TYPE_CHECKING:
    from corpus import Entry

STAGES, TRIPS = 3, 6
BOUNDS = Bounds(runs=300, turns=20_000, seconds=20)
# Classes of faults by which runs end.
ENDING = {
    classes.MISSING_ARRIVE,
    classes.WRONG_COUNT,
    classes.WRONG_PARITY,
    classes.BYTE_MISMATCH,
    classes.EARLY_USE,
    classes.LIVE_REINIT,
    classes.CYCLIC_WAIT,
    classes.EXIT_IN_FLIGHT,
    classes.DIVERGENT,
}
# Which of them a race is called depends on who came first.
SLOTS = {classes.READ_BEFORE_FULL, classes.OVERWRITTEN, classes.STALE_STAGE, classes.UNDRAINED, classes.DATA_RACE}
ANOTHER = "another result than the header's"
AGREES, DISAGREES, OPEN = "agrees", "DISAGREES", "not decided"


@dataclass(frozen=True)
class Seen:
    """An instance's interleavings. bad: what some of them come to, in words; complete: whether there are no others."""

    names: dict[str, Any]
    bad: tuple[str, ...]
    complete: bool
    runs: int


@dataclass
class Confirmation:
    """What the instances of one choice of constants say to the proof's verdict."""

    name: str
    verdict: str
    kinds: tuple[str, ...]
    seen: list[Seen] = field(default_factory=list)

    @property
    def as_told(self) -> bool:
        """Whether an instance shows what the proof says: a race of its class, or an end of a run where it says that."""
        return any(_shows(seen, kind) for seen in self.seen for kind in self.kinds)

    @property
    def otherwise(self) -> bool:
        return bool(self.kinds and self.bad) and not self.as_told

    @property
    def bad(self) -> list[Seen]:
        return [seen for seen in self.seen if seen.bad]

    @property
    def answer(self) -> str:
        if self.verdict == UNPROVED or not self.seen:
            return OPEN
        if self.verdict == FAULT:
            return AGREES if self.bad else DISAGREES if all(seen.complete for seen in self.seen) else OPEN
        if any(not _is_no_protocols(what) for seen in self.bad for what in seen.bad):
            return DISAGREES
        return AGREES if not self.bad and all(seen.complete for seen in self.seen) else OPEN

    @property
    def runs(self) -> int:
        return sum(seen.runs for seen in self.seen)

    def text(self) -> str:
        said = f"{self.verdict} ({', '.join(self.kinds)})" if self.kinds else self.verdict
        how = ", otherwise than told" if self.otherwise else ""
        found = f"; {self.bad[0].names}: {'; '.join(self.bad[0].bad)}" if self.bad else ""
        return f"{self.name}: {said}: {self.answer}{how}, {len(self.seen)} instances, {self.runs} runs{found}"


def _is_no_protocols(what: str) -> bool:
    """What a right protocol may come to: a result that was not meant, and phases that nobody needs to wait for, which
    the simulator takes for a mistake."""
    return what == ANOTHER or "though nobody has waited for phase" in what


def _shows(seen: Seen, kind: str) -> bool:
    if kind in ENDING and any(what.startswith(("deadlock", "fault")) for what in seen.bad):
        return True
    if kind in SLOTS:
        return any(f"race: {other}" in seen.bad for other in SLOTS) or ANOTHER in seen.bad
    return f"race: {kind}" in seen.bad


def confirm(path: Path, bounds: Bounds = BOUNDS) -> Iterator[Confirmation]:
    """One of each choice of the constants that is small enough. For kernels with the header of tests/sim/faults."""
    made = file_kernel(path)
    for constants in made.variants():
        if any(isinstance(value, int) and value > STAGES for value in constants.values()):
            continue
        found = _proved(made, constants)
        if found is None:
            continue
        for names in _small(made, constants):
            found.seen.append(_explored(made, names, bounds))
            if found.as_told:
                break
        yield found


def confirm_entry(entry: Entry, text: str | None = None, bounds: Bounds = BOUNDS) -> Iterator[Confirmation]:
    """The same of an entry of the corpus, or of a mutant's text in its place."""
    for constants in entry.choices():
        if any(isinstance(value, int) and value > STAGES for value in constants.values()):
            continue
        verdict = entry.proof(constants, text)
        name = "-".join([entry.name, *(f"{key}{value}" for key, value in constants.items())])
        found = Confirmation(name, verdict.verdict, verdict.kinds)
        scalars = [argument.name for argument in entry.arguments if argument.size is None]
        most = TRIPS if verdict.verdict != FAULT else 2 * TRIPS  # several blocks may share them
        every = sorted(entry.cases(constants), key=lambda case: sum(case[scalar] for scalar in scalars))
        cases = [case for case in every if all(case[scalar] <= most for scalar in scalars)]
        values = [values_of(text) for text in verdict.shows_with if text]
        blocks = math.prod(_three(entry.grid))  # among which a number may be divided
        told = [{**every[-1], **{n: v * each for n, v in some.items()}} for some in values for each in {1, blocks}]
        told = [names for names in told if _makes_sense(entry, names)]
        for names in (*told, *(cases if len(cases) > 1 or not scalars else every[:6])):  # else they are no trip counts
            found.seen.append(_explored_entry(entry, names, text, bounds))
            if found.as_told:
                break
        yield found


def _makes_sense(entry: Entry, names: dict[str, Any]) -> bool:
    """Whether the header can be worked out for these values."""
    try:
        entry.bound(names).right()
    except (ValueError, IndexError, ZeroDivisionError):
        return False
    return True


def _explored_entry(entry: Entry, names: dict[str, Any], text: str | None, bounds: Bounds) -> Seen:
    races, report, right = entry.trace(names, text, by_lanes=True)
    bad = _bad(races, report)
    several = math.prod(_three(entry.block)) > 32  # warps
    if not report.finished and several:  # before those came to their accesses who are late here
        bad += _bad(*entry.trace(names, text, "slow:warp1", by_lanes=True)[:2])
    if report.finished and not right:
        bad.append(ANOTHER)
    found = explore(
        entry.compiled(names, text),
        entry.bound(names).host(),
        grid=entry.grid,
        block=entry.block,
        smem=entry.smem,
        bounds=bounds,
    )
    return _seen(names, bad, found)


def _proved(made: Watched, constants: dict[str, Any]) -> Confirmation | None:
    text = {name: str(value) for name, value in constants.items()}
    source = Source(made.path.name, made.path.read_text())
    job = driver.Job(source, constants=text, options=Options(made.arch, check="off"))
    for verdict in verdicts(driver.run(job, "tir"), _three(made.block)):
        name = "-".join([made.path.stem, *(f"{key}{value}" for key, value in text.items())])
        return Confirmation(name, verdict.verdict, verdict.kinds)
    return None  # nothing to prove


def _three(shape: Any) -> tuple[int, int, int]:
    x, y, z = (*(shape if isinstance(shape, tuple) else (shape,)), 1, 1)[:3]
    return x, y, z


def _small(made: Watched, constants: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cases of the header with loops of a few turns, and those between them."""
    cases = [
        case
        for case in made.cases(constants)
        if all(value <= TRIPS for name, value in case.items() if isinstance(value, int) and name not in constants)
    ]
    if not cases:  # numbers that are no trip counts
        numbers = [name for name in next(iter(made.cases(constants))) if name not in constants]
        yield from sorted(made.cases(constants), key=lambda case: sum(case[name] for name in numbers))[:4]
    yield from cases
    if cases and "n" in cases[0] and len(cases[0]) == len(constants) + 1:
        for n in range(1, TRIPS + 1):
            case = {**cases[0], "n": n}
            if case not in cases:
                yield case


def _explored(made: Watched, names: dict[str, Any], bounds: Bounds) -> Seen:
    made.by_lanes = True
    report, _ = made.run(names, "round-robin")
    bad = _bad(made.found, report)
    if not report.finished and math.prod(_three(made.block)) > 32:
        report, _ = made.run(names, "slow:warp1")
        bad += _bad(made.found, report)
    return _seen(names, bad, made.explore(names, bounds))


def _bad(races: Found, report: Report) -> list[str]:
    warnings = [d for d in report.diagnostics if report.finished and d.severity == "warning"]
    return [*(f"race: {kind}" for kind in kinds(races)), *(f"warning {d.code}" for d in warnings)]


def _seen(names: dict[str, Any], bad: list[str], found: Exploration) -> Seen:
    if not found.agrees:
        bad += [line for line in found.text().splitlines()[:-1] if not line.startswith("finished with results 0 ")]
    return Seen(names, tuple(dict.fromkeys(bad)), found.complete, found.runs)
