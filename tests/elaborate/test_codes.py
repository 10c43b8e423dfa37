"""Every diagnostic that elaboration can raise is in a test with its place, and has an explanation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxdsl.explanations import EXPLANATIONS

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


@pytest.mark.parametrize("code", CODES)
def test_it_is_explained(code: str) -> None:
    assert code in EXPLANATIONS


def test_no_explanation_is_left_over() -> None:
    raised = {code for path in (ROOT / "ptxdsl").rglob("*.py") for code in re.findall(r"[EW]\d{4}", path.read_text())}
    assert [code for code in EXPLANATIONS if code[1:3] in ("02", "03", "04", "05", "06") and code not in raised] == []
