"""Kernels that say in their own text how they are launched, what comes out and what the checker must say of them.

The header's lines, continued where they are indented:

- ``launch: grid G, block B[, N bytes of dynamic shared memory]``; a cluster is said by ``@kernel(cluster=…)``
- ``args: NAME: TYPE[SIZE] in|out|zeros; …`` (zeros: an input of zeros); scalars ``NAME: TYPE in [values]``; with
  ``map BOX [swizzle S]`` behind, the parameter is a ``TensorMap`` on the array, which has a SIZE for each dimension
- ``constants: NAME in [values]; …``: comptime parameters. Expressions may use all names before them, and ``grid``
- ``result: res == EXPRESSION`` of the inputs, or ``none``
- ``verdict: proved``, ``verdict: trace (reason)`` where only the trace check can speak, and has to find nothing, or
  ``verdict: fault: CLASS (also acceptable: …)`` with ``blame: line N (also acceptable: …)``
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from fault_kernels import choices

import ptxdsl
from ptxdsl import driver
from ptxdsl.artifact import Compiled
from ptxdsl.check.report import Verdict, verdicts
from ptxdsl.diagnostics import Diagnostic
from ptxdsl.options import Options
from ptxdsl.races.trace import Found, check_trace
from ptxdsl.sim.launch import Report
from ptxdsl.sim.limits import Limits
from ptxdsl.source import Source

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
CLEAN = sorted((FOLDER / "clean").glob("*.pdsl"))
PROVED = [path for path in CLEAN if "\n# verdict: trace" not in path.read_text(encoding="utf-8")]
FAULTY = sorted(p for p in (FOLDER / "faulty").glob("*.pdsl") if not p.stem.endswith("_fixed"))
FIXED = sorted((FOLDER / "faulty").glob("*_fixed.pdsl"))
EXAMPLES = sorted((ROOT / "tests" / "data" / "examples").glob("*_clean.pdsl"))

LIMITS = Limits(steps=20_000_000, turns=400_000)
_ARGUMENT = re.compile(r"(\w+): (\w+)(?:\[(.*?)\])? (?:(in|out|zeros)(?: map (\w+)(?: swizzle (\w+))?)?|in (\[.*\]))")
_BITS = {"bfloat16": np.dtype(np.uint16)}


@dataclass(frozen=True)
class Argument:
    """size: None of a scalar, which takes ``values``. box: of a tensor map."""

    name: str
    dtype: str
    size: str | None
    use: str  # in, out, zeros
    values: str
    box: tuple[int, ...] | None = None
    swizzle: str = "none"

    @property
    def output(self) -> bool:
        return self.use == "out"

    def made(self, shape: Any, rng: np.random.Generator) -> np.ndarray:
        """Small integers; outputs have what no result is."""
        if self.use == "in":
            return rng.integers(-4, 5, shape)
        return np.full(shape, 77 if self.output else 0)


@dataclass(frozen=True)
class Entry:
    """A kernel's text with what its header says."""

    path: Path
    text: str
    grid: Any
    block: Any
    smem: int
    arch: str
    arguments: tuple[Argument, ...]
    constants: Mapping[str, str]
    result: str  # an expression, or ""
    verdict: str
    kinds: tuple[str, ...]
    lines: frozenset[int]

    @property
    def name(self) -> str:
        return self.path.stem

    def choices(self) -> list[dict[str, Any]]:
        """Every choice of the comptime parameters."""
        return list(choices(self.constants, {"grid": self.grid}))

    def cases(self, constants: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Every choice of the scalars, with the constants."""
        scalars = {a.name: a.values for a in self.arguments if a.size is None}
        return [{**constants, **case} for case in choices(scalars, {**constants, "grid": self.grid})]

    def extremes(self, constants: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Of the cases the first and the last."""
        cases = self.cases(constants)
        return cases[:: len(cases) - 1] if len(cases) > 1 else cases

    def small(self) -> dict[str, Any]:
        """The values of a run that is quick and yet goes round every ring: the largest up to 8."""
        constants = self.choices()[-1]
        cases = self.cases(constants)
        numbers = [a.name for a in self.arguments if a.size is None]
        quick = [case for case in cases if all(case[name] <= 8 for name in numbers)] or cases[:1]
        return max(quick, key=lambda case: tuple(case[name] for name in numbers))

    def bound(self, known: Mapping[str, Any], seed: int = 3) -> Bound:
        """Arguments with these values, and what must come out."""
        rng = np.random.default_rng(seed)
        names: dict[str, Any] = {**known, "np": np, "grid": self.grid}
        given: list[Any] = []
        outputs: dict[str, np.ndarray] = {}
        for argument in self.arguments:
            if argument.size is None:
                given.append(names[argument.name])
                continue
            shape = eval(f"({argument.size})", dict(names))
            values = argument.made(shape, rng)
            array = _stored(values, argument.dtype)
            names[argument.name] = values.astype(np.float32) if argument.dtype in _BITS else array.copy()
            if argument.output:
                outputs[argument.name] = array
            given.append(array)
        return Bound(self, given, outputs, eval(self.result, names) if self.result else None)

    def compiled(self, known: Mapping[str, Any], text: str | None = None, arch: str | None = None) -> Compiled:
        constants = tuple((name, str(known[name])) for name in self.constants)
        return _compiled(self.path.name, self.text if text is None else text, constants, arch or self.arch)

    def proof(self, known: Mapping[str, Any], text: str | None = None) -> Verdict:
        """The verdict on the kernel. Raises CompileError."""
        constants = {name: str(known[name]) for name in self.constants}
        source = Source(self.path.name, self.text if text is None else text)
        job = driver.Job(source, constants=constants, options=Options(self.arch, check="off"))
        (found,) = verdicts(driver.run(job, "tir"))
        return found

    def trace(
        self, known: Mapping[str, Any], text: str | None = None, schedule: str = "round-robin", by_lanes: bool = False
    ) -> tuple[Found, Report, bool]:
        """What the trace check finds in one run, the run's report, and whether the result is right."""
        bound = self.bound(known)
        found, report = check_trace(
            self.compiled(known, text),
            bound.host(),
            grid=self.grid,
            block=self.block,
            smem=self.smem,
            schedule=schedule,
            limits=LIMITS,
            by_lanes=by_lanes,
        )
        return found, report, bound.right()


@dataclass(frozen=True)
class Bound:
    """The arrays of one launch. given: a value each parameter, for a map its array."""

    entry: Entry
    given: list[Any]
    outputs: Mapping[str, np.ndarray]
    expected: Any

    def host(self) -> list[Any]:
        """The arguments of a launch in the simulator."""
        return [self.made(argument, value) for argument, value in zip(self.entry.arguments, self.given, strict=True)]

    @staticmethod
    def made(argument: Argument, array: Any) -> Any:
        if argument.box is None:
            return array
        form = "bf16" if argument.dtype == "bfloat16" else None
        return ptxdsl.TensorMap(array, argument.box, swizzle=argument.swizzle, data_type=form)

    def right(self, outputs: Mapping[str, np.ndarray] | None = None) -> bool:
        """Whether the outputs are what the header says; outputs: those of another place."""
        if self.expected is None:
            return True
        (array,) = (self.outputs if outputs is None else outputs).values()
        return np.array_equal(array, np.reshape(self.expected, array.shape))


def lines_of(diagnostics: Iterable[Diagnostic]) -> frozenset[int]:
    """All lines that diagnostics show."""
    spans = [span for d in diagnostics for span in (d.span, *(place for place, _ in d.notes))]
    return frozenset(span.line for span in spans if span is not None)


def _stored(values: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(dtype)


@lru_cache(32)
def _compiled(name: str, text: str, constants: tuple[tuple[str, str], ...], arch: str) -> Compiled:
    made = driver.compile_source(Source(name, text), constants=dict(constants), options=Options(arch, check="off"))
    assert isinstance(made, Compiled)
    return made


def read(path: Path) -> Entry:
    """The header of a file of the corpus, of an example or of a sample."""
    text = path.read_text(encoding="utf-8")
    head = "\n".join(itertools.takewhile(lambda line: line.startswith("#"), text.splitlines()))
    told = dict(line.split(": ", 1) for line in re.sub(r"\n# {2,}", " ", head).replace("# ", "").splitlines())
    launch = re.fullmatch(r"grid (.+?), block (.+?)(?:, (no|\d+)(?: bytes of)? dynamic shared memory)?", told["launch"])
    assert launch is not None, (path, told["launch"])
    arguments = []
    for entry in told["args"].split("; "):
        match = _ARGUMENT.fullmatch(entry)
        assert match is not None, (path, entry)
        name, dtype, size, use, box, swizzle, values = match.groups()
        tile = tuple(map(int, box.split("x"))) if box else None
        arguments.append(Argument(name, dtype, size, use or "in", values or "", tile, swizzle or "none"))
    result = (
        re.split(r"\s+\(inputs: ", told.get("result", "none"))[0].removeprefix("intended: ").removeprefix("res == ")
    )
    verdict, kinds, lines = _verdict(told)
    return Entry(
        path,
        text,
        eval(launch[1]),
        eval(launch[2]),
        0 if launch[3] in (None, "no") else int(launch[3]),
        told.get("arch", told.get("targets", "sm_90a")).split(",")[0],
        tuple(arguments),
        dict(entry.split(" in ", 1) for entry in told["constants"].split("; ")) if "constants" in told else {},
        "" if result == "none" else result,
        verdict,
        kinds,
        lines,
    )


def _verdict(told: Mapping[str, str]) -> tuple[str, tuple[str, ...], frozenset[int]]:
    said = told.get("verdict", "proved")
    match = re.fullmatch(r"fault: ([^()]*?)(?: \(also acceptable: ([^)]*)\))?", said)
    if match is None:
        return said.split(" ")[0], (), frozenset()
    kinds = [match[1], *(match[2].split(", ") if match[2] else [])]
    return "fault", tuple(kinds), frozenset(map(int, re.findall(r"\d+", told["blame"])))
