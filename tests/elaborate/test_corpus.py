"""The corpus of programs: what each gives at compile time is what it gives at run time, and what its comment says."""

from __future__ import annotations

import pytest
from corpus_cases import Case, cases, values_of


@pytest.mark.parametrize("case", cases(), ids=str)
def test_case(case: Case) -> None:
    now, later = values_of(case)
    assert (repr(now), repr(later)) == (repr(case.expected), repr(case.expected))
