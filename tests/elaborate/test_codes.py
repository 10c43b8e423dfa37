"""Every diagnostic that elaboration can raise is in a test with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = list((ROOT / "ptxdsl" / "elaborate").glob("*.py"))
CODE = re.compile(r'"([EW]0\d{3})"')
CODES = sorted({code for path in SOURCES for code in CODE.findall(path.read_text())})
HERE = Path(__file__).parent
SNIPPETS = "".join(path.read_text() for path in (HERE / "rejected").glob("*.pdsl"))
TESTS = "".join(path.read_text() for path in HERE.glob("test_*.py"))
# The comments of the programs in error, and tests that compare a code with its line and column.
TESTED = {*re.findall(r"(?:\^|:) ([EW]\d{4}): ", SNIPPETS), *re.findall(r'"([EW]\d{4})", \d+, \d+', TESTS)}


def test_there_are_codes() -> None:
    assert len(CODES) > 80


@pytest.mark.parametrize("code", CODES)
def test_a_test_shows_where_it_is_raised(code: str) -> None:
    assert code in TESTED
