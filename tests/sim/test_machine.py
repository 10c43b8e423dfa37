"""CTAs, warps and lanes: what runs, what waits for what, and what ends a run."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sim_kernels import INDEX, kernel, run

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.sim.launch import Limits, Report
from ptxdsl.sim.limits import Progress


def only(report: Report) -> Diagnostic:
    (diagnostic,) = report.diagnostics
    return diagnostic


# CTAs


def test_every_thread_of_a_grid_runs_once() -> None:
    out = np.zeros(1000, np.uint32)
    text = kernel(INDEX + "setp.ge.u32 %p1, %r1, $n; @%p1 ret; red.global.add.u32 [%rd1], %r1; ret;", "out:u64 n:u32")
    report = run(text, out, 1000, grid=8, block=128)
    assert report.finished and (out == np.arange(1000)).all()
    assert report.statistics.ctas == 8


def test_indices_of_three_dimensions() -> None:
    out = np.zeros((4, 3, 2, 2, 3, 4), np.uint32)  # ctaid z y x, tid z y x
    body = """
    mov.u32 %r1, %ctaid.z; mov.u32 %r2, %ctaid.y; mad.lo.u32 %r1, %r1, 3, %r2;
    mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r1, 2, %r2; mov.u32 %r2, %tid.z; mad.lo.u32 %r1, %r1, 2, %r2;
    mov.u32 %r2, %tid.y; mad.lo.u32 %r1, %r1, 3, %r2; mov.u32 %r2, %tid.x; mad.lo.u32 %r1, %r1, 4, %r2;
    mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, $out; st.global.u32 [%rd1], %r1; ret;
    """
    assert run(kernel(body, "out:u64"), out, grid=(2, 3, 4), block=(4, 3, 2)).finished
    assert (out.ravel() == np.arange(out.size)).all()


def test_a_large_grid_needs_the_memory_of_few_ctas() -> None:
    out = np.zeros(10_000, np.uint32)
    body = """
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, big; add.u32 %r2, %r2, 40000; st.shared.u32 [%r2], %r1;
    ld.shared.u32 %r3, [%r2]; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, $out; st.global.u32 [%rd1], %r3; ret;
    """
    text = kernel(body, "out:u64", declarations=".shared .align 4 .b8 big[48000];")
    report = run(text, out, grid=10_000, limits=Limits(memory=8 << 20))
    assert report.finished and (out == np.arange(10_000)).all()


GRID_BARRIER = kernel(
    """
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %tid.x;
    setp.ne.u32 %p1, %r3, 0; @%p1 bra JOIN;
    atom.global.add.u32 %r4, [$out], 1;
    SPIN: ld.acquire.gpu.global.u32 %r4, [$out]; setp.lt.u32 %p2, %r4, %r2; @%p2 bra SPIN;
    JOIN: bar.sync 0;
    ld.global.u32 %r4, [$out]; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, $out; st.global.u32 [%rd1+4], %r4; ret;
    """,
    "out:u64",
)


def test_ctas_that_spin_on_one_another_are_all_started() -> None:
    out = np.zeros(101, np.uint32)
    assert run(GRID_BARRIER, out, grid=100, block=64).finished
    assert (out == 100).all()


def test_a_cta_may_wait_for_a_later_one() -> None:
    # CTA i waits for the flag of CTA i + 1 and raises its own
    body = """
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; add.u32 %r3, %r1, 1;
    mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, $out; setp.eq.u32 %p1, %r3, %r2; @%p1 bra GO;
    SPIN: ld.volatile.global.u32 %r4, [%rd1+4]; setp.eq.u32 %p2, %r4, 0; @%p2 bra SPIN;
    GO: st.volatile.global.u32 [%rd1], %r3; ret;
    """
    out = np.zeros(300, np.uint32)
    assert run(kernel(body, "out:u64"), out, grid=300).finished
    assert (out == np.arange(1, 301)).all()


# Lanes


def test_a_lane_may_spin_on_another_of_its_warp() -> None:
    body = """
    mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra OTHER;
    SPIN: ld.volatile.global.u32 %r2, [$out]; setp.eq.u32 %p2, %r2, 0; @%p2 bra SPIN;
    st.global.u32 [$out+4], %r2; ret;
    OTHER: st.volatile.global.u32 [$out], 7; ret;
    """
    out = np.zeros(2, np.uint32)
    assert run(kernel(body, "out:u64"), out).finished
    assert out.tolist() == [7, 7]


def test_lanes_take_a_lock_one_after_another() -> None:
    body = """
    TRY: atom.global.cas.b32 %r1, [$out], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TRY;
    ld.volatile.global.u32 %r2, [$out+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [$out+4], %r2;
    atom.global.exch.b32 %r3, [$out], 0; ret;
    """
    out = np.zeros(2, np.uint32)
    assert run(kernel(body, "out:u64"), out, grid=2, block=64).finished
    assert out.tolist() == [0, 128]


LATE_LANES = "setp.ge.u32 %p1, %r1, 16; mov.u32 %r2, 1; @%p1 bra LATE; HERE: {} ret; LATE: mov.u32 %r2, 5; bra HERE;"


def test_an_aligned_barrier_waits_for_the_rest_of_the_warp() -> None:
    out = np.zeros(32, np.uint32)
    text = kernel(INDEX + LATE_LANES.format("bar.sync 0; st.global.u32 [%rd1], %r2;"), "out:u64")
    report = run(text, out)
    assert report.finished and out.tolist() == [1] * 16 + [5] * 16


def test_a_shuffle_waits_for_the_lanes_that_it_names() -> None:
    out = np.zeros(32, np.uint32)
    shuffle = "shfl.sync.bfly.b32 %r3, %r2, 31, 31, 0xffffffff; st.global.u32 [%rd1], %r3;"
    assert run(kernel(INDEX + LATE_LANES.format(shuffle), "out:u64"), out).finished
    assert out.tolist() == [5] * 16 + [1] * 16


SHUFFLE = """
mov.u32 %r1, %laneid; setp.ge.u32 %p1, %r1, {first}; @%p1 {else_do}; mov.u32 %r3, {mask};
shfl.sync.{mode} %r2|%p2, %r1, {by}, {clamp}, %r3; END: ret;
"""


@pytest.mark.parametrize(
    ("changes", "lanes"),
    [
        ({"mode": "down.b32", "by": 16, "first": 20}, "lanes 4-15"),  # of 20 that are there, these read lanes 20 to 31
        ({"mode": "down.b32", "by": 16, "clamp": 19, "first": 20}, None),  # nothing behind lane 19 is read
        ({"mode": "down.b32", "by": 16, "clamp": 19, "first": 20, "mask": "0xfffff"}, None),
        ({"mode": "bfly.b32", "by": 16, "first": 16, "mask": "0xffff", "else_do": "bra END"}, "lanes 0-15"),
        ({"mode": "bfly.b32", "by": 8, "first": 16, "mask": "0xffff", "else_do": "bra END"}, None),
        ({"mode": "idx.b32", "by": 31, "first": 31}, "lanes 0-30"),
        ({"mode": "up.b32", "by": 1, "clamp": 0, "first": 9}, None),
        ({"mode": "up.b32", "by": 1, "clamp": 0, "first": 32}, None),
    ],
)
def test_a_shuffle_from_lanes_that_do_not_take_part_is_a_warning(changes: dict[str, Any], lanes: str | None) -> None:
    """PTX ISA, "shfl.sync": the mask may name lanes that have exited, which are not waited for, but what is read of a
    lane that is not active or not in the mask is undefined."""
    text = SHUFFLE.format(**{"clamp": 31, "mask": -1, "else_do": "ret"} | changes)
    report = run(kernel(text))
    assert report.finished
    if lanes is None:
        assert not report.diagnostics
        return
    (found,) = report.diagnostics
    assert (found.code, found.severity) == ("W1197", "warning")
    assert found.message.startswith(f"{lanes} of warp 0 get the value of a lane that does not take part")


@pytest.mark.parametrize("instruction", ["vote.sync.any.pred %p2, %p1, -1;", "redux.sync.add.u32 %r2, %r1, -1;"])
def test_votes_and_reductions_are_over_the_lanes_that_are_there(instruction: str) -> None:
    """PTX ISA: they wait for all non-exited threads of the mask, and are over these."""
    text = f"mov.u32 %r1, %laneid; setp.ge.u32 %p1, %r1, 20; @%p1 ret; {instruction} ret;"
    report = run(kernel(text))
    assert report.finished and not report.diagnostics


def test_lanes_blocked_in_a_barrier_instruction_leave_others_running() -> None:
    # lanes 0-15 wait on the mbarrier, lanes 16-31 of the same warp arrive on it later
    body = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, bar; setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [%r2], 16;
    bar.warp.sync 0xffffffff;
    setp.ge.u32 %p2, %r1, 16; @%p2 bra ARRIVE;
    WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0; @!%p3 bra WAIT;
    st.global.u32 [$out], 1; ret;
    ARRIVE: mbarrier.arrive.shared.b64 %rd2, [%r2]; ret;
    """
    out = np.zeros(1, np.uint32)
    assert run(kernel(body, "out:u64", declarations=".shared .align 8 .b8 bar[8];"), out).finished
    assert out[0] == 1


def test_lanes_at_different_barriers_of_a_warp_are_a_fault() -> None:
    body = """
    mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16; @%p1 bra A;
    bar.sync 0; ret;
    A: bar.sync 0; ret;
    """
    report = run(kernel(body, "out:u64"), np.zeros(1, np.uint32))
    found = only(report)
    assert report.status == "fault" and found.code == "E1180"
    assert found.message == (
        "'bar.sync' needs all lanes of its warp, but lanes 0-15 will never come "
        "(CTA (0, 0, 0), warp 0, lanes 16-31 of kernel 'k')"
    )
    ((span, label),) = found.notes
    assert label == "lanes 0-15 wait at this 'bar.sync'" and span.text == "A: bar.sync 0; ret;"


def test_exited_warps_and_lanes_do_not_hold_a_barrier() -> None:
    out = np.zeros(96, np.uint32)
    text = kernel(INDEX + "setp.ge.u32 %p1, %r1, 40; @%p1 ret; bar.sync 0; st.global.u32 [%rd1], 9; ret;", "out:u64")
    assert run(text, out, block=96).finished
    assert (out[:40] == 9).all() and not out[40:].any()


# Faults


@pytest.mark.parametrize(
    ("access", "code", "words"),
    [
        (
            "st.global.u32 [$out+400], %r1;",
            "E1120",
            "4 bytes at address 0x700000010190 lie just past the end of argument 0",
        ),
        ("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [$out+4];", "E1121", "is not a multiple of the 16 bytes"),
        ("ld.u32 %r1, [8];", "E1120", "a null pointer plus 8"),
        ("st.shared.u32 [s+64], %r1;", "E1120", "the CTA's shared memory ends at 0x440"),
        ("ld.shared.u32 %r1, [0];", "E1120", "shared memory starts at 0x400"),
    ],
)
def test_an_access_that_memory_refuses(access: str, code: str, words: str) -> None:
    text = kernel(
        "mov.u32 %r9, %tid.x; setp.eq.u32 %p1, %r9, 35; @%p1 bra BAD; ret; BAD: " + access + " ret;",
        "out:u64",
        declarations=".shared .align 16 .b8 s[64];",
    )
    report = run(text, np.zeros(100, np.uint32), block=64)
    found = only(report)
    assert report.status == "fault" and found.code == code
    assert words in found.message and found.message.endswith("(CTA (0, 0, 0), warp 1, lane 3 of kernel 'k')")
    assert found.span is not None and access.split(" ")[0] in found.span.text


def test_a_read_only_array_is_not_written() -> None:
    out = np.zeros(1, np.uint32)
    out.flags.writeable = False
    report = run(kernel("st.global.u32 [$out], 1; ret;", "out:u64"), out)
    assert only(report).code == "E1122"
    assert "write to argument 0, which is read-only" in only(report).message


def test_a_trap_names_its_lanes() -> None:
    report = run(kernel("mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 5; @%p1 trap; ret;"))
    assert report.status == "fault"
    assert only(report).message == "'trap' executed (CTA (0, 0, 0), warp 0, lane 5 of kernel 'k')"


# Limits


ENDLESS = kernel("mov.u32 %r1, 0; LOOP: mad.lo.u32 %r1, %r1, 5, 2; setp.ne.u32 %p1, %r1, 1; @%p1 bra LOOP;")


def test_the_step_limit_ends_a_loop_that_computes_for_ever() -> None:
    report = run(ENDLESS, block=64, limits=Limits(steps=1_000_000))
    found = only(report)
    assert report.status == "limit" and found.code == "E1185"
    assert [label for _, label in found.notes] == ["warp 0 of CTA (0, 0, 0) and 1 other warp go round here"]
    assert found.span is not None and "mad.lo.u32" in found.span.text


STORES = """
mov.u32 %r1, 0;
OUTER:
st.global.u32 [$out], %r1;
INNER:
st.volatile.global.u32 [$out], 5;
ld.volatile.global.u32 %r2, [$out];
setp.eq.u32 %p1, %r2, 7;
@%p1 bra INNER;
bra OUTER;
"""


def test_the_step_limit_names_the_lines_of_a_loop_that_stores_for_ever() -> None:
    text = kernel(STORES, "out:u64")
    report = run(text, np.zeros(1, np.uint32), block=32, limits=Limits(steps=1_000_000))
    found = only(report)
    lines = [number for number, line in enumerate(text.split("\n"), 1) if line in ("OUTER:", "bra OUTER;")]
    first, last = lines[0] + 1, lines[1]
    label = f"warp 0 of CTA (0, 0, 0) goes round here, in lines {first} to {last}"
    assert [words for _, words in found.notes] == [label]
    assert found.help is not None and "--steps" in found.help


def test_interrupting_tells_where_the_warps_are() -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    report = run(ENDLESS, block=32, progress=interrupt)
    assert report.status == "interrupted" and only(report).code == "E1187"
    assert re.match(r"interrupted after [\d,]+ thread-instructions; 0 of 1 CTAs were finished", only(report).message)


def test_the_memory_limit_leaves_a_deadlock_of_those_that_fit() -> None:
    # each CTA has a window of 48 KB; 100 of them wait for one another
    text = GRID_BARRIER.replace(".visible", ".shared .align 4 .b8 big[48000];\n.visible", 1)
    text = text.replace("bar.sync 0;", "mov.u32 %r5, big; bar.sync 0;")
    report = run(text, np.zeros(101, np.uint32), grid=100, block=32, limits=Limits(memory=2 << 20))
    assert report.status == "deadlock"
    assert re.search(r"\d+ of 100 CTAs have not been started", only(report).help or "")


def test_a_cta_larger_than_the_memory_limit() -> None:
    report = run(GRID_BARRIER, np.zeros(2, np.uint32), limits=Limits(memory=100))
    assert report.status == "limit" and only(report).code == "E1186"


# Time


def test_progress_ends_with_all_ctas() -> None:
    seen: list[Progress] = []
    assert run(GRID_BARRIER, np.zeros(11, np.uint32), grid=10, progress=seen.append).finished
    assert (seen[-1].ctas, seen[-1].grid) == (10, 10)


def test_the_clock_runs_on_while_a_kernel_waits_for_it() -> None:
    body = """
    mov.u64 %rd1, %clock64;
    LOOP: mov.u64 %rd2, %clock64; sub.u64 %rd3, %rd2, %rd1; setp.lt.u64 %p1, %rd3, 50000000000; @%p1 bra LOOP;
    st.global.u64 [$out], %rd3; ret;
    """
    out = np.zeros(1, np.uint64)
    report = run(kernel(body, "out:u64"), out)
    assert report.finished and out[0] >= 50_000_000_000
    assert report.statistics.thread_instructions < 1_000_000


def test_every_handler_is_found_by_its_opcode():
    """In a fresh process, where nothing has been imported but what an opcode asks for."""
    code = """
from ptxdsl.sim import families
from ptxdsl.sim import host
for opcode in families.FAMILIES:
    families.load(opcode)
known = dict(host.HANDLERS)
assert len(known) > 50
for prefix in known:
    first, _, rest = prefix.partition(".")
    names = families.FAMILIES.get(first, ()) + families.FAMILIES.get(f"{first}.{rest.partition('.')[0]}", ())
    assert known[prefix].__module__.removeprefix("ptxdsl.sim.") in names, prefix
"""
    subprocess.run([sys.executable, "-c", code], check=True)
