"""Files of the corpus are programs of Mojo: where `mojo` is installed, its values are those that the comments say."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from corpus_cases import FOLDER, cases

MOJO = os.environ.get("PTXDSL_MOJO") or shutil.which("mojo")


@pytest.mark.skipif(MOJO is None, reason="needs mojo, in PATH or named by PTXDSL_MOJO")
@pytest.mark.parametrize("name", ["iteration", "traits", "variadics"])
def test_values(name: str, tmp_path: Path) -> None:
    told = [case for case in cases() if case.path.stem == name]
    calls = [f"    print({case.function}({', '.join(map(repr, case.values))}))" for case in told]
    program, binary = tmp_path / "corpus.mojo", tmp_path / "corpus"
    program.write_text("\n".join([(FOLDER / f"{name}.pdsl").read_text(), "def main():", *calls, ""]))
    subprocess.run([str(MOJO), "build", str(program), "-o", str(binary)], check=True)
    printed = subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout.split()
    assert {str(c): p for c, p in zip(told, printed, strict=True)} == {str(c): str(c.expected) for c in told}
