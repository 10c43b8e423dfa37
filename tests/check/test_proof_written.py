"""Threads that write the same bytes in one execution of a statement must write the same value there."""

from __future__ import annotations

from textwrap import dedent

import pytest
from pipeline_kernels import GIVES, kernel
from proofs import verdict

from ptxdsl.check.report import ptx_verdicts
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.ptx.reader import read
from ptxdsl.source import Source

HEAD = """\
from async_copy import async_copy, async_copy_commit_group, async_copy_wait_group
from warp import sum as warp_sum
@kernel(threads=64)
def kernel(src: Pointer[Float32, MutAnyOrigin], at: Pointer[Int32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var tile = unsafe_stack_allocation[4096, Float32, address_space=.SHARED, alignment=128]()
    var t = Int32(thread_idx.x)
    tile[unsafe_offset=t] = 0
    barrier()
"""  # noqa: E501
TAIL = "    barrier()\n    res[unsafe_offset=t] = tile[unsafe_offset=t // 32]\n"
# 64 threads; the value, or the place, is the same for the threads that meet
SAME = {
    "a constant": ("tile[unsafe_offset=0] = 1",),
    "a parameter": ("tile[unsafe_offset=0] = Float32(n) * 2",),
    "loaded from one place": ("tile[unsafe_offset=0] = src[unsafe_offset=n] + 1",),
    "a sum that all compute": (
        "var sum = Float32(0)", "for i in range(n):", "    sum += src[unsafe_offset=i]",
        "    if sum > 9:", "        break", "tile[unsafe_offset=0] = sum",
    ),
    "each warp its number": ("tile[unsafe_offset=t // 32] = Float32(t // 32) + src[unsafe_offset=t // 32]",),
    "neighbours the same": ("tile[unsafe_offset=t // 2] = Float32(t // 2)",),
    "one thread": ("if t == n:", "    tile[unsafe_offset=0] = src[unsafe_offset=t]"),
    "one that is told by its number": ("if t == 7:", "    tile[unsafe_offset=0] = src[unsafe_offset=t]"),
    "another base": ("tile[unsafe_offset=n % 8 * 64 + t] = src[unsafe_offset=t]",),
    "turns in steps of the block": (
        "for i in range(n % 8):", "    tile[unsafe_offset=i * 64 + t] = src[unsafe_offset=t]",
    ),
    "two loops": (
        "for i in range(n % 4):", "    for j in range(n % 2):",
        "        tile[unsafe_offset=(i * 2 + j) * 64 + t] = src[unsafe_offset=t]",
    ),
    "copies from one place": ("async_copy[4](src, tile)", "async_copy_commit_group()", "async_copy_wait_group[0]()"),
}  # fmt: skip
DIFFERENT = {
    "loaded, to one place": ("tile[unsafe_offset=0] = src[unsafe_offset=t]",),
    "loaded, to one of two": ("tile[unsafe_offset=t // 2] = src[unsafe_offset=t]",),
    "the same byte by 4 of 64": ("tile[unsafe_offset=t % 60] = Float32(t)",),
    "a neighbour's half": ("tile.unsafe_store(t, src.unsafe_load[width=2](2 * t))",),
    "sums of different parts": (
        "var sum = Float32(0)", "for i in range(n):", "    sum += src[unsafe_offset=i * 64 + t]",
        "tile[unsafe_offset=0] = sum",
    ),
    "sums of as many terms as the thread says": (
        "var sum = Float32(0)", "for i in range(t):", "    sum += src[unsafe_offset=i]", "tile[unsafe_offset=0] = sum",
    ),
    "one of two values": ("tile[unsafe_offset=0] = src[] if t < 9 else src[unsafe_offset=1]",),
    "those below n": ("if t < n:", "    tile[unsafe_offset=0] = src[unsafe_offset=t]"),
    "copies": (
        "async_copy[4](src.unsafe_offset(t), tile.unsafe_offset(t // 2))", "async_copy_commit_group()",
        "async_copy_wait_group[0]()",
    ),
}  # fmt: skip
# what is written is not known, or where
SUPPOSED = {
    "a sum of all lanes": ("tile[unsafe_offset=t // 32] = warp_sum(src[unsafe_offset=t])",),
    "those whose value is large": ("if src[unsafe_offset=t] > 9:", "    tile[unsafe_offset=0] = src[unsafe_offset=t]"),
    "scattered": ("tile[unsafe_offset=at[unsafe_offset=t] % 64] = src[unsafe_offset=t]",),
    "turns that overlap": ("for i in range(n % 8):", "    tile[unsafe_offset=i * 32 + t] = src[unsafe_offset=t]"),
    "turns that write over one another": (
        "for i in range(n % 8):", "    tile[unsafe_offset=at[unsafe_offset=t] % 64] = Float32(i)",
    ),
}  # fmt: skip
APART = "no two threads write different values to the same bytes"


def _text(*statements: str) -> str:
    return HEAD + "".join(f"    {statement}\n" for statement in statements) + TAIL


