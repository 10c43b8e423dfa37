"""The Hopper GEMM: a main loop as short in machine code as written by hand in LLVM IR; pairs of blocks are proved."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxdsl import cli
from ptxdsl.backend.assemble import assemble, disassemble
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.syntax.parse import read_source

SAMPLE = Path(__file__).parents[2] / "samples" / "08_gemm_hopper.pdsl"


def main_loop(sass: str) -> list[str]:
    """The instructions of the innermost loop around the products."""
    lines = re.findall(r"^(\.L_\w+):|/\*[0-9a-f]{4,}\*/\s+([^;]+?)\s*;", sass, re.MULTILINE)
    labels = {label: i for i, (label, _) in enumerate(lines) if label}
    products = [i for i, (_, code) in enumerate(lines) if code.startswith("HGMMA")]
    loops = [
        (labels[target], i)
        for i, (_, code) in enumerate(lines)
        for target in re.findall(r"BRA `\((\.L_\w+)\)", code)
        if labels[target] < products[0] and i > products[-1]
    ]
    first, last = min(loops, key=lambda ends: ends[1] - ends[0])
    return [code for label, code in lines[first : last + 1] if not label]


@pytest.mark.parametrize(("cluster", "length"), [(1, 43), (2, 45)])
def test_main_loop(cluster, length, ptxas):
    options = Options("sm_90a", check="off")
    constants = {"CLUSTER": str(cluster), "STAGES": "3", "C_STAGES": "4"}
    compiled = compile_source(read_source(SAMPLE, SAMPLE.name), constants=constants, options=options)
    assembled = assemble(compiled.ptx, options, compiled.line_map)
    (used,) = assembled.resources.values()
    assert used.registers == 168 and used.spill_stores == used.spill_loads == 0
    assert not assembled.log
    loop = main_loop(disassemble(assembled.cubin))
    assert sum(code.startswith("HGMMA.64x256x16") for code in loop) == 4
    assert len(loop) <= length
    # nothing that waits for all of the card's memory
    assert not any("MEMBAR" in code for code in loop)


@pytest.mark.parametrize(
    "constants", ["CLUSTER=2 STAGES=3 C_STAGES=4 ORDER=8", "SPLIT=2 GROUPS=1 BN=64 STAGES=2 C_STAGES=1"]
)
def test_pairs_of_blocks_are_proved(constants, capsys):
    given = [part for constant in constants.split() for part in ("-D", constant)]
    assert cli.main(["check", str(SAMPLE), *given]) == 0
    said = capsys.readouterr()
    assert "proved" in said.out + said.err and "not provable" not in said.out + said.err
