"""The events of a run and their times under the cost model."""

from __future__ import annotations

import numpy as np
import pytest
from sim_kernels import kernel, run

from ptxdsl.sim.machine.timeline import COPY_BYTES_PER_CYCLE, COPY_LATENCY, Trace, copy_cycles, matrix_cycles

# Lane 0 of warp 0 loads 1024 bytes; all threads of both warps wait for them.
LOAD = kernel(
    """
    mov.u32 %r1, %tid.x; mov.u32 %r2, bar; mov.u32 %r3, buffer; setp.ne.u32 %p1, %r1, 0;
    @!%p1 mbarrier.init.shared.b64 [%r2], 1; bar.sync 0;
    @%p1 bra WAIT;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [$source], 1024, [%r2];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;
    mul.lo.u32 %r4, %r1, 4; add.u32 %r4, %r4, %r3; ld.shared.u32 %r5, [%r4];
    mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, $out; st.global.u32 [%rd1], %r5; ret;
    """,
    "source:u64 out:u64",
    declarations=".shared .align 8 .b8 bar[8]; .shared .align 128 .b8 buffer[1024];",
)


def traced(schedule: str) -> list[tuple[int, str, str]]:
    source, out = np.arange(256, dtype=np.uint32), np.zeros(64, np.uint32)
    report = run(LOAD, source, out, block=64, trace=True, schedule=schedule)
    assert report.finished and (out == source[:64]).all()
    return [(event.time, event.entity, event.kind) for event in report.events]


@pytest.mark.parametrize("schedule", ["round-robin", "random:1", "slow:tma"])
def test_a_wait_ends_when_the_copy_has_come(schedule: str) -> None:
    events = traced(schedule)
    times = {(entity, kind): time for time, entity, kind in events if entity == "cta0.tma#0"}
    begin, end = times["cta0.tma#0", "begin"], times["cta0.tma#0", "end"]
    assert end - begin == COPY_LATENCY + 1024 // COPY_BYTES_PER_CYCLE == copy_cycles(1024)
    resumed = [time for time, entity, kind in events if kind == "resume" and time >= end]
    assert resumed == [end, end]  # both warps
    assert {(entity, kind) for _, entity, kind in events} >= {
        (f"cta0.warp{warp}", kind) for warp in (0, 1) for kind in ("start", "wait", "resume", "exit")
    }


def test_the_last_event_is_the_runs_length() -> None:
    source, out = np.arange(256, dtype=np.uint32), np.zeros(64, np.uint32)
    report = run(LOAD, source, out, block=64, trace=True)
    assert report.statistics.cycles == max(event.time for event in report.events)
    assert run(LOAD, source, out, block=64).events == []


def test_an_instruction_takes_a_cycle_of_its_warp() -> None:
    body = "mov.u32 %r1, 0; LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra LOOP; ret;"
    report = run(kernel(body), block=128)
    assert report.statistics.cycles == 1 + 3 * 100 + 1


def test_sleeping_takes_its_time() -> None:
    assert run(kernel("nanosleep.u32 5000; ret;")).statistics.cycles in range(5000, 5010)


def test_rates_of_matrix_products() -> None:
    assert matrix_cycles(64, 256, 16, 16) == 64
    assert matrix_cycles(64, 256, 16, 8) == 32
    assert matrix_cycles(8, 8, 4, 16) == 1


def test_a_trace_has_an_end() -> None:
    trace = Trace(limit=2)
    for time in range(5):
        trace.add(time, "cta0.warp0", "arrive", "", 0)
    assert (len(trace.events), trace.cut) == (2, 3)
