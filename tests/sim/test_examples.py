"""The kernels of tests/data/examples in the simulator: the clean ones are right, the faulty ones show their fault."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fault_kernels import SCHEDULES, read

FILES = sorted((Path(__file__).parents[1] / "data" / "examples").glob("*.pdsl"))
CLEAN = [path for path in FILES if path.stem.endswith("_clean")]
FAULTY = [path for path in FILES if path.stem.endswith("_faulty")]


def names(paths: list[Path]) -> list[str]:
    return [path.stem for path in paths]


def test_all_examples_are_here() -> None:
    assert len(CLEAN) == 9 and len(FAULTY) == 6


@pytest.mark.parametrize("path", CLEAN, ids=names(CLEAN))
def test_a_clean_kernel_is_right_under_every_schedule(path: Path) -> None:
    kernel = read(path)
    for case in kernel.cases({}):
        for schedule in SCHEDULES:
            report, right = kernel.run(case, schedule)
            assert report.finished and not report.diagnostics and right, (case, schedule, report.render())


@pytest.mark.parametrize("path", FAULTY, ids=names(FAULTY))
def test_a_faulty_kernel_shows_its_fault_under_some_schedule(path: Path) -> None:
    kernel = read(path)
    text = path.read_text()
    blamed = {int(n) for n in re.findall(r"\d+", re.search(r"# blame: (.*)", text)[1])}
    shown = re.search(r"# shows at: (.*)", text)[1].split("; ")
    for entry in shown:
        name, value = entry.split(" = ")
        outcomes = [(schedule, *kernel.run({name: int(value)}, schedule)) for schedule in SCHEDULES]
        bad = [(schedule, report) for schedule, report, right in outcomes if not (report.finished and right)]
        assert bad, entry
        for schedule, report in bad:
            for diagnostic in report.diagnostics:
                lines = {diagnostic.span.line, *(span.line for span, _ in diagnostic.notes)}
                assert lines & blamed, (entry, schedule, report.render())
    assert all(kernel.run(case, "round-robin")[0].finished for case in kernel.cases({}) if case["n"] == 0)
