"""Runs of kernels that the trace check watches, for its tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fault_kernels
import numpy as np
from async_kernels import kernel as kernel_text
from async_kernels import parameters_of
from fault_kernels import LIMITS, FaultKernel

from ptxdsl.explore.explore import Bounds, Exploration, arrays_of, explore_runs
from ptxdsl.races.trace import Found, TraceCheck
from ptxdsl.sim.launch import Report, simulate
from ptxdsl.sim.limits import Limits

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "tests" / "data" / "examples").glob("*.pdsl"))
FAULTS = sorted((ROOT / "tests" / "sim" / "faults").glob("*"))


def watched(ptx: str, by_lanes: bool = False, **options: Any) -> tuple[Found, Report]:
    watch = TraceCheck(by_lanes)
    report = simulate(ptx, watch=watch, limits=LIMITS, **options)
    return watch.found(), report


def body(text: str, *arguments: Any, threads: int = 64, target: str = "sm_90a", **options: Any) -> Found:
    """What is found in a kernel with this body (``async_kernels.kernel``), which must come to its end."""
    ptx = kernel_text(text, parameters_of(arguments), target)
    found, report = watched(ptx, grid=options.pop("grid", 1), block=threads, arguments=arguments, **options)
    assert report.finished, report.render()
    return found


def kinds(found: Found) -> list[str]:
    return sorted({race.kind for race in found.races})


class Watched(FaultKernel):
    """A kernel of a file with a header."""

    found: Found
    by_lanes = False  # whether the trace check looks at each lane by itself

    def _simulate(self, names: dict[str, Any], given: list[Any], schedule: str) -> Report:
        made = self.compiled(names)
        self.found, report = watched(
            made.ptx,
            self.by_lanes,
            grid=self.grid,
            block=self.block,
            cluster=self.cluster,
            arguments=given,
            schedule=schedule,
            line_map=made.line_map,
            shared_names=made.shared_names,
        )
        return report

    def explore(self, names: dict[str, Any], bounds: Bounds) -> Exploration:
        """Of a launch with these values and with arrays of small numbers."""
        rng = np.random.default_rng(3)
        known: dict[str, Any] = {**names, "np": np, "grid": self.grid}
        given: list[Any] = []
        for argument in self.arguments:
            if argument.size is None:
                given.append(names[argument.name])
                continue
            length = eval(argument.size, dict(known))
            dtype = np.dtype(argument.dtype)
            array = np.full(length, 77, dtype) if argument.output else rng.integers(-9, 9, length).astype(dtype)
            known[argument.name] = array
            given.append(array)
        made = self.compiled(names)

        def run(schedule: Any, watch: Any) -> Report:
            return simulate(
                made.ptx,
                grid=self.grid,
                block=self.block,
                cluster=self.cluster,
                arguments=given,
                schedule=schedule,
                limits=Limits(turns=bounds.turns),
                line_map=made.line_map,
                shared_names=made.shared_names,
                record=True,
                watch=watch,
            )

        return explore_runs(run, arrays_of(given), bounds)


def file_kernel(path: Path) -> Watched:
    made = fault_kernels.read(path)
    made.__class__ = Watched
    assert isinstance(made, Watched)
    return made


def largest_case(made: FaultKernel) -> dict[str, Any]:
    """Of those that are quick, the one with the largest parameters."""
    cases = [case for constants in made.variants() for case in made.cases(constants)]
    quick = [case for case in cases if all(value <= 20 for value in case.values() if isinstance(value, int))]
    return max(quick or cases, key=lambda case: tuple(map(float, case.values())))
