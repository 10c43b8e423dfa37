"""ptxdsl in a zip file on Python's path: what needs folders says so."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "ptxdsl"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "ptxdsl.zip"
    with zipfile.ZipFile(path, "w") as file:
        for part in (part for part in PACKAGE.rglob("*") if part.suffix in (".py", ".md")):
            file.write(part, part.relative_to(PACKAGE.parent))
    return path


def command(archive: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(archive)}
    return subprocess.run(
        [sys.executable, "-m", "ptxdsl", *arguments],
        env=environment,
        cwd=archive.parent,
        capture_output=True,
        text=True,
    )


def test_a_compilation_in_an_archive(archive: Path) -> None:
    (archive.parent / "k.pdsl").write_text("@kernel\ndef k():\n    pass\n")
    ended = command(archive, "compile", "k.pdsl")
    assert ended.returncode == 1
    assert f"error[E1090]: ptxdsl cannot work inside an archive: '{archive / 'ptxdsl'}' is not a folder" in ended.stderr


def test_an_explanation_in_an_archive(archive: Path) -> None:
    ended = command(archive, "explain", "E0303")
    assert (ended.returncode, ended.stdout[:7], ended.stderr) == (0, "E0303: ", "")
