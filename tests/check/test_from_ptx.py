"""What the checker sees in PTX: each case is a kernel's body and the protocol that must come out."""

from __future__ import annotations

from textwrap import dedent

import pytest

from ptxdsl.protocol.from_ptx import kernel_models
from ptxdsl.protocol.model import Unmodelled, walk
from ptxdsl.protocol.printer import protocol_text
from ptxdsl.ptx.reader import read

HEAD = """\
.version 8.6
.target sm_100a
.address_size 64
{outside}
.visible .entry k(.param .u32 n, .param .u64 src, .param .u64 dst, .param .u32 m)
.reqntid 64, 1, 1
{{
.reg .pred %p<20>;
.reg .b16 %h<20>;
.reg .b32 %r<40>;
.reg .b64 %rd<40>;
.shared .align 8 .b8 bars[64];
.shared .align 128 .b8 data[1024];
"""


def models(body, outside=""):
    return kernel_models(read(HEAD.format(outside=outside) + body + "\n}\n", "k.ptx"))


def protocol(body, outside=""):
    """The lines behind the arrays."""
    (kernel,) = models(body, outside)
    lines = protocol_text(kernel).splitlines()
    return "\n".join(line[2:] for line in lines if line.startswith("  ") and not line.startswith("  shared "))


def agree(body, expected, outside=""):
    assert protocol(body, outside) == dedent(expected).strip("\n")


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
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [data];", "read reads [data]:16"),
    ],
)
def test_operation(instruction, expected):
    agree(instruction, expected)


