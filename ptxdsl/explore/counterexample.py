"""Counterexamples: launches and schedules of the simulator that show a fault which the proof has found.

The parameters that the proof names have its values; other numbers are small ones, pointers are given arrays of small
numbers. Such launches are run under schedules that hold back one role or unit after the other, watched by the trace
check. Where none of them shows the fault, some are watched once more with each lane of a warp by itself, or all their
interleavings are explored. A run shows the fault if it ends at one of the lines that the proof shows, or if a race of
the proof's class is found there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING

from ptxdsl.check.classes import EXIT_IN_FLIGHT
from ptxdsl.diagnostics import Diagnostic
from ptxdsl.explore.explore import Bounds, arrays_of, explore_runs
from ptxdsl.races.trace import Found, TraceCheck
from ptxdsl.record import dataclass
from ptxdsl.run import specification
from ptxdsl.run.binding import Bound, bind
from ptxdsl.run.formats import FORMATS
from ptxdsl.run.places import Shape, in_simulator
from ptxdsl.run.witness import Dim3, Launch, Witness
from ptxdsl.signature import Param, PointerParam, ScalarParam, StructParam, TensorMapParam
from ptxdsl.sim.limits import Limits
from ptxdsl.sim.machine.schedule import Schedule, parse_schedule
from ptxdsl.targets import shared_bytes

if TYPE_CHECKING:
    from ptxdsl.run.subject import Subject
    from ptxdsl.sim.launch import Report
    from ptxdsl.sim.watch import Watch

SECONDS = 10.0  # for one finding
_BLOCKS = 32  # of a grid
_ELEMENTS = 1 << 16  # of an array that is made up
_NUMBERS = (4, 2, 1, 8, 16, 3, 64, 6)  # for scalars of which the proof says nothing
_SLOW_UNITS = ("tma", "wgmma", "tcgen05", "cp.async", "st.async")
_LIMITS = Limits(steps=5_000_000, turns=50_000)
_EXPLORED = Bounds(runs=100, turns=5_000, seconds=3.0)
_OUTSIDE = "E1120"  # of an array, or of the memory of a CTA that has exited
# Ends of a run that are no fault of its protocol: memory outside of the arrays that were made up, traps, limits.
_OTHERS = re.compile(r"E11(0\d|1[0-5]|2[1-9]|4[4-8]|5\d|6[1-4]|8[5-9])")


@dataclass(frozen=True)
class Fault:
    """What is to be shown: the finding with its class, and the values of parameters with which it shows."""

    diagnostic: Diagnostic
    kind: str
    values: Mapping[str, int]

    def lines(self) -> set[int]:
        return _lines(self.diagnostic)


def values_of(text: str) -> dict[str, int]:
    """Of a finding's ``n = 2, block_idx.x = 1, causal = True``."""
    found = re.findall(r"([\w.]+) = (-?\d+|True|False)", text)
    return {name: value == "True" if value in ("True", "False") else int(value) for name, value in found}


def find(
    subject: Subject,
    fault: Fault,
    block: Dim3,
    cluster: Dim3 | None = None,
    given: Mapping[str, str] | None = None,
    constants: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
) -> Witness | None:
    """A launch and a schedule that show a fault; None where none was found in time.

    given: ``--arg`` specifications, of tensor maps above all: these cannot be made up. Raises CompileError for those
    that do not fit.
    """
    signature = subject.signature
    cluster = signature.cluster or cluster
    smem = signature.dynamic_bytes
    if smem is None:
        smem = _most_dynamic(subject) if signature.dynamic_shared else 0
    shape = Shape(_grid(cluster, fault.values), signature.threads or block, cluster, smem)
    return _Search(subject, fault, shape, dict(given or {}), dict(constants or {}), monotonic() + seconds).found()


