"""Kernels that carry in their text how they are launched, what comes out, and what the simulator must say of them.

The header: ``launch``, ``args`` and ``result`` as in tests/data/examples; ``constants: NAME in [values]; …`` are
comptime parameters, whose names the other lines may use; ``arch``. ``shows: STATUS CODE [where CONDITION] [under
SCHEDULES]``: what a faulty kernel comes to (``wrong result`` has no code) for which arguments and schedules; without
the condition it must give its result. ``also`` is one more of these. What the report of ``shows`` says stands below the
line that it points at:

    p.acquire()
    # E1190: warp 0 … 254 of 256 arrivals pending

with the code for the diagnostic itself, ``note`` for its notes and ``help`` for its help; ``…`` stands for any words,
and ``{expression}`` for its value. All of these must be in the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ptxdsl.artifact import Compiled
from ptxdsl.diagnostics import Diagnostic
from ptxdsl.kernel_cache import compile_kernel
from ptxdsl.options import Options
from ptxdsl.sim.launch import Limits, Report, simulate
from ptxdsl.syntax.parse import read_source

SCHEDULES = ("round-robin", "random:1", "random:2", "slow:warp0", "slow:warp1", "slow:tma")
ONE_WARP = tuple(schedule for schedule in SCHEDULES if schedule != "slow:warp1")
LIMITS = Limits(steps=20_000_000, turns=500_000)
_SAID = re.compile(r"\s*(?:#|//) (E\d{4}|W\d{4}|note|help): (.*)")
_ARGUMENT = re.compile(r"(\w+): (\w+)(?:\[(.*)\])? (in|out|in \[.*\])")


@dataclass(frozen=True)
class Argument:
    """size: an expression; None of a scalar, which takes ``values`` (an expression too)."""

    name: str
    dtype: str
    size: str | None
    output: bool
    values: str = ""


@dataclass(frozen=True)
class Said:
    """What a report says at a line: kind is a code, ``note`` or ``help``."""

    kind: str
    line: int
    words: str

    def pattern(self, names: dict[str, Any]) -> re.Pattern[str]:
        words = re.sub(r"\{(.*?)\}", lambda m: str(eval(m[1], dict(names))), self.words)
        return re.compile(".*?".join(map(re.escape, words.split("…"))))


@dataclass(frozen=True)
class Shows:
    status: str
    code: str
    where: str
    schedules: tuple[str, ...]

    def holds(self, names: dict[str, Any]) -> bool:
        """Whether the fault is to be seen with these values."""
        return bool(eval(self.where, dict(names)))


@dataclass
class FaultKernel:
    path: Path
    grid: Any
    block: Any
    cluster: Any
    arch: str
    arguments: list[Argument]
    constants: dict[str, str]
    result: str  # what `res` must be then, an expression of the arguments as they were
    shows: Shows | None
    also: Shows | None
    said: list[Said] = field(default_factory=list)

    def variants(self) -> Iterator[dict[str, Any]]:
        """Every choice of the comptime parameters."""
        yield from choices(self.constants, {})

    def cases(self, constants: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Every choice of the scalars, with the constants."""
        scalars = {a.name: a.values for a in self.arguments if a.size is None}
        for case in choices(scalars, constants):
            yield {**constants, **case}

    def run(self, names: dict[str, Any], schedule: str) -> tuple[Report, bool]:
        """One launch; whether the result is the header's."""
        rng = np.random.default_rng(3)
        known: dict[str, Any] = {**names, "np": np, "grid": self.grid}
        given: list[Any] = []
        output = np.zeros(0)
        for argument in self.arguments:
            if argument.size is None:
                given.append(names[argument.name])
                continue
            length = eval(argument.size, dict(known))
            dtype = np.dtype(argument.dtype)
            array = np.full(length, 77, dtype) if argument.output else rng.integers(-9, 9, length).astype(dtype)
            known[argument.name] = array.copy()
            given.append(array)
            if argument.output:
                output = array
        report = self._simulate(names, given, schedule)
        return report, np.array_equal(output, eval(self.result, known))

    def compiled(self, names: Mapping[str, Any]) -> Compiled:
        """With these values of its constants."""
        return _compiled(self.path, self.arch, tuple((name, str(names[name])) for name in self.constants))

    def _simulate(self, names: dict[str, Any], given: list[Any], schedule: str) -> Report:
        options: dict[str, Any] = {
            "grid": self.grid,
            "block": self.block,
            "cluster": self.cluster,
            "arguments": given,
            "schedule": schedule,
            "limits": LIMITS,
        }
        if self.path.suffix == ".ptx":
            return simulate(self.path.read_text(), text_name=self.path.name, **options)
        made = self.compiled(names)
        return simulate(made.ptx, line_map=made.line_map, shared_names=made.shared_names, **options)

    def check_report(self, report: Report, names: dict[str, Any]) -> None:
        """Asserts that the report says what the text asks for, where it asks for it."""
        assert self.shows is not None
        text = report.render()
        for said in self.said:
            pattern = said.pattern(names)
            words = (w for diagnostic in report.diagnostics for w in _words(diagnostic, said, self.path.name))
            assert any(map(pattern.search, words)), (said, text)


