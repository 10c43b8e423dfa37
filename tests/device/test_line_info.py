"""With ``lineinfo=True`` NVIDIA's tools name the kernel's own lines, whoever has assembled it."""

import csv
import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ptxdsl
from ptxdsl.backend.assemble import find_tool

KERNEL = """\
@kernel
def k(p: Pointer[Int32, MutAnyOrigin], i: Int64):
    var x = Int32(thread_idx.x)
    if x < 4:
        p[unsafe_offset=i] = x + 1
"""
STORE = 5  # the line that writes

PROGRAM = """
import sys
import numpy
import ptxdsl

p = ptxdsl.to_device(numpy.zeros(4, numpy.int32))
ptxdsl.load("faulty.pdsl", lineinfo=True).k[1, 32](p, int(sys.argv[1]))
try:
    p.to_host()
except ptxdsl.LaunchError:
    pass
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "faulty.pdsl").write_text(KERNEL)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


@pytest.fixture(params=["ptxas", "driver"])
def tool(gpu, folder, request, monkeypatch):
    """tool(command, its options…, offset): what it says of a run that writes at this offset."""
    monkeypatch.setenv("PTXDSL_ASSEMBLER", request.param)
    monkeypatch.setenv("PTXDSL_NO_CACHE", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(ptxdsl.__file__).parents[1]), prepend=":")

    def run(name, *options):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
        *more, offset = options
        command = [name, *more, sys.executable, "program.py", str(offset)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        return done.stdout + done.stderr

    return run


@pytest.mark.device
def test_compute_sanitizer(tool):
    said = tool("compute-sanitizer", "--tool", "memcheck", 1 << 28)
    assert "Invalid __global__ write of size 4 bytes" in said
    assert f" in faulty.pdsl:{STORE}\n" in said


@pytest.mark.device
def test_ncu(tool):
    """Its source view has each line with the instructions that came of it, and how often they ran."""
    said = tool("ncu", "--clock-control", "none", "--metrics", "inst_executed", "--page", "source",
                "--print-source", "cuda,sass", "--csv", 0)  # fmt: skip
    rows = list(csv.reader(said[said.index('"File Path"') :].splitlines()))
    assert rows[0] == ["File Path", "faulty.pdsl"]
    (place,) = (i for i, row in enumerate(rows) if row[:2] == [str(STORE), "p[unsafe_offset=i] = x + 1"])
    code = list(itertools.takewhile(lambda row: row[0] == "", rows[place + 1 :]))
    assert [row[-1] for row in code if "STG" in row[3]] == ["1"]


def test_machine_code(folder, monkeypatch, ptxas):
    """What the tools read: the table of lines in the cubin."""
    monkeypatch.chdir(folder)
    (folder / "k.cubin").write_bytes(ptxdsl.load("faulty.pdsl", lineinfo=True).k.compile().cubin())
    command = [find_tool("nvdisasm"), "-g", "-c", "k.cubin"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    _, _, after = listed.partition(f'//## File "faulty.pdsl", line {STORE}\n')
    assert "STG" in after.partition("//## File")[0]