def _grid(cluster: Dim3 | None, values: Mapping[str, int]) -> Dim3:
    """The grid that a finding names, or has the block that it names; else one cluster."""
    least = cluster or (1, 1, 1)
    wanted = [max(values.get(f"grid_dim.{axis}", 1), values.get(f"block_idx.{axis}", 0) + 1) for axis in "xyz"]
    x, y, z = (-(-number // size) * size for number, size in zip(wanted, least, strict=True))
    return (x, y, z) if x * y * z <= _BLOCKS else least


def _most_dynamic(subject: Subject) -> int:
    """Bytes of dynamic shared memory that a launch can have beside the static ones; what is not used costs nothing."""
    capability = int(re.sub(r"\D", "", subject.compiled.options.arch))
    static = -(-subject.signature.shared_bytes // 1024) * 1024  # the dynamic ones may be aligned to that
    return shared_bytes(capability) - static


class _Search:
    def __init__(
        self,
        subject: Subject,
        fault: Fault,
        shape: Shape,
        given: dict[str, str],
        constants: dict[str, str],
        deadline: float,
    ) -> None:
        self.subject, self.fault, self.given, self.constants = subject, fault, given, constants
        self.shape, self.deadline = shape, deadline
        self.lines = fault.lines()
        self.race: Witness | None = None

    def found(self) -> Witness | None:
        if not all(path in self.given for path in made_up_not(self.subject.signature.params)):
            return None
        launches = list(self._launches())
        for args in launches:
            shown = self._scheduled(args)
            if shown is not None:
                return shown
            if self._is_told() or monotonic() > self.deadline:
                return self.race
        for args in launches[:2]:
            shown = self._explored(args) if self.race is not None else self._by_lanes(args) or self._explored(args)
            if shown is not None:
                return shown
        return self.race

    def _is_told(self) -> bool:
        """Whether the race that has been found is of the class that the proof says."""
        return self.race is not None and self.race.shows.startswith(self.fault.diagnostic.code)

    def _launches(self) -> Iterator[dict[str, str]]:
        """``--arg`` entries, the likeliest first."""
        seen = set()
        for number in _NUMBERS:
            args = dict(self.given)
            for path, param in _leaves(self.subject.signature.params):
                if path not in args:
                    args[path] = _made_up(param, self.fault.values.get(path, number))
            key = tuple(args.items())
            if key not in seen:
                seen.add(key)
                yield args

    # Runs

    def _run(self, bound: Bound, schedule: Schedule | None, watch: Watch | None, turns: int = _LIMITS.turns) -> Report:
        limits = Limits(steps=_LIMITS.steps, turns=turns)
        report = in_simulator(
            self.subject, bound, self.shape, schedule=schedule, limits=limits, watch=watch, record=True
        )
        if report.status == "interrupted":
            raise KeyboardInterrupt
        return report

    def _bound(self, args: Mapping[str, str]) -> Bound:
        return bind(self.subject, specification.arguments(f"{name}={text}" for name, text in args.items()))

    def _scheduled(self, args: Mapping[str, str]) -> Witness | None:
        """What ends a run at one of the lines; a race that ends none is kept."""
        first: bytes | None = None
        for text in self._schedules():
            bound, watch = self._bound(args), TraceCheck()
            report = self._run(bound, parse_schedule(text), watch)
            if self._ends_there(report):
                return self._witness(args, report, report.diagnostics[0])
            if report.status == "fault" and report.diagnostics[0].code == _OUTSIDE:
                return None  # the arrays are too small for these numbers
            found = watch.found()
            result = b"".join(array.tobytes() for array, _ in bound.arrays.values())
            first = result if first is None else first
            race = self._race(found, report)
            if race is not None and (self.race is None or (result != first and not self.race.differs)):
                self.race = self._witness(args, report, race, races=True, differs=result != first)
                if self.race.differs and self._is_told():
                    return self.race
            if monotonic() > self.deadline:
                return self.race
        return None

    def _schedules(self) -> Iterator[str]:
        yield "round-robin"
        x, y, z = self.shape.block
        for warp in range(min(-(-x * y * z // 32), 12)):
            yield f"slow:warp{warp}"
        names = set(re.findall(r"wgmma|tcgen05|cp\.async(?:\.bulk)?|st\.async", self.subject.compiled.ptx))
        units = {"tma" if name.endswith("bulk") else name for name in names}
        yield from (f"slow:{unit}" for unit in _SLOW_UNITS if unit in units)
        yield from (f"random:{seed}" for seed in range(1, 5))

    def _by_lanes(self, args: Mapping[str, str]) -> Witness | None:
        """A race between lanes of a warp, which the simulator moves together."""
        bound, watch = self._bound(args), TraceCheck(by_lanes=True)
        report = self._run(bound, None, watch, _EXPLORED.turns)
        race = self._race(watch.found(), report)
        return None if race is None else self._witness(args, report, race, races=True, lanes=True)

    def _explored(self, args: Mapping[str, str]) -> Witness | None:
        bound = self._bound(args)

        def run(schedule: Schedule, watch: Watch) -> Report:
            return self._run(bound, schedule, watch, _EXPLORED.turns)

        left = max(min(_EXPLORED.seconds, self.deadline - monotonic()), 0.0)
        bounds = Bounds(_EXPLORED.runs, _EXPLORED.turns, left)
        for outcome in explore_runs(run, arrays_of([a for a, _ in bound.arrays.values()]), bounds).outcomes:
            if outcome.status in ("deadlock", "fault") and self._is_it(outcome.diagnostics[0]):
                return Witness(self._launch(args), outcome.schedule, summary(outcome.diagnostics[0]))
        return None

    # What they show

    def _is_it(self, diagnostic: Diagnostic) -> bool:
        if _OTHERS.match(diagnostic.code) or (diagnostic.code == _OUTSIDE and self.fault.kind != EXIT_IN_FLIGHT):
            return False
        return bool(_lines(diagnostic) & self.lines)

    def _ends_there(self, report: Report) -> bool:
        return report.status in ("deadlock", "fault") and self._is_it(report.diagnostics[0])

    def _race(self, found: Found, report: Report) -> Diagnostic | None:
        """Of the proof's class before others at its lines."""
        there = [race for race in found.races if _lines(race.diagnostic) & self.lines]
        same = [race for race in there if race.kind == self.fault.kind]
        if same or there:
            return (same or there)[0].diagnostic
        warnings = [d for d in report.diagnostics if d.severity == "warning" and _lines(d) & self.lines]
        return warnings[0] if warnings and report.finished else None

    def _witness(self, args: Mapping[str, str], report: Report, diagnostic: Diagnostic, **how: bool) -> Witness:
        assert report.recording is not None
        return Witness(self._launch(args), report.recording, summary(diagnostic), **how)

    def _launch(self, args: Mapping[str, str]) -> Launch:
        shape, options = self.shape, self.subject.compiled.options
        name = self.subject.name
        smem = shape.smem or None
        return Launch(name, self.constants, options.arch, shape.grid, shape.block, shape.cluster, smem, args)


def _lines(diagnostic: Diagnostic) -> set[int]:
    spans = [diagnostic.span, *(span for span, _ in diagnostic.notes)]
    return {span.line for span in spans if span is not None}


def summary(diagnostic: Diagnostic) -> str:
    """A few words: code, line and what it is."""
    where = f" at line {diagnostic.span.line}" if diagnostic.span is not None else ""
    what = diagnostic.message.partition(":")[0].partition(" (CTA")[0]
    return f"{diagnostic.code}{where}: {what}"


def _leaves(params: tuple[Param, ...], path: str = "") -> Iterator[tuple[str, Param]]:
    for param in params:
        if isinstance(param, StructParam):
            yield from _leaves(param.fields, f"{path}{param.name}.")
        else:
            yield f"{path}{param.name}", param


def made_up_not(params: tuple[Param, ...]) -> list[str]:
    """The parameters that must be given."""
    return [path for path, param in _leaves(params) if isinstance(param, TensorMapParam)]


def _made_up(param: Param, number: int) -> str:
    """A specification for a parameter."""
    if isinstance(param, ScalarParam):
        return str(bool(number)) if param.dtype == "bool" else str(int(number))
    if not isinstance(param, PointerParam):
        return ""  # a tensor map: ``found`` has asked for it
    if param.dtype not in FORMATS:
        return f"zeros:u8:{min(_ELEMENTS * param.size, 1 << 20)}"
    if param.dtype == "bool":
        return f"ones:bool:{_ELEMENTS}"
    return f"randint:{param.dtype}:{_ELEMENTS}:low=1:high=9"
