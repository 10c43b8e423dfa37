"""cp.async: what is copied, when it is there, and arrivals that follow copies. Source: PTX ISA, "cp.async"."""

import numpy as np
import pytest
from async_kernels import SYNC, deadlock, fault, finish, wait

SCHEDULES = ["round-robin", "random:4", "slow:cp.async"]
# %r10: a thread's offset of 16 bytes, %r11 its place in the tile, %d10 in a0.
PLACES = """
shl.b32 %r10, %t, 4; mov.u32 %r11, tile; add.u32 %r11, %r11, %r10; cvt.u64.u32 %d2, %r10; add.u64 %d10, %d0, %d2;
"""
# Every thread writes 16 bytes of the tile, from its neighbour's place, to a1.
OUT = """
xor.b32 %r12, %r10, 16; mov.u32 %r13, tile; add.u32 %r13, %r13, %r12; ld.shared.v2.b64 {%d11, %d12}, [%r13];
cvt.u64.u32 %d13, %r12; add.u64 %d13, %d13, %d1; st.global.v2.b64 [%d13], {%d11, %d12};
"""


def arrays(threads=32):
    return np.arange(4 * threads, dtype=np.uint32) + 7, np.zeros(4 * threads, np.uint32)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("size", [4, 8, 16])
def test_sizes_and_wait_all(size, schedule):
    source, out = arrays(64)
    cache = "cg" if size == 16 else "ca"
    copies = "".join(
        f"cp.async.{cache}.shared.global.L2::128B [%r11+{at}], [%d10+{at}], {size};\n" for at in range(0, 16, size)
    )
    finish(PLACES + copies + "cp.async.wait_all;\n" + SYNC + OUT, source, out, threads=64, schedule=schedule)
    assert (out == source).all()


def test_early_use_shows_when_copies_are_slow():
    source, out = arrays()
    finish(
        PLACES + "cp.async.ca.shared.global [%r11], [%d10], 16;\n" + OUT + "cp.async.wait_all;",
        source,
        out,
        schedule="slow:cp.async",
    )
    assert (out == 0xFFFFFFFF).all()


def test_source_sizes_and_ignored_sources():
    """A lane of number n reads n % 9 of 8 bytes; the others are zero. With ignore-src lanes read nothing."""
    source, out = arrays()
    out[:] = 99
    body = (
        PLACES
        + """
rem.u32 %r1, %t, 9; setp.lt.u32 %p1, %t, 10;
cp.async.ca.shared.global [%r11], [%d10], 8, %r1;
cp.async.ca.shared.global [%r11+8], [%d10+8], 8, %p1;
cp.async.wait_all;
"""
        + SYNC
        + OUT
    )
    finish(body, source, out)
    expected = source.view(np.uint8).reshape(32, 16).copy()
    for lane in range(32):
        expected[lane, lane % 9 : 8] = 0
        if lane < 10:
            expected[lane, 8:] = 0
    assert (out.view(np.uint8).reshape(32, 16) == expected).all()


def test_what_is_not_read_need_not_exist():
    source, out = arrays()
    body = (
        PLACES
        + """
setp.gt.u32 %p1, %t, 3; selp.b64 %d10, 16, %d10, %p1;
cp.async.cg.shared.global.L2::cache_hint [%r11], [%d10], 16, %p1, %d9;
cp.async.wait_all;
"""
        + SYNC
        + OUT
    )
    finish("mov.u64 %d9, 0;" + body, source, out)
    assert (out[:16] == source[:16]).all() and not out[16:].any()


