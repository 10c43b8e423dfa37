"""One mutant of every operator, each time of another clean kernel: all of them are run by benchmarks/checker.py."""

from __future__ import annotations

import pytest
from corpus import PROVED, read
from mutant_classes import ACCEPTED, EQUIVALENT, HARMLESS
from mutant_operators import OPERATORS
from mutant_runs import chosen, judge, spread
from mutants import Mutant, mutants

from ptxdsl.check.classes import CODES

ENTRIES = {path.stem: read(path) for path in PROVED}
ALL = [mutant for entry in ENTRIES.values() for mutant in mutants(entry.name, entry.text)]


def test_every_operator_has_classes_and_mutants() -> None:
    assert set(ACCEPTED) == set(OPERATORS) == {mutant.operator for mutant in ALL}
    assert {kind for kinds in ACCEPTED.values() for kind in kinds} == set(CODES)
    assert all(bool(ACCEPTED[operator]) != (operator in HARMLESS) for operator in OPERATORS)
    assert len(chosen(ALL)) >= 500


def test_what_is_called_equivalent_exists() -> None:
    places = {(mutant.kernel, mutant.operator, mutant.place) for mutant in ALL}
    assert set(EQUIVALENT) <= places


def test_a_mutant_is_one_change() -> None:
    for mutant in ALL[::7]:
        text = ENTRIES[mutant.kernel].text.split("\n")
        changed = [i + 1 for i, (a, b) in enumerate(zip(text, mutant.text.split("\n"), strict=True)) if a != b]
        assert changed[0] == mutant.line and set(changed) <= mutant.lines


@pytest.mark.parametrize("mutant", spread(ALL), ids=lambda mutant: mutant.name)
def test_mutants_are_found(mutant: Mutant) -> None:
    assert judge(ENTRIES[mutant.kernel], mutant).problem is None
