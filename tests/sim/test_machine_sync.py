"""Barriers of CTAs and clusters, registers that move, printf and what else threads do with the machine."""

from __future__ import annotations

import numpy as np
import pytest
from sim_kernels import INDEX, kernel, run

from ptxdsl.registers import registers_at_launch

THREE_ROLES = (
    INDEX + "setp.ge.u32 %p1, %r1, 32; @%p1 bra B; {} ret; B: setp.ge.u32 %p1, %r1, 64; @%p1 bra C; {} ret; C: {} ret;"
)


def roles(*bodies: str) -> str:
    """A kernel of three warps, each with its own code."""
    return kernel(THREE_ROLES.format(*bodies), "out:u64")


def test_a_named_barrier_joins_the_warps_that_its_count_says() -> None:
    # the third warp ends without it
    text = roles("bar.sync 1, 64; st.global.u32 [%rd1], 1;", "bar.sync 1, 64; st.global.u32 [%rd1], 2;", "")
    out = np.zeros(96, np.uint32)
    assert run(text, out, block=96).finished
    assert out.tolist() == [1] * 32 + [2] * 32 + [0] * 32


@pytest.mark.parametrize("schedule", ["round-robin", "slow:warp0", "slow:warp1"])
def test_arrive_does_not_wait_and_sync_does(schedule: str) -> None:
    # warp 0 publishes a value and arrives; warp 1 waits for it
    text = roles(
        "st.volatile.global.u32 [$out], 42; bar.arrive 3, 64;",
        "bar.sync 3, 64; ld.volatile.global.u32 %r2, [$out]; st.global.u32 [%rd1], %r2;",
        "",
    )
    out = np.zeros(96, np.uint32)
    assert run(text, out, block=96, schedule=schedule).finished
    assert (out[32:64] == 42).all()


def test_threads_of_a_divergent_warp_count_for_themselves() -> None:
    # not .aligned: half of warp 0 and half of warp 1 are 32 threads
    body = (
        INDEX
        + """
    and.b32 %r2, %r1, 31; setp.lt.u32 %p1, %r2, 16; @%p1 bra HALF; ret;
    HALF: barrier.sync 2, 32; st.global.u32 [%rd1], 1; ret;
    """
    )
    out = np.zeros(64, np.uint32)
    assert run(kernel(body, "out:u64"), out, block=64).finished
    assert out.tolist() == ([1] * 16 + [0] * 16) * 2


def test_reductions_count_and_combine_predicates() -> None:
    body = (
        INDEX
        + """
    setp.lt.u32 %p1, %r1, 40; bar.red.popc.u32 %r4, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 1, !%p1;
    selp.u32 %r5, 1000, 0, %p2; selp.u32 %r6, 100, 0, %p3; add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6;
    st.global.u32 [%rd1], %r4; ret;
    """
    )
    out = np.zeros(64, np.uint32)
    assert run(kernel(body, "out:u64"), out, block=64).finished
    assert (out == 140).all()  # 40 threads said yes, not all, and some said no


@pytest.mark.parametrize(
    ("bodies", "words"),
    [
        (("bar.sync 16;", "", ""), "names barrier 16; a CTA has barriers 0 to 15"),
        (("bar.sync 1, 48;", "", ""), "on barrier 1 for 48 threads: the count must be a multiple of 32"),
        (("bar.sync 1, 128;", "", ""), "the CTA has 96 threads"),
        (
            ("bar.sync 1, 64;", "bar.sync 1, 96;", ""),
            "for 96 threads, while others have arrived on it for 64 threads at",
        ),
        (("bar.sync 1, 64;", "bar.sync 1;", ""), "for all threads, while others have arrived on it for 64 threads at"),
    ],
)
def test_misuse_of_a_named_barrier(bodies: tuple[str, str, str], words: str) -> None:
    report = run(roles(*bodies), np.zeros(96, np.uint32), block=96)
    (found,) = report.diagnostics
    assert report.status == "fault" and found.code == "E1116" and words in found.message


# Clusters

NEXT_RANK = "mov.u32 %r2, %cluster_ctarank; add.u32 %r2, %r2, 1; mov.u32 %r3, %cluster_nctarank; rem.u32 %r2, %r2, %r3;"
SHARED = ".shared .align 8 .b8 s[8];"


