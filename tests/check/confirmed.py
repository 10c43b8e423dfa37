"""Verdicts of the proof, held against all interleavings of small launches and the races in them.

An instance is a file's kernel with small values for its parameters. The exploration runs all of its interleavings up to
equivalence, the trace check looks for races inside of a turn. A kernel that is proved must come through all of its
instances: always the same result, to the end, without a race. One with a fault must fail in some instance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traced import Watched, file_kernel, kinds

from ptxdsl import driver
from ptxdsl.check.explore import Bounds
from ptxdsl.check.report import FAULT, UNPROVED, verdicts
from ptxdsl.options import Options
from ptxdsl.source import Source

STAGES, TRIPS = 3, 6
BOUNDS = Bounds(runs=300, turns=20_000, seconds=20)
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
    def bad(self) -> list[Seen]:
        return [seen for seen in self.seen if seen.bad]

    @property
    def answer(self) -> str:
        if self.verdict == UNPROVED or not self.seen:
            return OPEN
        if self.verdict == FAULT:
            return AGREES if self.bad else DISAGREES if all(seen.complete for seen in self.seen) else OPEN
        return DISAGREES if self.bad else AGREES if all(seen.complete for seen in self.seen) else OPEN

    @property
    def runs(self) -> int:
        return sum(seen.runs for seen in self.seen)

    def text(self) -> str:
        said = f"{self.verdict} ({', '.join(self.kinds)})" if self.kinds else self.verdict
        found = f"; {self.bad[0].names}: {'; '.join(self.bad[0].bad)}" if self.bad else ""
        return f"{self.name}: {said}: {self.answer}, {len(self.seen)} instances, {self.runs} runs{found}"


def confirm(path: Path, bounds: Bounds = BOUNDS) -> Iterator[Confirmation]:
    """One of each choice of the constants that is small enough."""
    made = file_kernel(path)
    for constants in made.variants():
        if any(isinstance(value, int) and value > STAGES for value in constants.values()):
            continue
        found = _proved(made, constants)
        if found is None:
            continue
        for names in _small(made, constants):
            found.seen.append(_explored(made, names, bounds))
            if found.verdict == FAULT and found.bad:
                break
        yield found


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
    yield from cases
    if cases and "n" in cases[0] and len(cases[0]) == len(constants) + 1:
        for n in range(1, TRIPS + 1):
            case = {**cases[0], "n": n}
            if case not in cases:
                yield case


def _explored(made: Watched, names: dict[str, Any], bounds: Bounds) -> Seen:
    bad = []
    report, _ = made.run(names, "round-robin")
    bad += [f"race: {kind}" for kind in kinds(made.found)]
    warnings = [d for d in report.diagnostics if report.finished and d.severity == "warning"]
    bad += [f"warning {d.code}" for d in warnings]
    found = made.explore(names, bounds)
    if not found.agrees:
        bad += [line for line in found.text().splitlines()[:-1] if not line.startswith("finished with results 0 ")]
    return Seen(names, tuple(dict.fromkeys(bad)), found.complete, found.runs)
