"""Deadlocks: found at once, and told with who waits where for what and why nobody comes."""

from __future__ import annotations

import numpy as np
import pytest
from sim_kernels import kernel, run

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.sim.launch import Report, simulate
from ptxdsl.sim.limits import Limits
from ptxdsl.sim.machine import endless
from ptxdsl.source import Source


def only(report: Report) -> Diagnostic:
    (diagnostic,) = report.diagnostics
    return diagnostic


# Kernels of the language: diagnostics stand at its lines

RING = """
@kernel
def ring(n: Int32, m: Int32, count: Int32):
    var bars = unsafe_stack_allocation[2, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    if thread_idx.x == 0:
        bars[0].init(32)
        bars[1].init(count)
    barrier()
    if thread_idx.x < 32:
        var p = RolePipeline[1, True](bars, bars + 1)
        for i in range(n):
            p.acquire()
            p.commit()
    else:
        var c = RolePipeline[1, False](bars, bars + 1)
        for i in range(m):
            c.wait()
            c.release()
"""


def ring(n: int, m: int, count: int = 32) -> Report:
    made = compile_source(Source("ring.pdsl", RING), options=Options(arch="sm_90a"))
    return simulate(
        made.ptx, grid=1, block=64, arguments=[n, m, count], line_map=made.line_map, shared_names=made.shared_names
    )


def lines(diagnostic: Diagnostic) -> list[tuple[int, str]]:
    """Of each note the line of its span and its words."""
    return [(span.line, label) for span, label in diagnostic.notes]


def test_a_ring_that_is_served_ends() -> None:
    assert ring(5, 5).finished


def test_a_consumer_that_waits_for_one_commit_too_many() -> None:
    found = only(ring(2, 3))
    assert found.code == "E1190"
    assert found.message == (
        "deadlock in kernel 'ring': warp 1 waits for mbarrier bars[0] (producer_mbar of stage 0), parity 0: phase 2, "
        "32 of 32 arrivals pending"
    )
    assert found.span is not None and found.span.text == "c.wait()"
    assert lines(found) == [(13, "warp 0 came to mbarrier bars[0] here before, not in phase 2; it has exited")]
    assert found.help is None


def test_two_roles_that_wait_for_each_other() -> None:
    found = only(ring(3, 3, count=64))
    assert "warp 0 waits for mbarrier bars[1] (consumer_mbar of stage 0), parity 0: phase 0, 32 of 64" in found.message
    assert lines(found) == [
        (7, "bars[1] is initialised here with 64 arrivals per phase"),
        (18, "warp 1 arrived on bars[1] here in phase 0 (32 arrivals); now it waits for mbarrier bars[0] in line 17"),
        (17, "warp 1 waits here for mbarrier bars[0] (producer_mbar of stage 0), parity 1: phase 1, 32 of 32 arrivals "
             "pending"),
        (13, "warp 0 came to mbarrier bars[0] here before, not in phase 1; now it waits for mbarrier bars[1] in "
             "line 12"),
    ]  # fmt: skip
    assert found.help == (
        "bars[1] counts 64 arrivals per phase and gets 32: initialise it with the number of arrivals that come, or let "
        "the missing ones come"
    )


CROSSED = """
@kernel
def crossed():
    var bars = unsafe_stack_allocation[2, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    if thread_idx.x < 2:
        bars[unsafe_offset=thread_idx.x].init(32)
    barrier()
    if thread_idx.x < 32:
        bars[0].wait(0)
        _ = bars[1].arrive()
    else:
        bars[1].wait(0)
        _ = bars[0].arrive()
"""


def test_two_roles_that_wait_for_each_other_first() -> None:
    made = compile_source(Source("crossed.pdsl", CROSSED), options=Options(arch="sm_90a"))
    found = only(simulate(made.ptx, grid=1, block=64, line_map=made.line_map, shared_names=made.shared_names))
    assert found.message == (
        "deadlock in kernel 'crossed': warp 0 waits for mbarrier bars[0], parity 0: phase 0, 32 of 32 arrivals "
        "pending; no thread has come to it so far"
    )
    assert lines(found) == [
        (10, "no thread has executed this arrival so far"),
        (13, "no thread has executed this arrival so far"),
        (12, "warp 1 waits here for mbarrier bars[1], parity 0: phase 0, 32 of 32 arrivals pending; no thread has come "
             "to it so far"),
    ]  # fmt: skip
    assert found.help == (
        "the cycle: warp 0 waits for warp 1 at mbarrier bars[0]; warp 1 waits for warp 0 at mbarrier bars[1]"
    )


