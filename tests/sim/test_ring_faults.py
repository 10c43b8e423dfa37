"""Mistakes that people make with rings of mbarriers, and what the simulator says of each.

The kernel: warp 0's first lane copies rows of 128 bytes into a ring of three stages, warps 1 and 2 add them up. A row i
is full of the number i, so every thread's sum is known: 0 + 1 + … Variants change one thing.
"""

import numpy as np
import pytest
from async_kernels import deadlock, fault, finish

STAGES, ROWS = 3, 8
# full barriers at ring, empty ones at ring+24; stage s of the data at tile + 128 s
KERNEL = """
.shared .align 8 .b64 ring[6];
mov.u32 %r0, ring; mov.u32 %r1, tile; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 0;
ld.param.u64 %d3, [a2]; ld.global.u32 %r9, [%d3];
@!%p0 bra READY;
{init}
READY: bar.sync 0;
setp.lt.u32 %p1, %t, 32; @!%p1 bra CONSUME;
setp.ne.u32 %p2, %t, 0; @%p2 bra END;
PRODUCE:
setp.ge.u32 %p3, %r4, %r9; @%p3 bra END;
shl.b32 %r6, %r2, 3; add.u32 %r6, %r6, %r0; shl.b32 %r7, %r2, 7; add.u32 %r7, %r7, %r1;
xor.b32 %r8, %r3, 1; {producer_parity}
{producer_wait}
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], {expected};
{copy}
add.u64 %d0, %d0, 128; {step} add.u32 %r4, %r4, 1;
bra PRODUCE;
CONSUME:
setp.ge.u32 %p3, %r4, %r9; @%p3 bra DONE;
shl.b32 %r6, %r2, 3; add.u32 %r6, %r6, %r0; shl.b32 %r7, %r2, 7; add.u32 %r7, %r7, %r1;
{consumer_parity}
WAIT_FULL: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r6], %r3; @!%p4 bra WAIT_FULL;
and.b32 %r10, %t, 31; shl.b32 %r10, %r10, 2; add.u32 %r10, %r10, %r7; ld.shared.u32 %r11, [%r10];
add.u32 %r5, %r5, %r11;
{release}
{step} add.u32 %r4, %r4, 1;
bra CONSUME;
DONE: mul.wide.u32 %d4, %t, 4; add.u64 %d4, %d4, %d1; st.global.u32 [%d4], %r5;
END:
"""
STEP = "add.u32 %r2, %r2, 1; setp.eq.u32 %p5, %r2, 3; @%p5 xor.b32 %r3, %r3, 1; @%p5 mov.u32 %r2, 0;"
WAIT_EMPTY = "WAIT_EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r6+24], %r8; @!%p4 bra WAIT_EMPTY;"
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r7], [%d0], 128, [%r6];"


def init(full=1, empty=64):
    counts = [full] * STAGES + [empty] * STAGES
    return "".join(f"mbarrier.init.shared::cta.b64 [ring+{8 * i}], {count};\n" for i, count in enumerate(counts))


def ring(**changes):
    parts = {
        "init": init(),
        "expected": 128,
        "copy": COPY,
        "step": STEP,
        "producer_wait": WAIT_EMPTY,
        "producer_parity": "",
        "consumer_parity": "",
        "release": "mbarrier.arrive.shared::cta.b64 _, [%r6+24];",
    }
    return KERNEL.format(**parts | changes)


def arguments(rows=ROWS):
    data = np.repeat(np.arange(rows, dtype=np.uint32), 32) if rows else np.zeros(32, np.uint32)
    return data, np.zeros(96, np.uint32), np.array([rows], np.uint32)


@pytest.mark.parametrize("schedule", ["round-robin", "random:1", "random:2", "slow:tma", "slow:warp1", "slow:warp0"])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 8])
def test_the_ring_as_it_should_be(rows, schedule):
    given = arguments(rows)
    finish(ring(), *given, threads=96, schedule=schedule)
    assert (given[1][32:] == sum(range(rows))).all()


def test_more_arrivals_than_the_empty_barrier_counts():
    """64 threads release a stage; the barrier has 1, 2 or 32."""
    for count in (1, 2):
        code, message = fault(ring(init=init(empty=count)), *arguments(), threads=96)
        assert code == "E1134" and f"initialised with {count} arrival" in message and "32 lanes arrive" in message
    report = deadlock(ring(init=init(empty=32)), *arguments(), threads=96)
    assert "W1196" in report and "initialised with 32 arrivals per phase" in report and "ring[3]" in report


