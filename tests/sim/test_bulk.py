"""Bulk copies, their groups, asynchronous stores: data and completion under several schedules, and what is an error.

Expected values are NumPy's on the same arrays; rules from the PTX ISA's sections on cp.async.bulk and st.async.
"""

import numpy as np
import pytest
from async_kernels import CLUSTER_SYNC, SYNC, deadlock, fault, finish, wait

SCHEDULES = ["round-robin", "random:1", "random:7", "slow:tma"]
INIT = "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n" + SYNC
GLOBAL_TO_SHARED = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
TO_CLUSTER = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
SHARED_TO_GLOBAL = "cp.async.bulk.global.shared::cta.bulk_group"
# Every thread copies 16 bytes of the tile to a1, 512 bytes a warp.
OUT = """
shl.b32 %r10, %t, 4; mov.u32 %r11, tile; add.u32 %r11, %r11, %r10; ld.shared.v2.b64 {%d10, %d11}, [%r11];
cvt.u64.u32 %d12, %r10; add.u64 %d12, %d12, %d1; st.global.v2.b64 [%d12], {%d10, %d11};
"""
# Every thread writes its number to its 16 bytes of the tile.
FILL = """
shl.b32 %r10, %t, 4; mov.u32 %r11, tile; add.u32 %r11, %r11, %r10; st.shared.v4.u32 [%r11], {%t, %t, %t, %t};
fence.proxy.async;
bar.sync 0;
"""


def numbers(count=128):
    return np.arange(count, dtype=np.uint32) + 100


def zeros(count=128):
    return np.zeros(count, np.uint32)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_global_to_shared(schedule):
    source, out = numbers(), zeros()
    body = (
        INIT
        + f"""
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
@%p0 {GLOBAL_TO_SHARED} [tile], [%d0], 512, [bar];
"""
        + wait("bar", 0, "W")
        + OUT
    )
    finish(body, source, out, schedule=schedule)
    assert (out == source).all()


def test_early_use_shows_when_copies_are_slow():
    """Without the wait the threads read what shared memory held before."""
    source, out = numbers(), zeros()
    body = (
        INIT
        + f"""
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
@%p0 {GLOBAL_TO_SHARED} [tile], [%d0], 512, [bar];
"""
        + OUT
        + wait("bar", 0, "W")
    )
    finish(body, source, out, schedule="slow:tma")
    assert (out == 0xFFFFFFFF).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_shared_to_global(schedule):
    out = zeros()
    body = (
        FILL
        + f"""
@!%p0 bra END;
{SHARED_TO_GLOBAL} [%d0], [tile], 256;
{SHARED_TO_GLOBAL} [%d0+256], [tile+256], 256;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END:
"""
    )
    finish(body, out, schedule=schedule)
    assert (out == np.repeat(np.arange(32), 4)).all()


def test_a_source_may_be_overwritten_after_wait_group_read_but_not_before():
    def run(wait_group):
        out = zeros()
        body = (
            FILL
            + f"""
@!%p0 bra END;
{SHARED_TO_GLOBAL} [%d0], [tile], 512;
cp.async.bulk.commit_group; {wait_group}
st.shared.u32 [tile], 0xdead;
cp.async.bulk.wait_group 0;
END:
"""
        )
        finish(body, out, schedule="slow:tma")
        return out[0]

    assert run("cp.async.bulk.wait_group.read 0;") == 0
    assert run("") == 0xDEAD


def test_the_newest_groups_may_be_under_way():
    """Of three groups all but the newest are waited for; an empty one counts."""

    def run(groups, keep):
        out = zeros()
        body = (
            FILL
            + f"@!%p0 bra END;\n{groups} cp.async.bulk.wait_group {keep};\n"
            + """
ld.global.u32 %r1, [%d0+4]; st.global.u32 [%d0+256], %r1;
END: cp.async.bulk.wait_group 0;
"""
        )
        out[1] = 77
        finish(body, out, schedule="slow:tma")
        return out[64]

    copy = f"{SHARED_TO_GLOBAL} [%d0], [tile+16], 16;"
    assert run(copy + "cp.async.bulk.commit_group;", 0) == 1
    assert run(copy + "cp.async.bulk.commit_group;", 1) == 77
    assert run(copy + "cp.async.bulk.commit_group; cp.async.bulk.commit_group;", 1) == 1
    assert run(copy, 0) == 77  # never committed