def test_lanes_at_scattered_places():
    """Rows in reverse order, from two arrays, in only some lanes."""
    first, out = arrays()
    second = first + 1000
    body = (
        """
shl.b32 %r10, %t, 4; mov.u32 %r11, tile; add.u32 %r11, %r11, %r10;
sub.u32 %r2, 31, %t; mul.wide.u32 %d3, %r2, 16; and.b32 %r3, %t, 1; setp.eq.u32 %p1, %r3, 1;
selp.b64 %d4, %d2, %d0, %p1; add.u64 %d10, %d4, %d3;
setp.lt.u32 %p2, %t, 24;
@%p2 cp.async.ca.shared.global [%r11], [%d10], 16;
@!%p2 st.shared.v4.u32 [%r11], {3, 3, 3, 3};
cp.async.wait_all;
"""
        + SYNC
        + OUT
    )
    finish(body, first, out, second)
    expected = np.where(np.arange(32)[:, None] % 2, second.reshape(32, 4)[::-1], first.reshape(32, 4)[::-1])
    expected[24:] = 3
    assert (out.reshape(32, 4) == expected).all()


def test_groups_are_waited_for_from_the_oldest():
    """Two stages of a loop are in flight; the second of three is not waited for."""

    def run(keep):
        source, out = arrays()
        out[:] = 5
        body = (
            PLACES
            + f"""
st.shared.u32 [%r11], 1; st.shared.u32 [%r11+4], 2;
cp.async.ca.shared.global [%r11], [%d10], 4; cp.async.commit_group;
cp.async.ca.shared.global [%r11+4], [%d10+4], 4; cp.async.commit_group;
cp.async.wait_group {keep};
"""
            + SYNC
            + OUT
            + "cp.async.wait_all;"
        )
        finish(body, source, out, schedule="slow:cp.async")
        return out.reshape(32, 4)[:, :2], source.reshape(32, 4)[:, :2]

    found, source = run(0)
    assert (found == source).all()
    found, source = run(1)
    assert (found[:, 0] == source[:, 0]).all() and (found[:, 1] == 2).all()


@pytest.mark.parametrize("noinc", ["", ".noinc"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_arrivals_follow_the_copies(noinc, schedule):
    """Producers: warp 0. With .noinc its copies' arrivals are in the barrier's count, without they are added."""
    source, out = arrays()
    count = 64 if noinc else 32
    body = (
        f"@%p0 mbarrier.init.shared::cta.b64 [bar], {count};\n"
        + SYNC
        + PLACES
        + f"""
setp.ge.u32 %p2, %t, 32; @%p2 bra CONSUMER;
cp.async.ca.shared.global [%r11], [%d10], 8;
cp.async.ca.shared.global [%r11+8], [%d10+8], 8;
cp.async.mbarrier.arrive{noinc}.shared::cta.b64 [bar];
mbarrier.arrive.shared::cta.b64 _, [bar];
bra END;
CONSUMER:
"""
        + wait("bar", 0, "W")
        + "sub.u32 %r10, %r10, 512;\n"
        + OUT
        + "END:\n"
    )
    finish(body, source, out, threads=64, schedule=schedule)
    assert (out == source).all()


MISUSE = {
    "source size": ("mov.u32 %r1, 17; cp.async.ca.shared.global [%r11], [%d10], 16, %r1;", "E1151", "size of 17"),
    "alignment": ("cp.async.ca.shared.global [%r11], [%d10+4], 8;", "E1121", "not a multiple of 8"),
    "array": ("cp.async.ca.shared.global [%r11], [%d10+16], 16;", "E1120", "the end of argument"),
    "window": ("cp.async.ca.shared.global [%r11+7936], [%d10], 16;", "E1120", "shared memory ends at"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSE)
def test_misuse_is_a_fault(name):
    body, code, words = MISUSE[name]
    found, message = fault(PLACES + body, *arrays())
    assert (found, words in message) == (code, True), message


def test_an_arrival_without_noinc_in_a_barrier_that_counts_it():
    """The increment makes up for the arrival: one is missing in the end."""
    body = (
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 64;\n" + SYNC + PLACES
        + "cp.async.ca.shared.global [%r11], [%d10], 16; cp.async.mbarrier.arrive.shared::cta.b64 [bar];"
        + "mbarrier.arrive.shared::cta.b64 _, [bar];\n" + wait("bar", 0, "W")
    )  # fmt: skip
    assert "32 of 64 arrivals pending" in deadlock(body, *arrays())
