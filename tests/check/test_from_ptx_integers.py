"""What the checker sees in PTX: addresses, counts and conditions, and what it cannot see."""

from __future__ import annotations

import pytest
from ptx_protocols import HEAD, agree, models, protocol

from ptxdsl.protocol.model import Unmodelled, walk

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
        ("ld.param.u32 %r0, [n]; shl.b32 %r1, %r0, 4; and.b32 %r1, %r1, 48; mov.b32 %r3, bars; add.s32 %r2, %r1, %r3;",
         "bars + 16*(n & 3)"),
        ("mov.u32 %r0, %tid.x; ld.param.u32 %r1, [n]; and.b32 %r1, %r1, 1; shl.b32 %r1, %r1, 6; add.s32 %r1, %r1, %r0; "
         "xor.b32 %r1, %r1, 95; mov.b32 %r3, data; add.s32 %r2, %r1, %r3;",
         "data + (((n & 1) * 64) ^ 64) + (tid.x ^ 31)"),
        ("ld.param.u32 %r0, [n]; add.s32 %r1, %r0, 1; mul.hi.u32 %r4, %r1, -1431655765; shr.u32 %r4, %r4, 1; "
         "mul.lo.s32 %r4, %r4, 24; shl.b32 %r0, %r0, 3; sub.s32 %r4, %r0, %r4; mov.b32 %r3, bars; "
         "add.s32 %r4, %r4, 8; add.s32 %r2, %r4, %r3;", "bars + 8*((n + 1) %u 3)"),
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
