"""``leave_from_last_loops`` reads LLVM's text: these fail where LLVM ends loops in other words than it expects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from backend_kernels import Build, body_of, i32, ptx_of

from ptxdsl.artifact import Compiled
from ptxdsl.backend.emit_ptx import leave_from_last_loops
from ptxdsl.driver import compile_source
from ptxdsl.imports import source_of
from ptxdsl.options import Options
from ptxdsl.source import Source, Span
from ptxdsl.tir import Op, Value

KERNEL_A = Path(__file__).parents[2] / "samples" / "04_kernel_a.pdsl"
SPAN = Span(Source("a.pdsl", "x"), 0, 1)


def left_by_a_branch_of_its_own(body: list[str]) -> bool:
    """Does the kernel end with "leave if done, else back, and there return"?"""
    return (
        re.search(r"^@!?%p\d+ bra (\$L__BB\w+);\nbra\.uni \$L__BB\w+;\n\1:\nret;$", "\n".join(body), re.M) is not None
    )


def test_of_a_small_kernel() -> None:
    k = Build()
    out, n = k.pointer("out"), k.scalar("n")

    def turn(_: Op, i: Value) -> None:
        k("barrier", None)
        k("store", None, out, i, align=4, volatile=True)

    k.for_(i32(0), n, [], turn)
    body = body_of(ptx_of(k))
    assert left_by_a_branch_of_its_own(body), body


@pytest.mark.parametrize("threads", ["(threads=64)", ""])
def test_of_kernel_a(threads: str) -> None:
    text = KERNEL_A.read_text(encoding="utf-8").replace("(threads=64)", threads)
    assert f"@kernel{threads}\n" in text
    compiled = compile_source(source_of(text.encode(), "a.pdsl"), options=Options(ring_unroll=False))
    assert isinstance(compiled, Compiled)
    body = body_of(compiled.ptx)
    assert left_by_a_branch_of_its_own(body), body


@pytest.mark.parametrize(("written", "leaves"), [("@%p1", "@!%p1"), ("@!%p1", "@%p1")])
def test_the_condition_is_turned_round(written: str, leaves: str) -> None:
    lines = ["$L__BB0_1:", "\tbody;", f"\t{written} bra \t$L__BB0_1;", "$L__BB0_2:", "\tret;"]
    spans = [None, None, SPAN, None, None]
    leave_from_last_loops(lines, spans)
    assert lines[2:] == [f"\t{leaves} bra \t$L__BB0_2;", "\tbra.uni \t$L__BB0_1;", "$L__BB0_2:", "\tret;"]
    assert spans == [None, None, SPAN, SPAN, None, None]


@pytest.mark.parametrize(
    "lines",
    [
        ["$L__BB0_1:", "\t@%p1 bra \t$L__BB0_1;", "$L__BB0_2:", "\tbar.sync 0;", "\tret;"],  # more work behind it
        ["\t@%p1 bra \t$L__BB0_2;", "$L__BB0_1:", "\tret;", "$L__BB0_2:", "\tret;"],  # no branch back
    ],
)
def test_other_branches_stay(lines: list[str]) -> None:
    before = list(lines)
    leave_from_last_loops(lines, [None] * len(lines))
    assert lines == before
