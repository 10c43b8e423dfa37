"""Programs in error: each diagnostic's code, place, message, help and notes are those that the file shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from rejections import FOLDER, Snippet, cases, rewritten

FILES = sorted(FOLDER.glob("*.pdsl"))
CASES = [(path, snippet) for path in FILES for snippet in cases(path)]


@pytest.mark.parametrize(("path", "snippet"), CASES, ids=[f"{path.stem}: {snippet}" for path, snippet in CASES])
def test_what_is_said(path: Path, snippet: Snippet, request: pytest.FixtureRequest) -> None:
    said = snippet.said()
    if not request.config.getoption("--update-golden"):
        assert said == snippet.annotated
    assert said != snippet.text, "this is accepted"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_files_are_well_formed(path: Path, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        path.write_text(rewritten(path))
    assert path.read_text() == rewritten(path, now=False)