def test_a_cluster_reads_the_neighbours_shared_memory() -> None:
    body = (
        INDEX
        + NEXT_RANK
        + """
    mov.u32 %r4, s; mov.u32 %r5, %ctaid.x; st.shared.u32 [%r4], %r5;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mapa.shared::cluster.u32 %r6, %r4, %r2; ld.shared::cluster.u32 %r7, [%r6]; st.global.u32 [%rd1], %r7;
    barrier.cluster.arrive; barrier.cluster.wait; ret;
    """
    )
    out = np.zeros((8, 32), np.uint32)
    assert run(kernel(body, "out:u64", declarations=SHARED), out, grid=8, cluster=4).finished
    assert out[:, 0].tolist() == [1, 2, 3, 0, 5, 6, 7, 4]


def test_reading_from_a_cta_that_has_exited_is_a_fault() -> None:
    body = """
    mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 1; @%p1 ret;
    barrier.cluster.arrive; barrier.cluster.wait;
    mov.u32 %r4, s; mapa.shared::cluster.u32 %r6, %r4, 1; ld.shared::cluster.u32 %r7, [%r6]; ret;
    """
    report = run(kernel(body, declarations=SHARED), grid=2, cluster=2)
    (found,) = report.diagnostics
    assert found.code == "E1120"
    assert "access to the shared memory of the CTA of rank 1, whose threads have exited" in found.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("barrier.cluster.wait; ret;", "barrier.cluster.wait without a barrier.cluster.arrive before it"),
        ("barrier.cluster.arrive; barrier.cluster.arrive; ret;", "a second barrier.cluster.arrive without"),
    ],
)
def test_misuse_of_a_cluster_barrier(body: str, words: str) -> None:
    (found,) = run(kernel(body), grid=2, cluster=2).diagnostics
    assert found.code == "E1117" and words in found.message


# Registers


def moving(first: str, second: str) -> str:
    """Two warpgroups of a kernel for 256 threads, all of an SM: of 65536 / 256 = 256 registers per thread ptxas gives
    it as many as are asked for."""
    body = f"mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 128; @%p1 bra B; {first} ret; B: {second} ret;"
    return kernel(body, directives=".maxntid 256, 1, 1 .minnctapersm 1")


def inc(count: int) -> str:
    return f"setmaxnreg.inc.sync.aligned.u32 {count};"


def dec(count: int) -> str:
    return f"setmaxnreg.dec.sync.aligned.u32 {count};"


@pytest.mark.parametrize("schedule", ["round-robin", "slow:warps4-7"])
def test_registers_move_from_one_warpgroup_to_the_other(schedule: str) -> None:
    # of 240 each, both go down to 104; the first can take what the second has given up
    text = moving(dec(104) + inc(240), dec(104) + "bar.sync 1, 128;")
    assert run(text, block=256, schedule=schedule).finished


def test_registers_that_nobody_gives_up_are_waited_for_in_vain() -> None:
    # of 65536 / 384 = 170 registers, in steps of 8, 168 each; the second warpgroup keeps its own
    text = moving(inc(240), "").replace(".maxntid 256", ".maxntid 384")
    report = run(text, block=256)
    (found,) = report.diagnostics
    assert report.status == "deadlock"
    assert "wait for registers (setmaxnreg.inc): 2304 more for this warp, 0 are free" in found.message


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (dec(100), "", "24 to 256 in steps of 8 are possible"),
        (inc(104), inc(240), "but the warp has 240 a thread"),
        (dec(104) + dec(112), "", "but the warp has 104 a thread"),
    ],
)
def test_misuse_of_setmaxnreg(first: str, second: str, words: str) -> None:
    (found,) = run(moving(first, second), block=256).diagnostics
    assert found.code == "E1118" and words in found.message


def test_registers_stay_where_they_are_if_nobody_says_how_many_a_block_has() -> None:
    """ptxas says "'setmaxnreg' ignored; unable to determine register count at entry"."""
    text = moving(inc(240), "").replace(".minnctapersm 1", "")
    assert run(text, block=256).finished