def test_nobody_has_come_and_nobody_is_left() -> None:
    found = only(ring(0, 1))
    assert found.message.endswith("no thread has come to it so far, and nobody is left who could: warp 0 has exited")
    assert lines(found) == [(13, "no thread has executed this arrival so far")]  # not the release in line 18


LATE = """
@kernel
def late():
    var bar = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    if thread_idx.x == 0:
        bar[].init(32)
    barrier()
    if thread_idx.x < 32:
        for i in range(2):
            _ = bar[].arrive()
            bar[].wait(UInt32(i) & 1)
        barrier()
    else:
        barrier()
        bar[].wait(0)
"""


def test_a_wait_that_comes_two_phases_late() -> None:
    made = compile_source(Source("late.pdsl", LATE), options=Options(arch="sm_90a"))
    found = only(simulate(made.ptx, grid=1, block=64, line_map=made.line_map, shared_names=made.shared_names))
    assert "warp 1 waits for mbarrier bar, parity 0: phase 2, 32 of 32 arrivals pending" in found.message
    assert found.help == (
        "phases 0 to 1 of bar were completed before warp 1 waited for the first of them: now its wait means phase 2; a "
        "stage was released, or a phase completed, without it"
    )


@pytest.mark.parametrize("schedule", ["random:1", "random:2", "slow:warp0", "slow:warp1"])
def test_a_deadlock_does_not_depend_on_the_schedule(schedule: str) -> None:
    made = compile_source(Source("ring.pdsl", RING), options=Options(arch="sm_90a"))
    report = simulate(made.ptx, grid=1, block=64, arguments=[3, 3, 64], schedule=schedule)
    assert report.status == "deadlock" and "32 of 64 arrivals pending" in only(report).message


# Barriers


def test_a_barrier_with_a_warp_that_waits_elsewhere() -> None:
    body = """
    mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 64; @%p1 bra B;
    bar.sync 1, 96; ret;
    B: bar.sync 2, 96; ret;
    """
    found = only(run(kernel(body), block=96))
    # the odd one out comes first
    assert found.message == (
        "deadlock in kernel 'k': warp 2 waits for bar.sync 2: 32 of 96 threads have arrived; warps 0-1 have not come"
    )
    assert [label for _, label in found.notes] == [
        "warps 0-1 wait here for bar.sync 1: 64 of 96 threads have arrived; warp 2 has not come"
    ]
    assert found.help == ("the cycle: warp 0 waits for warp 2 at bar.sync 1; warp 2 waits for warp 0 at bar.sync 2")


def test_the_same_in_many_ctas_is_told_once() -> None:
    body = "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 bar.sync 1, 64; @!%p1 bar.sync 2, 64; ret;"
    found = only(run(kernel(body), grid=5, block=64))
    assert "warp 0 of CTA (0, 0, 0) (and the same in 4 more CTAs) wait for bar.sync 2" in found.message


def test_a_cluster_barrier_that_one_warp_does_not_reach() -> None:
    body = """
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r1, %r1, 64, %r2; setp.ge.u32 %p1, %r1, 96; @%p1 bra LOST;
    barrier.cluster.arrive; barrier.cluster.wait; ret;
    LOST: ld.volatile.shared.u32 %r2, [s]; bra LOST;
    """
    found = only(run(kernel(body, declarations=".shared .b32 s;"), grid=2, cluster=2, block=64))
    assert found.message == (
        "deadlock in kernel 'k': warps 0-1 of CTA (0, 0, 0) and warp 0 of CTA (1, 0, 0) wait for cluster barrier: "
        "96 of 128 threads have arrived; warp 1 of CTA (1, 0, 0) has not come"
    )
    assert "warp 1 of CTA (1, 0, 0) waits here for memory" in found.notes[0][1]


# Loops that only look

