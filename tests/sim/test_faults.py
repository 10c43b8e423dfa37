"""The mistakes that people make with barriers and copies: what the simulator says of each, and of the repaired kernel.

Each kernel in tests/sim/faults has its launch, its result and the report that it must get in its own text
(``fault_kernels``); the first number of a file's name is that of its kind.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fault_kernels import ONE_WARP, SCHEDULES, FaultKernel, Shows, read

FOLDER = Path(__file__).parent / "faults"
FILES = sorted(p for p in FOLDER.iterdir() if p.suffix in (".pdsl", ".ptx"))
CLEAN = [p for p in FILES if p.stem.endswith("_clean")]
FAULTY = [p for p in FILES if p.stem.endswith("_faulty")]


def names(paths: list[Path]) -> list[str]:
    return [path.stem for path in paths]


@pytest.mark.parametrize("path", CLEAN, ids=names(CLEAN))
def test_a_repaired_kernel_is_right_under_every_schedule(path: Path) -> None:
    kernel = read(path)
    assert kernel.shows is None
    for constants in kernel.variants():
        for case in kernel.cases(constants):
            for schedule in SCHEDULES if np.prod(kernel.block) > 32 else ONE_WARP:
                report, right = kernel.run(case, schedule)
                assert report.finished and not report.diagnostics, (case, schedule, report.render())
                assert right, (case, schedule)


@pytest.mark.parametrize("path", FAULTY, ids=names(FAULTY))
def test_a_faulty_kernel_is_reported_where_it_is_wrong(path: Path) -> None:
    kernel = read(path)
    assert kernel.shows is not None
    expected = [kernel.shows] + ([kernel.also] if kernel.also else [])
    seen = set()
    for constants in kernel.variants():
        for case in kernel.cases(constants):
            if not any(shows.holds(case) for shows in expected):
                report, right = kernel.run(case, "round-robin")
                assert report.finished and right, (case, report.render())
            for shows in expected:
                if shows.holds(case):
                    seen.add(shows)
                    for schedule in shows.schedules:
                        _check(kernel, shows, case, schedule)
    assert len(seen) == len(expected)


def _check(kernel: FaultKernel, shows: Shows, case: dict[str, int], schedule: str) -> None:
    report, right = kernel.run(case, schedule)
    if shows.status == "wrong result":
        assert report.finished and not right, (case, schedule, report.render())
    else:
        assert report.status == shows.status, (case, schedule, report.render())
    assert [d.code for d in report.diagnostics][:1] == ([shows.code] if shows.code else []), report.render()
    if shows is kernel.shows and shows.code:
        kernel.check_report(report, case)