# What ptxas 13.0 and 13.5 say a kernel uses that asks for 256 registers: of threads, blocks on an SM, and .maxnreg.
AT_LAUNCH = [
    ((128, 1, None), 255), ((160, 1, None), 255), ((288, 1, None), 168), ((352, 1, None), 168), ((384, 1, None), 168),
    ((416, 1, None), 128), ((512, 1, None), 128), ((640, 1, None), 96), ((1024, 1, None), 64), ((256, 2, None), 128),
    ((288, 2, None), 96), ((384, 2, None), 80), ((96, 4, None), 168), ((33, 8, None), 128), ((384, 1, 128), 128),
    ((384, 1, 180), 168), ((None, None, 168), 168), ((384, None, None), None),
]  # fmt: skip


@pytest.mark.parametrize(("said", "used"), AT_LAUNCH, ids=str)
def test_registers_at_the_launch(said: tuple[int | None, ...], used: int | None) -> None:
    threads, blocks, limit = said
    found = registers_at_launch(None if threads is None else (threads, 1, 1), blocks, limit)
    assert used == (None if found is None else min(found, 255))


def test_the_warps_of_a_warpgroup_ask_for_the_same() -> None:
    body = f"mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bra A; {dec(104)} ret; A: {dec(96)} ret;"
    (found,) = run(kernel(body, directives=".maxntid 128, 1, 1 .minnctapersm 1"), block=128).diagnostics
    assert found.code == "E1118" and "of the same warpgroup asks for" in found.message


def test_all_warps_of_a_warpgroup_ask() -> None:
    body = f"mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 64; @%p1 bra A; ret; A: {dec(96)} ret;"
    (found,) = run(kernel(body, directives=".maxntid 128, 1, 1 .minnctapersm 1"), block=128).diagnostics
    assert found.code == "E1118" and "by warp 0, but not by warp 2 of its warpgroup" in found.message


# printf, assert, malloc


PRINT = """
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 1 .b8 format[13] = {108, 97, 110, 101, 32, 37, 100, 32, 37, 46, 49, 102, 10};
"""


def test_printf_prints_lane_by_lane() -> None:
    body = """
    .local .align 8 .b8 buffer[16];
    mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 1; @%p1 ret;
    mov.u64 %rd1, buffer; cvta.local.u64 %rd2, %rd1; st.local.u32 [%rd1], %r1;
    st.local.f64 [%rd1+8], 0d3FF8000000000000;
    mov.u64 %rd3, format; cvta.global.u64 %rd4, %rd3;
    { .param .b64 p0; .param .b64 p1; .param .b32 q; st.param.b64 [p0], %rd4; st.param.b64 [p1], %rd2;
      call.uni (q), vprintf, (p0, p1); ld.param.b32 %r2, [q]; }
    ret;
    """
    declarations = PRINT.replace("format[13]", "format[14]").replace("102, 10}", "102, 10, 0}")
    printed: list[str] = []
    report = run(kernel(body, declarations=declarations), stdout=printed.append)
    assert report.finished and report.output == "lane 0 1.5\nlane 1 1.5\n" == "".join(printed)


def test_malloc_and_free() -> None:
    declarations = """
    .extern .func (.param .b64 r) malloc (.param .b64 n);
    .extern .func free (.param .b64 p);
    """
    body = """
    { .param .b64 n; .param .b64 r; st.param.b64 [n], 64; call.uni (r), malloc, (n); ld.param.b64 %rd1, [r]; }
    mov.u32 %r1, %tid.x; st.u32 [%rd1+60], %r1; ld.u32 %r2, [%rd1+60];
    { .param .b64 p; st.param.b64 [p], %rd1; call.uni free, (p); }
    mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, $out; st.global.u32 [%rd2], %r2;
    setp.ne.u32 %p1, %r1, 3; @%p1 ret;
    { .param .b64 p; st.param.b64 [p], %rd1; call.uni free, (p); }
    ret;
    """
    out = np.zeros(32, np.uint32)
    report = run(kernel(body, "out:u64", declarations=declarations), out)
    assert (out == np.arange(32)).all()
    (found,) = report.diagnostics
    assert found.code == "E1127" and "which malloc did not give" in found.message