LOOKS = {
    "volatile load": "LOOP: ld.volatile.global.u32 %r2, [$out]; setp.eq.u32 %p2, %r2, 0; @%p2 bra LOOP; ret;",
    "failing cas": "LOOP: atom.global.cas.b32 %r2, [$out], 1, 2; setp.eq.u32 %p2, %r2, 0; @%p2 bra LOOP; ret;",
    "nanosleep": "LOOP: nanosleep.u32 99; ld.relaxed.gpu.u32 %r2, [$out]; setp.eq.u32 %p2, %r2, 0; @%p2 bra LOOP; ret;",
    "back-off": """
        mov.u32 %r3, 8;
        LOOP: nanosleep.u32 %r3; shl.b32 %r3, %r3, 1; min.u32 %r3, %r3, 1024;
        ld.acquire.gpu.u32 %r2, [$out]; setp.eq.u32 %p2, %r2, 0; @%p2 bra LOOP; ret;""",
    "test_wait": """
        mov.u32 %r3, bar; mov.u32 %r4, %tid.x; setp.eq.u32 %p1, %r4, 0;
        @%p1 mbarrier.init.shared.b64 [%r3], 1; bar.sync 0;
        LOOP: mbarrier.test_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra LOOP; ret;""",
    "counted rounds": """
        mov.u32 %r3, 0;
        LOOP: add.u32 %r3, %r3, 1; ld.relaxed.gpu.u32 %r2, [$out]; setp.eq.u32 %p2, %r2, 0; @%p2 bra LOOP;
        st.global.u32 [$out], %r3; ret;""",
    "shared memory": """
        mov.u32 %r3, 0; st.shared.u32 [bar], %r3;
        LOOP: ld.volatile.shared.u32 %r2, [bar]; setp.eq.u32 %p2, %r2, 0; @%p2 bra LOOP; ret;""",
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_loop_that_only_looks_is_a_deadlock_when_nobody_writes(name: str) -> None:
    text = kernel(LOOKS[name], "out:u64", declarations=".shared .align 8 .b8 bar[8];")
    report = run(text, np.zeros(1, np.uint32), block=64)
    assert report.status == "deadlock"
    assert report.statistics.turns < 100
    what = "mbarrier bar, parity 0" if name == "test_wait" else "memory: a loop that reads the same again and again"
    assert f"warps 0-1 wait for {what}" in only(report).message


def test_the_value_that_a_loop_reads_is_told() -> None:
    looks = LOOKS["volatile load"].replace("0; @%p2", "7; @%p2").replace("[$out]", "[$out+4]")
    report = run(kernel(looks, "out:u64"), np.full(2, 7, np.uint32))
    assert "(byte 4 of argument 0 is 7)" in only(report).message
    looks = LOOKS["shared memory"].replace("%r3, 0;", "%r3, 9;").replace("%r2, 0;", "%r2, 9;")
    text = kernel(looks, "out:u64", declarations=".shared .align 8 .b8 bar[8];")
    assert "(bar is 9)" in only(run(text, np.zeros(1, np.uint32))).message


@pytest.mark.parametrize("body", ["L: bra L;", "mov.u32 %r1, %tid.x; L: setp.lt.u32 %p1, %r1, 64; @%p1 bra L; ret;"])
def test_a_loop_that_does_not_even_look_is_told_as_what_it_is(body: str) -> None:
    report = run(kernel(body), block=64)
    assert "warps 0-1 wait for nothing: a loop that changes nothing has no end" in only(report).message


@pytest.mark.parametrize(
    "name", ["volatile load", "failing cas", "nanosleep", "back-off", "counted rounds", "test_wait"]
)
@pytest.mark.parametrize("schedule", ["round-robin", "slow:warp1"])
def test_a_loop_that_only_looks_goes_on_when_somebody_has_written(name: str, schedule: str) -> None:
    # warp 1 comes late: after a long loop of its own
    head, _, loop = LOOKS[name].partition("LOOP:")
    body = f"""
    mov.u32 %r90, %tid.x; setp.ge.u32 %p9, %r90, 32; {head.replace("$out", "%rd90")} @%p9 bra WRITER;
    LOOP: {loop}
    WRITER: mov.u32 %r91, 5000; W: add.u32 %r91, %r91, -1; setp.ne.u32 %p8, %r91, 0; @%p8 bra W;
    setp.ne.u32 %p9, %r90, 32; @%p9 ret; st.volatile.global.u32 [$out], 3;
    @!%p9 mbarrier.arrive.shared.b64 %rd2, [bar]; ret;
    """
    if name != "test_wait":
        body = body.replace("@!%p9 mbarrier.arrive.shared.b64 %rd2, [bar];", "")
    text = kernel(body, "out:u64", declarations=".shared .align 8 .b8 bar[8];")
    assert run(text, np.zeros(1, np.uint32), block=64, schedule=schedule).finished


def test_a_loop_that_counts_its_tries_is_no_deadlock_before_its_end() -> None:
    body = """
    mov.u32 %r3, 0;
    LOOP: ld.volatile.global.u32 %r2, [$out]; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 20000; @%p1 bra LOOP;
    st.global.u32 [$out], %r3; ret;
    """
    out = np.zeros(1, np.uint32)
    assert run(kernel(body, "out:u64"), out).finished
    assert out[0] == 20000


def test_one_look_in_each_round_of_a_loop_that_counts_is_no_deadlock() -> None:
    """What the inner loop alone decides is the same each time; the outer one counts."""
    body = """
    mov.u32 %r3, bar; mbarrier.init.shared.b64 [%r3], 1; mov.u32 %r5, 0;
    OUTER: mov.u32 %r6, 0;
    INNER: mbarrier.test_wait.parity.shared.b64 %p2, [%r3], 0; add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, 1;
    @%p3 bra INNER;
    add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 50; @%p4 bra OUTER;
    st.global.u32 [$out], %r5; ret;
    """
    body = "mov.u32 %r9, %tid.x; setp.ne.u32 %p9, %r9, 0; @%p9 ret;" + body
    out = np.zeros(1, np.uint32)
    assert run(kernel(body, "out:u64", declarations=".shared .align 8 .b8 bar[8];"), out).finished
    assert out[0] == 50


# Loops that change their registers for ever

ENDLESS = "mov.u32 %r1, 1; L: mad.lo.u32 %r1, %r1, 5, 2; setp.ne.u32 %p1, %r1, 6; @%p1 bra L; ret;"  # it is odd


def test_a_run_that_changes_nothing_for_long_is_a_livelock() -> None:
    ran = [run(kernel(ENDLESS), block=64, limits=Limits(idle_steps=10**7)) for _ in range(2)]
    found = only(ran[0])
    assert (ran[0].status, found.code) == ("limit", "E1188")
    assert "warp 0 of CTA (0, 0, 0) and 1 other warp go round here" in found.notes[0][1]
    first, again = (report.statistics for report in ran)
    assert (first.turns, first.warp_instructions) == (again.turns, again.warp_instructions)


# Lane 0 of each warp takes a lock, looks whether something is done, and gives the lock back.
LOCKED = """
mov.u32 %r1, %laneid; setp.ne.u32 %p1, %r1, 0; @%p1 ret; {first}
TRY: atom.acquire.gpu.global.cas.b32 %r2, [$out], 0, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra TRY;
ld.volatile.global.u32 %r3, [$out+4]; {inside} atom.release.gpu.global.exch.b32 %r4, [$out], 0;
setp.eq.u32 %p3, %r3, 0; @%p3 bra TRY; ret;
"""


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are compared after fewer instructions than usually."""
    monkeypatch.setattr(endless, "_LONG", 10**6)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("block", [32, 64, 1024])
def test_warps_that_take_a_lock_in_turn_for_ever_are_a_livelock(block: int) -> None:
    text = kernel(LOCKED.format(first="", inside=""), "out:u64")
    report = run(text, np.zeros(2, np.uint32), block=block, limits=Limits(steps=10**9))
    found = report.diagnostics[0]
    assert (report.status, found.code) == ("limit", "E1188") and "as they were" in found.message
    assert any("go round here" in words or "goes round here" in words for _, words in found.notes)


@pytest.mark.usefixtures("soon")
def test_warps_that_come_on_are_no_livelock() -> None:
    """Each round counts, in a register that decides when it is done, or in memory."""
    own = "add.u32 %r9, %r9, 1; setp.gt.u32 %p5, %r9, 3000000; @%p5 mov.u32 %r3, 1;"
    memory = "ld.volatile.global.u32 %r9, [$out+8]; add.u32 %r9, %r9, 1; st.volatile.global.u32 [$out+8], %r9;" + (
        "setp.gt.u32 %p5, %r9, 1500000; @%p5 mov.u32 %r3, 1;"
    )
    for inside in (own, memory):
        out = np.zeros(4, np.uint32)
        report = run(kernel(LOCKED.format(first="mov.u32 %r9, 0;", inside=inside), "out:u64"), out, block=32)
        assert report.finished and report.statistics.warp_instructions > 10**7


@pytest.mark.usefixtures("soon")
def test_blocks_that_take_a_lock_until_the_last_one_is_done_end() -> None:
    """On a GPU all run at once; here the last ones begin when the first ones go round in vain."""
    last = "mov.u32 %r9, %ctaid.x; mov.u32 %r8, %nctaid.x; sub.u32 %r8, %r8, 1; setp.eq.u32 %p9, %r8, %r9;"
    last += "@%p9 st.volatile.global.u32 [$out+4], 1;"
    out = np.zeros(2, np.uint32)
    report = run(kernel(LOCKED.format(first=last, inside=""), "out:u64"), out, grid=24, block=64)
    assert report.finished and report.statistics.ctas == 24


def test_a_long_run_that_writes_now_and_then_is_none() -> None:
    body = """
    mov.u32 %r3, 0;
    OUTER: mov.u32 %r1, 0;
    INNER: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100000; @%p1 bra INNER;
    st.global.u32 [$out], %r1; add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 30; @%p2 bra OUTER; ret;
    """
    out = np.zeros(1, np.uint32)
    assert run(kernel(body, "out:u64"), out, limits=Limits(idle_steps=10**6)).finished
    assert out[0] == 100000


TIME_OUT = """
    mov.u32 %r3, bar; mov.u32 %r4, %tid.x; setp.eq.u32 %p1, %r4, 0; @%p1 mbarrier.init.shared.b64 [%r3], 1; bar.sync 0;
    mov.u64 %rd1, %clock64;
    LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @%p2 ret;
    mov.u64 %rd2, %clock64; sub.u64 %rd2, %rd2, %rd1; setp.lt.u64 %p3, %rd2, 4000000000; @%p3 bra LOOP;
    trap;
"""


def test_a_time_out_of_the_program_tells_of_the_deadlock_that_it_met() -> None:
    report = run(kernel(TIME_OUT, declarations=".shared .align 8 .b8 bar[8];"))
    found = only(report)
    assert report.status == "fault" and found.code == "E1125"
    assert "nothing could move any more: deadlock in kernel 'k': warp 0 waits for mbarrier bar" in (found.notes[0][1])
    assert report.statistics.turns < 200


def test_a_timed_wait_may_give_up_and_do_something_else() -> None:
    # the second try comes from another place: the program counts its tries and goes on
    body = """
    mov.u32 %r3, bar; mbarrier.init.shared.b64 [%r3], 1; mov.u32 %r5, 0;
    LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; add.u32 %r5, %r5, 1;
    setp.lt.u32 %p3, %r5, 3; @%p3 bra LOOP;
    st.global.u32 [$out], %r5; ret;
    """
    body = "mov.u32 %r9, %tid.x; setp.ne.u32 %p9, %r9, 0; @%p9 ret;" + body
    out = np.zeros(1, np.uint32)
    assert run(kernel(body, "out:u64", declarations=".shared .align 8 .b8 bar[8];"), out).finished
    assert out[0] == 3


# Asynchronous work


def test_a_copy_that_outlives_its_block_is_a_warning() -> None:
    body = """
    mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 ret;
    mov.u32 %r2, buffer; cp.async.bulk.global.shared::cta.bulk_group [$out], [%r2], 16; cp.async.bulk.commit_group; ret;
    """
    text = kernel(body, "out:u64", declarations=".shared .align 16 .b8 buffer[16];")
    report = run(text, np.zeros(4, np.uint32), schedule="slow:tma")
    (found,) = report.diagnostics
    assert report.finished and (found.code, found.severity) == ("W1191", "warning")
    assert found.message.startswith("CTA (0, 0, 0) exited while its ")