@pytest.mark.parametrize("name", SAME)
def test_the_same_value_is_proved(name: str) -> None:
    found = verdict(_text(*SAME[name]))
    assert (found.verdict, found.kinds) == ("proved", ())
    assert not any(APART in clause for clause in found.assumptions)


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_values_race(name: str) -> None:
    text = _text(*DIFFERENT[name])
    found = verdict(text)
    assert (found.verdict, found.kinds) == ("fault", ("data race",))
    written = max(text.rfind("    tile["), text.rfind("    tile."), text.rfind("async_copy[4]"))
    assert found.diagnostics[0].span.line == text.count("\n", 0, written) + 1
    assert "different values" in found.diagnostics[0].message


@pytest.mark.parametrize("name", SUPPOSED)
def test_what_is_not_known_is_named(name: str) -> None:
    text = _text(*SUPPOSED[name])
    found = verdict(text)
    assert found.verdict == "proved"
    assert f"if {APART} at line {text.count(chr(10), 0, text.rindex('    tile[')) + 1}" in found.assumptions


def test_the_same_protocol_is_not_proved_for_other_values() -> None:
    assert verdict(_text("tile[unsafe_offset=0] = 1")).verdict == "proved"
    assert verdict(_text("tile[unsafe_offset=0] = src[unsafe_offset=t]")).verdict == "fault"


@pytest.mark.parametrize(("index", "inside"), [("at[unsafe_offset=t]", False), ("n", False), ("t", True)])
def test_an_index_that_is_not_known_is_named(index: str, inside: bool) -> None:
    found = verdict(_text("tile[unsafe_offset=t] = 1", "barrier()", f"tile[unsafe_offset={index}] = 1"))
    clauses = () if inside else ("if the index at line 11 stays within its array",)
    assert (found.verdict, found.assumptions) == ("proved", clauses)


@pytest.mark.parametrize(("value", "known"), [("1", True), ("src[unsafe_offset=t]", False)])
def test_ptx_says_it_of_constants(value: str, known: bool) -> None:
    text = _text(f"tile[unsafe_offset=n % 2] = {value}")
    ptx = compile_source(Source("kernel.pdsl", text), options=Options("sm_90a", check="off")).ptx
    (found,) = ptx_verdicts(read(ptx, "kernel.ptx"))
    assert found.verdict == "proved"
    assert any(APART in clause for clause in found.assumptions) != known


ROLES = """
    if t < 32:
        var p = RolePipeline[1, True](bars, bars.unsafe_offset(1))
        for i in range(n):
            p.acquire()
            p.commit()
    else:
        var c = RolePipeline[1, False](bars, bars.unsafe_offset(1))
        for i in range(n):
            c.wait()
            c.release()
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", "proved"), ("Float32(n)", "proved"), ("Float32(t // 32)", "fault"), ("src[t]", "fault")],
)
def test_roles_that_write_by_one_statement(value: str, expected: str) -> None:
    """What is the same for all, whoever they are afterwards."""
    assert verdict(kernel(f"buf[0] = {value}\nbarrier()\nres[t] = buf[0]" + dedent(ROLES))).verdict == expected


@pytest.mark.parametrize(("value", "expected"), [("1.5", "fault"), ("Float32(rank)", "fault")])
def test_blocks_that_write_by_one_statement(value: str, expected: str) -> None:
    """To the same word of one of them: nothing is said of blocks."""
    text = GIVES.format(count=2, to="0", tell="0").replace("Float32(1)", value)
    text = text.replace("init(32)", "init(64)").replace("    bars[].wait", "    if rank == 0:\n        bars[].wait")
    assert verdict(text).verdict == expected


@pytest.mark.parametrize(("alignment", "first", "expected"), [(4, "t // 32", "fault"), (8, "t // 32 * 0", "proved")])
def test_roles_that_write_parts_of_one_vector(alignment: int, first: str, expected: str) -> None:
    """The second element of one role's is the first of the other's."""
    write = f"buf.unsafe_store[alignment={alignment}]({first}, SIMD[DType.float32, 2](1, 2))"
    assert verdict(kernel(f"{write}\nbarrier()\nres[t] = buf[1]" + dedent(ROLES))).verdict == expected


@pytest.mark.parametrize(("second", "expected"), [("1", "proved"), ("2", "fault")])
def test_roles_of_ptx_that_write_constants(second: str, expected: str) -> None:
    text = dedent("""
        .version 8.6
        .target sm_90a
        .address_size 64
        .shared .align 8 .b8 buf[8];
        .shared .align 8 .b8 bars[16];
        .visible .entry kernel() .reqntid 64
        {
         .reg .pred %p<2>; .reg .b32 %r<2>;
         mov.u32 %r1, %tid.x;
         setp.ne.u32 %p1, %r1, 0;
         @%p1 bra I;
         mbarrier.init.shared.b64 [bars], 32;
         mbarrier.init.shared.b64 [bars+8], 32;
         I: bar.sync 0;
         setp.lt.u32 %p1, %r1, 32;
         @%p1 bra A;
         st.shared.u32 [buf], 1;
         mbarrier.arrive.shared.b64 _, [bars];
         V: mbarrier.try_wait.parity.shared.b64 %p1, [bars+8], 0;
         @!%p1 bra V;
         bra E;
         A: st.shared.u32 [buf], SECOND;
         mbarrier.arrive.shared.b64 _, [bars+8];
         W: mbarrier.try_wait.parity.shared.b64 %p1, [bars], 0;
         @!%p1 bra W;
         E: ret;
        }
    """)
    (found,) = ptx_verdicts(read(text.replace("SECOND", second), "kernel.ptx"))
    assert found.verdict == expected
