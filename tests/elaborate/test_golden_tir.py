"""Golden typed IR: each sample as elaborated, and after its rings are unrolled."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.syntax.parse import read_source

UNROLLED = ("09_gemm_ampere", "10_gemm_blackwell", "11_gemm_stream_k")  # thousands of lines, which nobody reads
SAMPLES = sorted(p for p in (Path(__file__).parents[2] / "samples").glob("*.pdsl") if p.stem not in UNROLLED)

CASES = [  # rings change only what has a pipeline
    (path, stage) for path in SAMPLES for stage in ("tir", "rings") if stage == "tir" or "Pipeline" in path.read_text()
]


@pytest.mark.parametrize(("path", "stage"), CASES, ids=[f"{path.stem}-{stage}" for path, stage in CASES])
def test_sample(path: Path, stage: str, golden: Callable[[str, str], None]) -> None:
    targets = re.search(r"# targets: (\w+)", path.read_text())
    options = Options(arch=targets[1]) if targets else Options()
    text = compile_source(read_source(path, path.name), options=options, stop=stage)
    assert isinstance(text, str)
    golden(f"{path.stem}.{stage}", text)


def test_printing_is_stable() -> None:
    path = SAMPLES[0]
    first, second = (compile_source(read_source(path, path.name), stop="tir") for _ in range(2))
    assert first == second


def test_no_golden_is_left_over() -> None:
    wanted = {f"{path.stem}.{stage}" for path, stage in CASES}
    assert {p.name for p in (Path(__file__).parent / "golden").iterdir()} == wanted