def test_threads_have_groups_of_their_own():
    """Lane 1 does not wait for lane 0's copy."""
    out = zeros()
    body = (
        FILL
        + f"""
@%p0 {SHARED_TO_GLOBAL} [%d0], [tile+512-16], 16;
cp.async.bulk.commit_group;
setp.eq.u32 %p1, %t, 1;
@!%p1 bra REST;
cp.async.bulk.wait_group 0;
ld.global.u32 %r1, [%d0]; st.global.u32 [%d0+256], %r1;
REST: cp.async.bulk.wait_group 0;
"""
    )
    out[0] = 55
    finish(body, out, schedule="slow:tma")
    assert out[64] == 55 and out[0] == 31


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_multicast_reaches_the_ctas_of_its_mask(schedule):
    """CTA 1 sends to ranks 0, 2 and 3; their own barriers get the bytes."""
    source, out = numbers(), zeros(4 * 128)
    body = (
        INIT
        + CLUSTER_SYNC
        + f"""
setp.eq.u32 %p2, %rank, 1; setp.ne.u32 %p3, %rank, 1;
mul.wide.u32 %d2, %rank, 512; add.u64 %d1, %d1, %d2;
and.pred %p4, %p0, %p3; @%p4 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
and.pred %p4, %p0, %p2; mov.b16 %h0, 13;
@%p4 {TO_CLUSTER}.multicast::cluster [tile], [%d0], 512, [bar], %h0;
@%p2 bra END;
"""
        + wait("bar", 0, "W")
        + OUT
        + "END:\n"
        + CLUSTER_SYNC
    )
    finish(body, source, out, grid=4, cluster=4, schedule=schedule)
    assert (out.reshape(4, 128)[[0, 2, 3]] == source).all() and not out.reshape(4, 128)[1].any()


@pytest.mark.parametrize("form", ["copy", "add", "inc"])
def test_shared_to_the_shared_memory_of_a_peer(form):
    """CTA 0's tile goes to CTA 1's, which held 5."""
    out = zeros()
    opcode = "cp.async.bulk" if form == "copy" else "cp.reduce.async.bulk"
    operation = "" if form == "copy" else f".{form}.u32"
    copy = f"{opcode}.shared::cluster.shared::cta.mbarrier::complete_tx::bytes{operation}"
    body = (
        INIT
        + FILL
        + """
setp.eq.u32 %p2, %rank, 1; @%p2 st.shared.v4.u32 [%r11], {5, 5, 5, 5};
"""
        + CLUSTER_SYNC
        + f"""
mov.u64 %d1, %d0; @%p2 bra ONE;
@!%p0 bra END;
mov.u32 %r1, tile; mov.u32 %r2, bar; mapa.shared::cluster.u32 %r3, %r1, 1; mapa.shared::cluster.u32 %r4, %r2, 1;
{copy} [%r3], [%r1], 512, [%r4];
bra END;
ONE:
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
"""
        + wait("bar", 0, "W")
        + OUT
        + "END:\n"
        + CLUSTER_SYNC
    )
    finish(body, out, grid=2, cluster=2)
    lanes = np.repeat(np.arange(32), 4)
    expected = {"copy": lanes, "add": lanes + 5, "inc": np.where(lanes <= 5, 0, 6)}
    assert (out == expected[form]).all()


def test_reduction_in_global_memory():
    """Two warps add their tiles to the same floats."""
    out = np.arange(128, dtype=np.float32)
    body = """
shl.b32 %r10, %t, 4; mov.u32 %r11, tile; add.u32 %r11, %r11, %r10; cvt.rn.f32.u32 %r1, %t;
st.shared.v4.u32 [%r11], {%r1, %r1, %r1, %r1};
fence.proxy.async; bar.sync 0;
and.b32 %r2, %t, 31; setp.ne.u32 %p1, %r2, 0; @%p1 bra END;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d0], [%r11], 512;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END:
"""
    finish(body, out, threads=64)
    lanes = np.repeat(np.arange(64, dtype=np.float32), 4).reshape(2, 128)
    assert (out == np.arange(128) + lanes.sum(axis=0)).all()


def test_bytes_are_masked():
    out = np.zeros(512, np.uint8)
    body = (
        FILL
        + """
@!%p0 bra END;
mov.b16 %h0, 0x8101;
cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d0], [tile+160], 32, %h0;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END:
"""
    )
    finish(body, out, target="sm_100a")
    lines = np.zeros((2, 16), np.uint8)
    lines[:, [0, 8]] = np.array([[10, 10], [11, 11]])
    assert (out[:32].reshape(2, 16) == lines).all() and not out[32:].any()


@pytest.mark.parametrize("schedule", ["round-robin", "slow:st.async"])
def test_asynchronous_stores_and_reductions_tell_the_peers_barrier(schedule):
    """Each lane of CTA 0 stores eight bytes and adds its number to CTA 1's."""
    out = zeros()
    body = (
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n"
        + FILL
        + CLUSTER_SYNC
        + """
setp.eq.u32 %p2, %rank, 1; mov.u64 %d1, %d0; @%p2 bra ONE;
mov.u32 %r2, bar; mapa.shared::cluster.u32 %r3, %r11, 1; mapa.shared::cluster.u32 %r4, %r2, 1; add.u32 %r5, %t, 1000;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r3], {%r5, %t}, [%r4];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r3+8], %t, [%r4];
bra END;
ONE:
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 384;
"""
        + wait("bar", 0, "W")
        + OUT
        + "END:\n"
        + CLUSTER_SYNC
    )
    finish(body, out, grid=2, cluster=2, schedule=schedule)
    lanes = np.arange(32)
    assert (out.reshape(32, 4) == np.stack([lanes + 1000, lanes, 2 * lanes, lanes], axis=1)).all()


