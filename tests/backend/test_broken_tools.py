"""An assembler that is not what it should be, and no room for its files."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from ptxdsl.backend import assemble
from ptxdsl.diagnostics import CompileError
from ptxdsl.options import Options

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")


def said(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is said where the assembler is this script. Its last argument is the file that it is to write."""
    tool = folder / "ptxas"
    tool.write_text(script)
    tool.chmod(0o755)
    monkeypatch.setattr(assemble, "find_tool", lambda name: str(tool))
    with pytest.raises(CompileError) as raised:
        assemble.assemble(".version 8.0\n", Options())
    return str(raised.value)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 0", "error[E0802]: ptxas made no machine code\n"),
        ('for last; do :; done; echo text > "$last"', "error[E0802]: ptxas made no machine code\n"),
        (
            "echo libnv.so: not found >&2; exit 127",
            "error[E0802]: ptxas ended with exit status 127: libnv.so: not found\n",
        ),
        ("kill -SEGV $$", "error[E0802]: ptxas was ended by signal 11 and said nothing\n"),
    ],
)
def test_a_broken_assembler(script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(f"#!/bin/sh\n{script}\n", tmp_path, monkeypatch).startswith(message)


def test_a_program_that_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said("\x7fELF", tmp_path, monkeypatch).startswith("error[E0803]: ptxas cannot be run: Exec format error\n")


def test_one_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "TIMEOUT", 0.1)
    assert said("#!/bin/sh\nexec sleep 60\n", tmp_path, monkeypatch).startswith("error[E0804]: ptxas did not finish")


def test_no_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    message = "error[E1009]: no temporary files can be written: No such file or directory\n  = help: TMPDIR"
    assert said("", tmp_path, monkeypatch).startswith(message)
