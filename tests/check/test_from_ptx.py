"""What the checker sees in PTX: operations and waits. Each case is a kernel's body and its protocol."""

from __future__ import annotations

import pytest
from ptx_protocols import agree, protocol

DESCRIPTOR = """
mov.u64 %rd0, data;
cvt.u32.u64 %r0, %rd0;
shr.u32 %r0, %r0, 4;
cvt.u64.u32 %rd1, %r0;
ld.param.u64 %rd2, [src];
"""


@pytest.mark.parametrize(
    ("instruction", "places"),
    [
        ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd1, %r2, {%r3, %r4, %r5, %r6}, %p1;", 2),
        ("tcgen05.mma.sp.cta_group::1.kind::f16.collector::a::fill [%r1], [%r9], %rd1, [%r7], %r2, %p1;", 1),
        ("tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %rd1, %rd1, %r2, %p1, %rd2;", 2),  # a mask of columns
    ],
)
def test_matrices_of_tcgen05(instruction, places):
    """They lie from 128 on, where data is; how far is not seen."""
    assert protocol(DESCRIPTOR + instruction) == "async-mma" + " reads [128]:?" * places


# ------------------------------------------------------------------------------------------------- operations


@pytest.mark.parametrize(
    "instruction, expected",
    [
        ("mbarrier.init.shared.b64 [bars+8], 32;", "bar-init [bars+8] count=32"),
        ("mbarrier.inval.shared.b64 [bars];", "bar-inval [bars]"),
        ("mbarrier.arrive.shared.b64 %rd0, [bars];", "bar-arrive [bars]"),
        ("mbarrier.arrive.shared::cta.b64 _, [bars], 4;", "bar-arrive [bars] count=4"),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 128;", "bar-expect [bars] bytes=128"),
        ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars], 64;", "bar-expect [bars] bytes=64"),
        ("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bars], 64;", "commit [bars] bytes=64"),
        ("bar.sync 0;", "cta-sync"),
        ("bar.sync 3, 64;", "named-sync count=64 id=3"),
        ("barrier.cta.arrive.aligned 2, 96;", "named-arrive count=96 id=2"),
        ("barrier.cluster.arrive.aligned;", "cluster-arrive"),
        ("barrier.cluster.wait.aligned;", "cluster-wait"),
        ("fence.proxy.async.shared::cta;", "fence"),
        ("fence.mbarrier_init.release.cluster;", "fence"),
        ("bar.warp.sync -1;", "warp-sync mask=-1"),
        ("ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [data+16];", "read reads [data+16]:16"),
        ("st.shared.b16 [data+2], %h0;", "write writes [data+2]:2"),
        ("atom.shared.add.u32 %r0, [data], 1;", "atomic writes [data]:4 reads [data]:4"),
        ("cp.async.cg.shared.global [data], [%rd1], 16;", "async-copy writes [data]:16"),
        ("cp.async.commit_group;", "commit"),
        ("cp.async.wait_group 2;", "wait-group count=2"),
        ("cp.async.mbarrier.arrive.noinc.shared.b64 [bars];", "commit [bars]"),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%rd1], 256, [bars];",
            "async-copy [bars] bytes=256 writes [data]:256",
        ),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
            "[data], [%rd1], 256, [bars], 3;",
            "async-copy [bars] bytes=256 mask=3 writes [data]:256",
        ),
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [data], 256;", "async-copy bytes=256 reads [data]:256"),
        ("cp.async.bulk.wait_group.read 1;", "wait-group count=1"),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[data], [%rd1, {%r1, %r2}], [bars];",
            "async-copy [bars] writes [data]:?",
        ),
        (
            "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r1, %r2}], [data];",
            "async-copy reads [data]:?",
        ),
        (
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [data], %r1, [bars];",
            "async-copy [bars] bytes=4 writes [data]:4",
        ),
        ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bars];", "commit [bars]"),
        (
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bars], 3;",
            "commit [bars] mask=3",
        ),
        ("setmaxnreg.dec.sync.aligned.u32 40;", "registers count=40"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [data];", "read reads [data]:16"),
    ],
)
def test_operation(instruction, expected):
    agree(instruction, expected)


