"""What is read says the same as the text: printed flat and assembled, it gives the same machine code and data."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ptx_printing import ptx_text

from ptxdsl.backend.assemble import find_tool
from ptxdsl.kernel_cache import compile_kernel
from ptxdsl.options import Options
from ptxdsl.ptx.reader import read
from ptxdsl.syntax.parse import read_source

HERE = Path(__file__).parent
SAMPLES = sorted((HERE.parents[1] / "samples").glob("*.pdsl"))

# Debug information, pragmas, parameter attributes and the linkage of functions are not kept in a module.
_NOT_KEPT = (
    (re.compile(r"\.section\s+\.debug[^{]*\{[^{}]*\}"), ""),
    (re.compile(r"^\s*\.(?:loc|file)\s[^\n]*", re.MULTILINE), ""),
    (re.compile(r'\.pragma "[^"]*";'), ""),
    (re.compile(r"(\.target \w+), debug"), r"\1"),
    (re.compile(r"\.ptr(?: \.global)?(?: \.align \d+)?"), ""),
    (re.compile(r"\.(?:weak|visible) \.func"), ".func"),
    (re.compile(r"\.noreturn|\.attribute\(\.managed\)"), ""),
)


def assembled(text: str, arch: str, folder: Path, ptxas: str) -> Path:
    folder.mkdir()
    (folder / "k.ptx").write_text(text, encoding="utf-8")
    subprocess.run([ptxas, f"-arch={arch}", "k.ptx", "-o", "k.cubin"], cwd=folder, check=True, capture_output=True)
    return folder / "k.cubin"


def listing(cubin: Path) -> str:
    """Machine code and data, as the disassembler shows them."""
    return subprocess.run([find_tool("nvdisasm"), cubin], check=True, capture_output=True, text=True).stdout


def same_code(text: str, folder: Path, ptxas: str) -> None:
    module = read(text)
    for pattern, kept in _NOT_KEPT:
        text = pattern.sub(kept, text)
    ours = assembled(ptx_text(module), module.target, folder / "ours", ptxas)
    theirs = assembled(text, module.target, folder / "theirs", ptxas)
    if ours.read_bytes() != theirs.read_bytes():  # what names differ in has no place in the listing
        assert listing(ours) == listing(theirs)


def test_every_kind_of_statement(tmp_path: Path, ptxas: str) -> None:
    same_code((HERE / "data" / "every_statement.ptx").read_text(encoding="utf-8"), tmp_path, ptxas)


@pytest.mark.parametrize("options", ["-arch=sm_80 -lineinfo", "-arch=sm_90a -G"])
def test_text_of_another_compiler(options: str, nvcc: Callable[..., str], tmp_path: Path, ptxas: str) -> None:
    same_code(nvcc(HERE / "data" / "foreign.cu", *options.split()), tmp_path, ptxas)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_our_own(path: Path, tmp_path: Path, ptxas: str) -> None:
    source = read_source(path, path.name)
    targets = re.search(r"^# targets: (.*)$", source.text, re.MULTILINE)
    assert targets is not None
    options = Options(arch=targets[1].split(", ")[-1])
    same_code(compile_kernel(source, None, (), options).ptx, tmp_path, ptxas)