@pytest.mark.parametrize(
    "instruction",
    [
        "st.global.b32 [%rd1], %r1;", "ld.global.b32 %r1, [%rd1];", "setmaxnreg.dec.sync.aligned.u32 40;",
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


# ------------------------------------------------------------------------------------------------- control flow


def test_roles():
    body = """
    mov.u32 %r0, %tid.x;
    setp.lt.u32 %p0, %r0, 32;
    @%p0 bra P;
    mbarrier.arrive.shared.b64 _, [bars];
    bra.uni E;
    P: mbarrier.arrive.shared.b64 _, [bars+8];
    E: bar.sync 0;
    """
    agree(
        body,
        """
        if tid.x < 32:
          bar-arrive [bars+8]
        else:
          bar-arrive [bars]
        cta-sync
        """,
    )


def test_predicates_in_the_place_of_branches():
    body = """
    mov.u32 %r0, %tid.x;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared.b64 [bars], 1;
    @!%p0 exit;
    mbarrier.arrive.shared.b64 _, [bars];
    """
    agree(body, "if tid.x == 0:\n  bar-init [bars] count=1\nif tid.x == 0:\n  bar-arrive [bars]")


def test_an_early_exit():
    body = """
    ld.param.u32 %r1, [n];
    bar.sync 0;
    setp.eq.u32 %p0, %r1, 7;
    @%p0 ret;
    bar.sync 0;
    """
    agree(body, "cta-sync\nif n != 7:\n  cta-sync")


def test_a_table_of_branches():
    body = """
    ld.param.u32 %r1, [n];
    T: .branchtargets A, B, C;
    brx.idx %r1, T;
    A: bar.sync 1, 32; bra E;
    B: bar.sync 2, 32; bra E;
    C: bar.sync 3, 32;
    E:
    """
    agree(
        body,
        """
        if n == 0:
          named-sync count=32 id=1
        else:
          if n == 1:
            named-sync count=32 id=2
          else:
            named-sync count=32 id=3
        """,
    )


COUNTING_DOWN = """
ld.param.u32 %r1, [n];
setp.lt.s32 %p0, %r1, 1;
@%p0 bra E;
mov.u32 %r2, 0;
L: mbarrier.arrive.shared.b64 _, [bars];
xor.b32 %r2, %r2, 1;
add.s32 %r1, %r1, -1;
setp.ne.s32 %p1, %r1, 0;
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bars+8], %r2; @!%p2 bra W;
@%p1 bra L;
E:
"""

RANGE = """
v0 = 0
loop L v3 in 0 ..< n:
  bar-arrive [bars]
  bar-wait [bars+8] parity=v0 ^ 1
  v0 = v0 ^ 1
"""


def numbered(text):
    """Variables and labels by the order in which they appear."""
    import re

    names: dict[str, str] = {}
    return re.sub(r"\b[vL]\d*\b", lambda m: names.setdefault(m[0], f"{m[0][0]}{len(names)}"), text.strip())


def test_a_loop_that_counts_down_is_a_range():
    assert numbered(protocol(COUNTING_DOWN)) == numbered(RANGE)


def test_a_loop_that_is_entered_without_a_condition_is_none():
    body = COUNTING_DOWN.replace("@%p0 bra E;", "")
    assert "..<" not in protocol(body) and "bar-arrive" in protocol(body)


def test_a_persistent_loop():
    body = """
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %nctaid.x;
    setp.ge.u32 %p0, %r2, %r1;
    @%p0 bra E;
    L: bar.sync 0;
    add.s32 %r2, %r2, %r3;
    setp.lt.u32 %p0, %r2, %r1;
    @%p0 bra L;
    E:
    """
    expected = """
    v0 = ctaid_x
    loop L1:
      if v0 >=u n:
        leave L1
      cta-sync
      v0 = nctaid_x + v0
    """
    assert numbered(protocol(body)) == numbered(dedent(expected))


def unrolled(tail_address="bars+16"):
    """A ring of three, as it comes out of the compiler."""
    wait = "{.reg .pred q; W: mbarrier.try_wait.parity.shared::cta.b64 q, [%s], %%r3; @!q bra W;}"
    copies = "\n".join(
        f"{wait % f'bars+{24 + 8 * stage}'}\n"
        f"st.shared.b32 [data+{128 * stage}], %r9;\n"
        f"mbarrier.arrive.shared.b64 _, [bars+{8 * stage}];"
        for stage in range(3)
    )
    return f"""
    ld.param.u32 %r1, [n];
    max.s32 %r2, %r1, 0;
    mov.u32 %r3, 1;
    setp.lt.s32 %p0, %r1, 3;
    @%p0 bra T;
    L:
    {copies}
    xor.b32 %r3, %r3, 1;
    add.s32 %r2, %r2, -3;
    setp.gt.u32 %p1, %r2, 2;
    @%p1 bra L;
    T: setp.eq.s32 %p2, %r2, 0;
    @%p2 bra E;
    {wait % "bars+24"}
    st.shared.b32 [data], %r9;
    mbarrier.arrive.shared.b64 _, [bars];
    setp.eq.s32 %p2, %r2, 1;
    @%p2 bra E;
    {wait % "bars+32"}
    st.shared.b32 [data+128], %r9;
    mbarrier.arrive.shared.b64 _, [{tail_address}];
    E:
    """


def test_an_unrolled_ring_is_rolled_up():
    expected = """
    v0 = 1
    v1 = 0
    loop L2 v3 in 0 ..< n:
      bar-wait [bars+24 + 8*v1] parity=v0
      write writes [data + 128*v1]:4
      bar-arrive [bars + 8*v1]
      v1 = select(v1 == 2, 0, v1 + 1), v0 = select(v1 == 2, v0 ^ 1, v0)
    """
    assert numbered(protocol(unrolled("bars+8"))) == numbered(dedent(expected))


def test_a_ring_with_another_tail_stays_unrolled():
    text = protocol(unrolled("bars+16"))
    assert text.count("bar-wait") == 5 and text.count("bar-arrive [bars+16]") == 2


def test_loops_without_protocol_are_left_out():
    body = """
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
    mov.u32 %r4, 0;
    L: add.s32 %r4, %r4, %r2;
    add.s32 %r2, %r2, 1;
    setp.lt.s32 %p1, %r2, %r1;
    @%p1 bra L;
    bar.sync 0;
    """
    agree(body, "cta-sync")


def test_a_loop_that_makes_an_address_is_kept():
    body = """
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
    mov.u32 %r4, 0;
    L: xor.b32 %r4, %r4, %r2;
    add.s32 %r2, %r2, 8;
    setp.lt.s32 %p1, %r2, %r1;
    @%p1 bra L;
    and.b32 %r4, %r4, 8;
    mov.b32 %r5, bars;
    add.s32 %r5, %r5, %r4;
    mbarrier.arrive.shared.b64 _, [%r5];
    """
    assert "loop" in protocol(body)


# ----------------------------------------------------------------------------------------------------- integers


@pytest.mark.parametrize(
    "code, address",
    [
        ("mov.b32 %r1, bars; add.s32 %r2, %r1, 16;", "bars+16"),
        ("mov.u64 %rd1, bars; cvta.shared.u64 %rd2, %rd1; add.s64 %rd3, %rd2, 8; cvt.u32.u64 %r2, %rd3;", "bars+8"),
        ("mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; mov.b32 %r3, bars; mad.lo.s32 %r2, %r1, 8, %r3;",
         "bars + 8*(tid.x >>u 5)"),
        ("mov.u32 %r0, %laneid; shl.b32 %r1, %r0, 3; mov.b32 %r3, data; or.b32 %r1, %r1, 256; add.s32 %r2, %r1, %r3;",
         "data+256 + 8*(thread & 31)"),
        ("ld.param.u32 %r0, [n]; mul.hi.u32 %r1, %r0, -1431655765; shr.u32 %r1, %r1, 1; mul.lo.s32 %r3, %r1, 3; "
         "sub.s32 %r4, %r0, %r3; mov.b32 %r3, bars; mad.lo.s32 %r2, %r4, 8, %r3;", "bars + 8*(n %u 3)"),
        ("ld.param.u32 %r0, [n]; and.b32 %r1, %r0, 1; setp.eq.b32 %p0, %r1, 1; selp.b32 %r2, 24, 0, %p0; "
         "mov.b32 %r3, bars; add.s32 %r2, %r2, %r3;", "bars + select((n & 1) == 1, 24, 0)"),
        ("mov.b32 %r1, bars; mapa.shared::cluster.u32 %r2, %r1, 1; add.s32 %r2, %r2, 8;", "bars+8 of CTA 1"),
        ("mov.b32 %r1, bars; and.b32 %r2, %r1, -16777217;", "mapa(bars, cluster_ctarank & -2)"),
        ("mov.u32 %r0, %tid.x; shfl.sync.idx.b32 %r1, %r0, 0, 31, -1; shl.b32 %r1, %r1, 3; mov.b32 %r3, bars; "
         "add.s32 %r2, %r1, %r3;", "bars + 8*shuffle(tid.x, 0)"),
        ("ld.param.u64 %rd1, [src]; cvta.to.global.u64 %rd2, %rd1; ld.global.u32 %r1, [%rd2+4]; shl.b32 %r1, %r1, 3; "
         "mov.b32 %r3, bars; add.s32 %r2, %r1, %r3;", "bars + 8*load src(src + 4)"),
        ("mov.b64 %rd1, {%r5, %r6}; mov.b64 {%r2, %r7}, %rd1;", None),
    ],
)  # fmt: skip
def test_address(code, address):
    text = protocol(f"{code} mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];").splitlines()[-1]
    if address is None:
        assert text == "bar-arrive [unknown]"
    else:
        assert text in (f"bar-arrive [{address}]", f"bar-arrive [{_turned(address)}]")


def _turned(address):
    """The other order of a sum."""
    return " + ".join(reversed(address.split(" + ")))


def test_memory_that_the_kernel_writes_is_unknown():
    code = """
    ld.param.u64 %rd1, [{name}];
    ld.param.u64 %rd2, [dst];
    ld.global.u32 %r1, [%rd1];
    st.global.u32 [%rd2], %r1;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra E;
    bar.sync 0;
    E:
    """
    agree(code.format(name="src"), "if load src(src) == 0:\n  cta-sync")
    agree(code.format(name="dst"), "if unknown == 0:\n  cta-sync")


def test_votes():
    body = """
    mov.u32 %r0, %tid.x;
    setp.lt.u32 %p0, %r0, 32;
    vote.sync.any.pred %p1, %p0, -1;
    @!%p1 bra E;
    elect.sync _|%p2, -1;
    @%p2 mbarrier.arrive.shared.b64 _, [bars];
    E:
    """
    agree(
        body,
        """
        warp-sync mask=-1
        if any(tid.x < 32):
          warp-sync mask=-1
          if elected:
            bar-arrive [bars]
        """,
    )


def test_generic_addresses():
    """An access that is made of a shared variable's address is one to shared memory, another one is not."""
    body = """
    mov.u64 %rd1, data;
    cvta.shared.u64 %rd2, %rd1;
    st.b32 [%rd2+8], 0;
    ld.param.u64 %rd3, [dst];
    st.b32 [%rd3+8], 0;
    """
    agree(body, "write writes [data+8]:4")


def test_all_dynamic_shared_memory_is_one():
    outside = ".extern .shared .align 16 .b8 one[];\n.extern .shared .align 128 .b8 two[];\n"
    agree("st.shared.b32 [one+4], 0; st.shared.b32 [two+8], 0;",
          "write writes [dynamic shared memory+4]:4\nwrite writes [dynamic shared memory+8]:4", outside)  # fmt: skip


def test_calls_are_followed():
    outside = """
    .func (.param .b32 result) next(.param .b32 a)
    { .reg .b32 %x; ld.param.b32 %x, [a]; add.s32 %x, %x, 8; st.param.b32 [result], %x; ret; }
    """
    body = """
    mov.b32 %r1, bars;
    { .param .b32 a0; .param .b32 r0; st.param.b32 [a0], %r1; call (r0), next, (a0); ld.param.b32 %r2, [r0]; }
    mbarrier.arrive.shared.b64 _, [%r2];
    """
    agree(body, "bar-arrive [bars+8]", outside)


# ------------------------------------------------------------------------------------------------ not modelled


@pytest.mark.parametrize(
    "body, why",
    [
        ("mbarrier.arrive.shared.b64 %rd0, [bars]; W: mbarrier.test_wait.shared.b64 %p0, [bars], %rd0; @!%p0 bra W;",
         "a wait for the phase of an arrival's state, not for a parity"),
        ("mbarrier.arrive_drop.shared.b64 %rd0, [bars];",
         "`mbarrier.arrive_drop` changes how many arrivals a phase takes"),
        ("setp.eq.u32 %p0, %r0, 0; @%p0 bra B; A: bar.sync 0; B: bar.sync 1; bra A;",
         "the control flow here enters a loop at two places"),
    ],
)  # fmt: skip
def test_not_modelled(body, why):
    (kernel,) = models(body)
    (found,) = [node for node in walk(kernel.program) if isinstance(node, Unmodelled)]
    assert found.why == why
    assert found.span.source.name == "k.ptx" and found.span.line == HEAD.count("\n") - HEAD.count("{outside}") + 2


def test_unknown_functions_and_recursion():
    outside = ".extern .func other(.param .b32 a);\n.func self() { call self; ret; }\n"
    text = protocol("{ .param .b32 a0; st.param.b32 [a0], 1; call other, (a0); }", outside)
    assert text == "not modelled: what `other` does is not known"
    assert protocol("call self;", outside) == "not modelled: a recursive call: k -> self -> self"


def test_spans_are_lines_of_the_text():
    (kernel,) = models("bar.sync 0;\nbar.sync 1, 32;")
    first = kernel.program.nodes[0].span
    assert first.text == "bar.sync 0;" and kernel.program.nodes[1].span.line == first.line + 1