def test_fewer_arrivals_than_the_empty_barrier_counts():
    report = deadlock(ring(init=init(empty=256)), *arguments(), threads=96)
    assert "192 of 256 arrivals pending" in report


def test_a_release_by_thread_0_that_is_no_consumer():
    release = "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r6+24];"
    report = deadlock(ring(init=init(empty=1), release=release), *arguments(), threads=96)
    assert "1 of 1 arrival pending" in report and "ring[3]" in report


def test_one_barrier_waited_with_the_parity_of_the_ring():
    """Stage 0's full barrier stands for all: the producer arrives again before anybody has looked, and the consumers
    wait for a phase that is complete and gone."""
    single = "mov.u32 %r6, ring;"
    body = ring(copy=single + COPY, consumer_parity=single, producer_wait=WAIT_EMPTY + single)
    report = deadlock(body, *arguments(), threads=96)
    assert "W1196" in report and "phase 1 of the mbarrier ring[0], though nobody has waited for phase 0" in report


def test_fresh_barriers_waited_with_the_parity_of_their_number():
    """Odd stages pass at once: with slow copies a row is summed that is not there."""
    given = arguments(3)
    body = ring(consumer_parity="and.b32 %r3, %r2, 1;", step=STEP)
    finish(body, *given, threads=96, schedule="slow:tma")
    assert (given[1][32:] != 3).any()


def test_a_peeled_wait_where_there_is_nothing_to_wait_for():
    """The first wait stands before the loop: with no rows nobody ever fills stage 0."""
    peeled = "READY: bar.sync 0;\nsetp.ge.u32 %p1, %t, 32; mov.u32 %r6, ring;\n@!%p1 bra LOOPS;\n" + (
        "PEEL: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r6], 0; @!%p4 bra PEEL;\nLOOPS:\n"
    )
    body = ring().replace("READY: bar.sync 0;\n", peeled)
    given = arguments(1)
    finish(body, *given, threads=96)
    report = deadlock(body, *arguments(0), threads=96)
    assert "parity 0: phase 0, 1 of 1 arrival pending" in report


def test_a_wait_in_a_circle():
    """Before it fills stage 2 the producer waits for consumers that arrive there after they have read stage 2."""
    wait = "setp.ne.u32 %p6, %r4, 2; @%p6 bra ON; MID: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0;"
    body = ring(
        init=init() + "mbarrier.init.shared::cta.b64 [bar], 64;",
        producer_wait=WAIT_EMPTY + wait + "@!%p4 bra MID; ON:",
        release="mbarrier.arrive.shared::cta.b64 _, [%r6+24]; setp.eq.u32 %p6, %r4, 2;"
        "@%p6 mbarrier.arrive.shared::cta.b64 _, [bar];",
    )
    report = deadlock(body, *arguments(), threads=96)
    assert "64 of 64 arrivals pending" in report and "ring[2]" in report


def test_bytes_expected_for_a_copy_that_one_path_leaves_out():
    copy = "setp.ne.u32 %p6, %r4, 5; @%p6 " + COPY
    report = deadlock(ring(copy=copy), *arguments(), threads=96)
    assert "128 bytes still expected" in report and "ring[2]" in report


def test_barrier_memory_is_used_for_data():
    """The ring's memory is taken for data: the copy itself is the fault."""
    copy = "mov.u32 %r7, ring; and.b32 %r7, %r7, 0xfffffff0;" + COPY.replace("128", "32")
    code, message = fault(ring(copy=copy), *arguments(), threads=96)
    assert code == "E1131" and "writes over the live mbarrier ring[" in message


def test_barriers_are_used_before_anybody_has_initialised_them():
    body = ring().replace("READY: bar.sync 0;", "READY:")
    code, message = fault(body, *arguments(), threads=96, schedule="slow:warp0")
    assert code == "E1130" and "no mbarrier has been initialised there" in message


def test_a_role_that_returns_early():
    """Warp 2 leaves after two rows; its arrivals are missed."""
    leave = "setp.gt.u32 %p6, %t, 63; setp.eq.and.u32 %p6, %r4, 1, %p6; @%p6 ret;"
    release = "mbarrier.arrive.shared::cta.b64 _, [%r6+24];" + leave
    report = deadlock(ring(release=release), *arguments(), threads=96)
    assert "32 of 64 arrivals pending" in report