def test_bulk_zeros():
    out = zeros()
    body = (
        FILL
        + """
@%p0 st.bulk.weak.shared::cta [tile+16], 24, 0;
mov.u32 %r1, tile; cvt.u64.u32 %d2, %r1; cvta.shared.u64 %d2, %d2; @%p0 st.bulk [%d2+504], 8, 0;
bar.sync 0; mov.u64 %d1, %d0;
"""
        + OUT
    )
    finish(body, out, target="sm_100a")
    expected = np.repeat(np.arange(32), 4)
    expected[4:10] = expected[126:] = 0
    assert (out == expected).all()


# What is wrong: PTX after the barrier's init and with the tile filled, code, words

MISUSE = {
    "size": (f"{GLOBAL_TO_SHARED} [tile], [%d0], 24, [bar];", "E1150", "24 bytes; the size must be a"),
    "destination": (f"{GLOBAL_TO_SHARED} [tile+8], [%d0], 16, [bar];", "E1150", "destination address"),
    "source": (f"{GLOBAL_TO_SHARED} [tile], [%d0+4], 16, [bar];", "E1150", "source address"),
    "array": (f"{GLOBAL_TO_SHARED} [tile], [%d0+496], 32, [bar];", "E1120", "run over the end of argument"),
    "window": (f"{GLOBAL_TO_SHARED} [tile+8176], [%d0], 64, [bar];", "E1120", "shared memory ends at"),
    "no array": (f"{SHARED_TO_GLOBAL} [%d9], [tile], 16;", "E1120", "null pointer"),
    "the barrier itself": (f"{GLOBAL_TO_SHARED} [bar], [%d0], 16, [bar];", "E1131", "over the live mbarrier bar"),
    "no barrier": (f"{GLOBAL_TO_SHARED} [tile], [%d0], 16, [bar+8];", "E1130", "completion of cp.async.bulk"),
    "mask": (f"mov.b16 %h0, 2; {TO_CLUSTER}.multicast::cluster [tile], [%d0], 16, [bar], %h0;", "E1152", "mask 0x2"),
    "nobody": (f"mov.b16 %h0, 0; {TO_CLUSTER}.multicast::cluster [tile], [%d0], 16, [bar], %h0;", "E1152", "mask 0x0"),
    "prefetch": ("cp.async.bulk.prefetch.L2.global [%d0], 1024;", "E1120", "run over the end"),
    "too many bytes": (
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 1048575;"
        f"{GLOBAL_TO_SHARED} [tile], [%d0], 16, [bar];",
        "E1135",
        "holds -1048575 to 1048575",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSE)
def test_misuse_is_a_fault(name):
    body, code, words = MISUSE[name]
    found, message = fault(
        INIT + f"@!%p0 bra END;\nmov.u64 %d9, 0;\n{body}\nnanosleep.u32 100;\nEND: bar.sync 0;", numbers()
    )
    assert (found, words in message) == (code, True), message


def test_the_barrier_is_in_the_cta_that_gets_the_data():
    body = (
        INIT
        + CLUSTER_SYNC
        + f"""
mov.u32 %r1, bar; mapa.shared::cluster.u32 %r1, %r1, 1;
@%p0 {TO_CLUSTER} [tile], [%d0], 16, [%r1];
"""
        + CLUSTER_SYNC
    )
    code, message = fault(body, numbers(), grid=2, cluster=2)
    assert code == "E1152" and "rank 0 with an mbarrier in that of rank 1" in message


def test_a_copy_that_was_dropped_is_missed_by_its_bytes():
    body = (
        INIT
        + f"""
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
@%p0 {GLOBAL_TO_SHARED} [tile], [%d0], 256, [bar];
"""
        + wait("bar", 0, "W")
    )
    assert "256 bytes still expected" in deadlock(body, numbers())


def test_bytes_beyond_those_expected_are_told():
    body = (
        INIT
        + f"""
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
@%p0 {GLOBAL_TO_SHARED} [tile], [%d0], 512, [bar];
"""
        + wait("bar", 0, "W")
    )
    assert "384 bytes more have come than were expected" in deadlock(body, numbers())


def test_only_one_cta_expects_what_a_multicast_brings_to_two():
    """Rank 1's barrier has an arrival but expects nothing: its bytes are too many."""
    body = (
        INIT
        + CLUSTER_SYNC
        + f"""
setp.eq.u32 %p2, %rank, 0; and.pred %p3, %p2, %p0; mov.b16 %h0, 3;
@%p3 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 512;
@%p3 {TO_CLUSTER}.multicast::cluster [tile], [%d0], 512, [bar], %h0;
"""
        + CLUSTER_SYNC
        + "nanosleep.u32 1000; @%p0 mbarrier.arrive.shared::cta.b64 _, [bar];\n"
        + wait("bar", 0, "W")
        + CLUSTER_SYNC
    )
    report = deadlock(body, numbers(), grid=2, cluster=2, schedule="random:2")
    assert "512 bytes more have come than were expected" in report and "rank 1" in report
