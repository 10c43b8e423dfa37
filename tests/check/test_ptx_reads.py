"""In PTX, too, what is read was written: a fault where the value is looked at, else named behind the verdict."""

from __future__ import annotations

import pytest
from proofs import verdict, verdict_of_ptx

from ptxdsl.check.report import ptx_verdicts
from ptxdsl.ptx.reader import read

HEAD = """\
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 src, .param .u64 dst, .param .u32 n)
.reqntid 32, 1, 1
{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<20>;
.shared .align 128 .b8 table[128];
.shared .align 128 .b8 other[128];
ld.param.u64 %rd1, [dst];
ld.param.u32 %r0, [n];
setp.lt.s32 %p0, %r0, 5;
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, table;
add.s32 %r3, %r3, %r2;
mov.u32 %r4, other;
add.s32 %r4, %r4, %r2;
"""
LOAD = "ld.shared.u32 %r5, [%r3];\n"
# What is done with a value that was loaded from where nobody has written.
LOOKS = {
    "stores it": "st.global.u32 [%rd1], %r5;",
    "stores what is made of it": "add.s32 %r6, %r5, 1; st.global.u32 [%rd1], %r6;",
    "stores it in shared memory": "st.shared.u32 [%r4], %r5;",
    "goes by it": "setp.eq.s32 %p1, %r5, 0; @%p1 bra L; st.global.u32 [%rd1], %r0; L: ret;",
    "stores it on both ways": """
        @%p0 bra A; st.global.u32 [%rd1], %r5; bra B; A: add.s32 %r6, %r5, %r5; st.global.u32 [%rd1], %r6; B: ret;""",
    "stores it in a loop that has a turn": "L: st.global.u32 [%rd1], %r5; add.s32 %r0, %r0, 1; @%p0 bra L; ret;",
}
MAY_NOT_LOOK = {
    "forgets it": "",
    "writes over it": "mov.u32 %r5, 3; st.global.u32 [%rd1], %r5;",
    "stores it on one way": "@%p0 bra A; st.global.u32 [%rd1], %r5; A: ret;",
    "stores it under a condition": "@%p0 st.global.u32 [%rd1], %r5;",
    "ends before": "@%p0 ret; st.global.u32 [%rd1], %r5;",
    "may take something else": "selp.b32 %r6, %r5, %r0, %p0; st.global.u32 [%rd1], %r6;",
    "asks something else as well": """
        setp.eq.s32 %p1, %r5, 0; and.pred %p2, %p0, %p1; @%p2 bra L; st.global.u32 [%rd1], %r0; L: ret;""",
}


def said(body: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    (found,) = ptx_verdicts(read(HEAD + body + "\n}\n", "k.ptx"))
    return found.verdict, found.kinds, found.assumptions


@pytest.mark.parametrize("use", LOOKS)
def test_what_is_looked_at_must_have_been_written(use: str) -> None:
    assert said(LOAD + LOOKS[use]) == ("fault", ("slot read before full",), ())
    assert said("st.shared.u32 [%r3], %r0;\n" + LOAD + LOOKS[use]) == ("proved", (), ())


@pytest.mark.parametrize("use", MAY_NOT_LOOK)
def test_what_may_not_be_looked_at_is_named(use: str) -> None:
    line = HEAD.count("\n") + 1
    assert said(LOAD + MAY_NOT_LOOK[use]) == ("proved", (), (f"if what is read at line {line} was written",))
    assert said("st.shared.u32 [%r3], %r0;\n" + LOAD + MAY_NOT_LOOK[use]) == ("proved", (), ())


def test_a_copy_reads_what_was_written() -> None:
    copy = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [table], 128;"
    wait = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    one = f"setp.eq.u32 %p1, %r1, 0; @!%p1 bra L; {copy} {wait} L: ret;"
    assert said(one) == ("fault", ("slot read before full",), ())
    assert said(f"st.shared.u32 [%r3], %r0; fence.proxy.async; bar.sync 0; {one}") == ("proved", (), ())


def test_memory_that_a_pointer_may_lead_to_may_be_written_by_it() -> None:
    """Which memory a generic pointer from memory names is not known."""
    line = HEAD.count("\n") + 2
    store = "ld.global.u64 %rd2, [%rd1]; st.u32 [%rd2], %r0;\n"
    assert said(store + LOAD + LOOKS["stores it"])[::2] == ("proved", (f"if what is read at line {line} was written",))


# ------------------------------------------------------------------------------------------------- unrolled rings

RING = """\
@kernel(threads=64)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var bars = unsafe_stack_allocation[4, SharedMemBarrier, address_space=.SHARED]()
    var tile = unsafe_stack_allocation[64, Float32, address_space=.SHARED, alignment=128]()
    if thread_idx.x == 0:
        comptime for i in range(4):
            bars[unsafe_offset=i].init(32)
    barrier()
    var lane = Int32(thread_idx.x) % 32
    if thread_idx.x < 32:
        for t in range(n):
            comptime for i in range({turns}):
                bars[unsafe_offset=2 + i % 2].wait(UInt32(1 - i // 2))
                tile[unsafe_offset=i % 2 * 32 + lane] = src[unsafe_offset=t * 32 + lane]
                _ = bars[unsafe_offset=i % 2].arrive()
    else:
        for t in range(n):
            comptime for i in range({turns}):
                bars[unsafe_offset=i % 2].wait(UInt32(i // 2))
                res[unsafe_offset=t * 32 + lane] = tile[unsafe_offset=i % 2 * 32 + lane]
                _ = bars[unsafe_offset=2 + i % 2].arrive()
"""


@pytest.mark.parametrize("verdict_of", [verdict, verdict_of_ptx])
def test_an_unrolled_ring_reads_what_is_new(verdict_of) -> None:
    """Three turns of two stages: of the second stage the same phase is waited for in the next turn, and no new one."""
    (again,) = verdict_of(RING.format(turns=3)).assumptions
    assert again.startswith("if what is read again at line") and again.endswith("need not have been written since")
    found = verdict_of(RING.format(turns=4))
    assert (found.verdict, found.assumptions) == ("proved", ())