def _words(diagnostic: Diagnostic, said: Said, name: str) -> Iterator[str]:
    """The texts of a diagnostic that stand where something is to be said."""
    if said.kind == "help":
        yield diagnostic.help or ""
        return
    spans = [(diagnostic.span, diagnostic.message)] if said.kind != "note" else list(diagnostic.notes)
    for span, words in spans:
        if span is not None and span.source.name == name and span.line == said.line:
            yield words


@lru_cache(64)
def _compiled(path: Path, arch: str, constants: tuple[tuple[str, str], ...]) -> Compiled:
    return compile_kernel(read_source(path, path.name), None, constants, Options(arch))


def choices(values: Mapping[str, str], known: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every choice of values: an expression over what is known and chosen before gives the values of each name."""
    if not values:
        yield {}
        return
    (name, text), *rest = values.items()
    for value in dict.fromkeys(eval(text, dict(known))):
        for others in choices(dict(rest), {**known, name: value}):
            yield {name: value, **others}


def read(path: Path) -> FaultKernel:
    """The header and the remarks of a file."""
    lines = path.read_text().splitlines()
    mark = "//" if path.suffix == ".ptx" else "#"
    head = []
    for line in lines:
        if not line.startswith(mark):
            break
        head.append(line.removeprefix(mark))
    told = dict(line.strip().split(": ", 1) for line in re.sub(r"\n {2,}", " ", "\n".join(head)).splitlines())
    launch = re.fullmatch(r"grid (.+?), block (.+?)(?:, cluster (.+?))?(?:, no dynamic shared memory)?", told["launch"])
    assert launch is not None, (path, told["launch"])
    arguments = []
    for entry in told["args"].split("; "):
        match = _ARGUMENT.fullmatch(entry)
        assert match is not None, (path, entry)
        name, dtype, size, use = match.groups()
        arguments.append(Argument(name, dtype, size, use == "out", use.removeprefix("in ")))
    result = re.split(r"\s+\(inputs: ", told["result"])[0].removeprefix("intended: ").removeprefix("res == ")
    return FaultKernel(
        path,
        eval(launch[1]),
        eval(launch[2]),
        eval(launch[3]) if launch[3] else None,
        told.get("arch", "sm_90a"),
        arguments,
        dict(entry.split(" in ") for entry in told["constants"].split("; ")) if "constants" in told else {},
        result,
        _shows(told["shows"]) if "shows" in told else None,
        _shows(told["also"]) if "also" in told else None,
        list(_said(lines, len(head))),
    )


def _shows(text: str) -> Shows:
    match = re.fullmatch(r"(wrong result|\w+) ?(E\d+|W\d+)?(?: where (.+?))?(?: under (.+))?", text)
    assert match is not None, text
    status, code, where, schedules = match.groups()
    return Shows(status, code or "", where or "True", tuple(schedules.split(", ")) if schedules else ("round-robin",))


def _said(lines: list[str], start: int) -> Iterator[Said]:
    """Remarks, with the line of code that each stands below."""
    at = start
    for number, line in enumerate(lines[start:], start + 1):
        match = _SAID.fullmatch(line)
        if match is None:
            if not line.strip().startswith(("#", "//")):
                at = number
            continue
        yield Said(match[1], at, match[2])