@pytest.mark.parametrize(
    "instruction",
    [
        "st.global.b32 [%rd1], %r1;", "ld.global.b32 %r1, [%rd1];",
        "griddepcontrol.wait;", "prefetch.global.L2 [%rd1];", "mov.u32 %r1, %clock;", "nanosleep.u32 20;",
        "atom.global.add.u32 %r0, [%rd1], 1;",
    ],
)  # fmt: skip
def test_what_is_no_protocol(instruction):
    agree(instruction, "")


# ------------------------------------------------------------------------------------------------------- waits

WAIT = "bar-wait [bars] parity=1"


@pytest.mark.parametrize(
    "body",
    [
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [bars], 1; @!%p0 bra W;",
        "W: mbarrier.test_wait.parity.shared.b64 %p0, [bars], 1; @%p0 bra D; bra W; D:",
        # the outcome as an integer, with a limit that makes it try again
        """
        W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [bars], 1, 1000;
        selp.b32 %r0, 1, 0, %p0;
        setp.eq.s32 %p1, %r0, 0;
        @%p1 bra W;
        """,
        # a back-off that looks at a clock
        """
        mov.u64 %rd0, %globaltimer;
        W: mbarrier.test_wait.parity.shared.b64 %p0, [bars], 1;
        @%p0 bra D;
        mov.u64 %rd1, %globaltimer;
        sub.s64 %rd2, %rd1, %rd0;
        setp.lt.s64 %p1, %rd2, 4000;
        @%p1 bra W;
        nanosleep.u32 100;
        bra W;
        D:
        """,
        # what does not change, computed in the loop
        """
        mov.u32 %r1, 1;
        W: mov.b32 %r2, bars;
        and.b32 %r3, %r1, 1;
        mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r2], %r3;
        @!%p0 bra W;
        """,
        # one test before the loop
        """
        mbarrier.test_wait.parity.shared::cta.b64 %p0, [bars], 1;
        @%p0 bra D;
        W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [bars], 1;
        @!%p0 bra W;
        D:
        """,
        # two tests in turn
        """
        W: mbarrier.test_wait.parity.shared::cta.b64 %p0, [bars], 1;
        @%p0 bra D;
        mbarrier.try_wait.parity.shared::cta.b64 %p1, [bars], 1;
        @!%p1 bra W;
        D:
        """,
    ],
)
def test_wait(body):
    agree(body, WAIT)


def test_a_test_whose_outcome_is_looked_at_later_is_the_wait_there():
    body = """
    mbarrier.try_wait.parity.shared::cta.b64 %p0, [bars], 1;
    selp.b32 %r0, 1, 0, %p0;
    st.shared.b32 [data], %r1;
    setp.ne.s32 %p1, %r0, 0;
    @%p1 bra D;
    W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bars], 1;
    @!%p2 bra W;
    D: ld.shared.b32 %r2, [data+4];
    """
    agree(body, f"bar-test [bars] parity=1\nwrite writes [data]:4\n{WAIT}\nread reads [data+4]:4")


@pytest.mark.parametrize(
    "body",
    [
        # it ends after some time, too
        """
        mov.u32 %r0, 0;
        W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [bars], 1;
        @%p0 bra D;
        add.u32 %r0, %r0, 1;
        setp.lt.u32 %p1, %r0, 10;
        @%p1 bra W;
        D:
        """,
        # it looks at another phase each time
        """
        mov.u32 %r0, 0;
        W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [bars], %r0;
        xor.b32 %r0, %r0, 1;
        @!%p0 bra W;
        """,
        # it writes what others see
        """
        W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [bars], 1;
        st.shared.b32 [data], 0;
        @!%p0 bra W;
        """,
    ],
)
def test_no_wait(body):
    assert "bar-wait" not in protocol(body) and "bar-test" in protocol(body)
