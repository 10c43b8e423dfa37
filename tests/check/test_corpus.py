"""The corpus: clean kernels give their results and are proved; faulty ones are reported in a class and at a line that
their headers accept, and what repairs them is proved."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import CLEAN, FAULTY, FIXED, lines_of, read

ITEMS = (*range(1, 26), 27)  # of mistakes that people make; the first number of a faulty kernel's name


def name(path: Path) -> str:
    return path.stem


def test_the_corpus_is_complete() -> None:
    assert len(CLEAN) >= 25
    assert {int(path.stem[:2]) for path in FAULTY} == set(ITEMS)
    assert [f"{path.stem}_fixed" for path in FAULTY] == [path.stem for path in FIXED]


@pytest.mark.parametrize("path", CLEAN, ids=name)
def test_clean_kernels_are_proved(path: Path) -> None:
    entry = read(path)
    for known in entry.choices():
        found = entry.proof(known)
        if entry.verdict == "trace":
            assert found.verdict == "not provable here"
        else:
            assert (found.verdict, found.assumed, found.diagnostics) == (entry.verdict, False, ())


@pytest.mark.parametrize("by_lanes", [False, True])
@pytest.mark.parametrize("path", CLEAN, ids=name)
def test_clean_kernels_give_their_results_without_a_race(path: Path, by_lanes: bool) -> None:
    entry = read(path)
    for known in entry.choices():
        for case in entry.extremes(known):
            found, report, right = entry.trace(case, by_lanes=by_lanes)
            assert report.finished and right, (case, report.render())
            assert not found.races and not found.incomplete, (case, found.diagnostics)


@pytest.mark.parametrize("path", FIXED, ids=name)
def test_repaired_kernels_are_proved(path: Path) -> None:
    entry = read(path)
    (known,) = entry.choices()
    found = entry.proof(known)
    assert (found.verdict, found.assumed, found.diagnostics) == ("proved", False, ())
    for by_lanes in (False, True):
        races, report, right = entry.trace(entry.small(), by_lanes=by_lanes)
        assert report.finished and right and not races.races, report.render()


@pytest.mark.parametrize("path", FAULTY, ids=name)
def test_faulty_kernels_are_reported_as_their_headers_accept(path: Path) -> None:
    entry = read(path)
    (known,) = entry.choices()
    found = entry.proof(known)
    assert found.verdict == "fault"
    assert set(found.kinds) <= set(entry.kinds)
    assert lines_of(found.diagnostics) & entry.lines


@pytest.mark.parametrize(
    ("stem", "kind"),
    [
        ("cluster_multicast", "slot overwritten before release"),
        ("warps_release_elected", "slot overwritten before release"),
        ("producer_commits_elected", "slot read before full"),
    ],
)
def test_a_lane_that_arrives_does_not_speak_for_those_it_has_not_met(stem: str, kind: str) -> None:
    """The run's lanes go in lock step, which orders nothing."""
    entry = read(next(path for path in CLEAN if path.stem == stem))
    assert entry.text.count("syncwarp()") == 1
    found, report, right = entry.trace(entry.small(), entry.text.replace("syncwarp()", "pass"))
    assert report.finished and right
    assert {race.kind for race in found.races} == {kind}
