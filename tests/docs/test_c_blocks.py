"""A document's program in C is compiled as it says, with the files of the ``build`` before, and launches."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from blocks import BLOCKS, ROOT, Block, blocks

from ptxdsl import cli

STUB = ROOT / "tests" / "data" / "c_program" / "libcuda.c"  # a driver that prints what it is asked to do


@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in blocks("c")])
def test_program(
    block: Block, c_compiler: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    (tmp_path / block.marks["file"]).write_text(block.text)
    monkeypatch.chdir(tmp_path)
    around = BLOCKS[block.path]
    build = next(b for b in around if b.language == "console").text.splitlines()[0]
    assert cli.main(shlex.split(build.removeprefix("$ ptxdsl"))) == 0
    c_compiler("gcc", "-std=c99", "-shared", "-fPIC", STUB, "-o", "libcuda.so")
    compile, program = next(b for b in around if b.language == "sh").text.split(" && ")
    c_compiler("gcc", *shlex.split(compile.removeprefix("cc ")), "-L.")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "vector_add": "8 8 8 4"}
    done = subprocess.run(shlex.split(program), capture_output=True, text=True, env=environment, check=True)
    launch = next(line for line in done.stdout.splitlines() if line.startswith("launch"))
    assert launch.startswith("launch vector_add grid 4 1 1 block 256 1 1 shared 0 ") and launch.endswith(" e8030000")
    assert "999 + 1 = " in done.stdout
