"""What the checker sees in PTX: roles, loops and rings."""

from __future__ import annotations

from textwrap import dedent

from ptx_protocols import HEAD, agree, protocol

from ptxdsl.effects import Kind
from ptxdsl.protocol.from_ptx import kernel_model
from ptxdsl.protocol.model import Op
from ptxdsl.ptx.reader import read

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


def test_what_ends_in_a_trap_is_left_out():
    """PTX ISA, "trap": it aborts the execution of the grid, so nobody waits for what would have come behind it."""
    body = """
    ld.param.u32 %r1, [n];
    bar.sync 0;
    setp.gt.u32 %p0, %r1, 8;
    @%p0 bra BAD;
    setp.eq.u32 %p1, %r1, 7;
    @%p1 trap;
    mbarrier.arrive.shared.b64 _, [bars];
    @%p1 bra WORSE;
    bar.sync 0;
    ret;
    BAD: mbarrier.arrive.shared.b64 _, [bars+8];
    bra.uni WORSE;
    WORSE: trap;
    exit;
    """
    agree(body, "cta-sync\nbar-arrive [bars]\ncta-sync")


def test_a_kernel_that_only_traps():
    agree("bar.sync 0;\n trap;\n bar.sync 0;", "cta-sync")


def test_an_exit_or_a_trap_is_an_exit():
    body = """
    ld.param.u32 %r1, [n];
    bar.sync 0;
    setp.gt.u32 %p0, %r1, 8;
    @%p0 exit;
    trap;
    """
    agree(body, "cta-sync")


def test_a_time_out_that_traps_is_no_end_of_a_wait():
    body = """
    mov.u32 %r1, 0;
    W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [bars], 0;
    @%p0 bra ON;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 1000;
    @%p1 bra W;
    trap;
    ON: bar.sync 0;
    """
    agree(body, "bar-wait [bars] parity=0\ncta-sync")


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


def test_a_ring_with_another_tail_is_told_by_its_positions():
    """One copy a turn, in the order of the text; of the last two, which arrive elsewhere, those behind the loop."""
    expected = """
    v0 = 1
    v1 = 0
    v2 = 0
    loop L2 v3 in 0 ..< n:
      if (v1 == 0) & ((-v3 + n) < 3):
        v2 = 1
      if v2 != 0:
        if v1 == 0:
          bar-wait [bars+24] parity=v0
          write writes [data]:4
          bar-arrive [bars]
        else:
          bar-wait [bars+32] parity=v0
          write writes [data+128]:4
          bar-arrive [bars+16]
      else:
        if v1 == 0:
          bar-wait [bars+24] parity=v0
          write writes [data]:4
          bar-arrive [bars]
        else:
          if v1 == 1:
            bar-wait [bars+32] parity=v0
            write writes [data+128]:4
            bar-arrive [bars+8]
          else:
            bar-wait [bars+40] parity=v0
            write writes [data+256]:4
            bar-arrive [bars+16]
            v0 = v0 ^ 1
      v1 = select(v1 == 2, 0, v1 + 1)
    """
    assert numbered(protocol(unrolled("bars+16"))) == numbered(dedent(expected))


def test_an_unrolled_ring_can_be_taken_as_it_is():
    module = read(HEAD.format(outside="") + unrolled("bars+16") + "\n}\n", "k.ptx")
    (function,) = module.kernels.values()
    found = kernel_model(module, function, by_position=False)
    waits = [node for node in found.nodes if isinstance(node, Op) and node.kind is Kind.BAR_WAIT]
    assert len(waits) == 5 and not found.by_position


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


# ------------------------------------------------------------------------------------- steps, and what is kept behind


def test_a_loop_by_twos_that_the_compiler_has_turned_round():
    """``for i in range(0, n, 2)``: it goes on while 3 or more are left, less the 2 of the turn."""
    body = """
    ld.param.u32 %r1, [n];
    setp.lt.s32 %p0, %r1, 1;
    @%p0 bra E;
    L: bar.sync 0;
    add.s32 %r1, %r1, -2;
    add.s32 %r3, %r1, 2;
    setp.gt.u32 %p0, %r3, 2;
    @%p0 bra L;
    E:
    """
    assert numbered(protocol(body)) == numbered("loop L1 v1 in 0 ..< n, 2:\n  cta-sync")


def test_a_loop_from_the_number_of_the_warp_on():
    """``i = warp; while i < n: …; i += 4``"""
    body = """
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    shr.u32 %r2, %r2, 5;
    mov.b32 %r5, bars;
    setp.ge.s32 %p0, %r2, %r1;
    @%p0 bra E;
    L: shl.b32 %r3, %r2, 3;
    add.s32 %r4, %r5, %r3;
    mbarrier.arrive.shared.b64 _, [%r4];
    add.s32 %r2, %r2, 4;
    setp.lt.s32 %p0, %r2, %r1;
    @%p0 bra L;
    E:
    """
    expected = """
    v0 = tid.x >>u 5
    loop L1:
      if v0 >= n:
        leave L1
      bar-arrive [bars + 8*v0]
      v0 = v0 + 4
    """
    assert numbered(protocol(body)) == numbered(dedent(expected))


def test_what_a_variable_was_in_the_last_turn():
    """Behind the loop it arrives at the last stage that it was at, not at the next one."""
    body = """
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %nctaid.x;
    mov.b32 %r4, 0;
    mov.b32 %r5, bars;
    setp.ge.s32 %p0, %r2, %r1;
    @%p0 bra E;
    L: bar.sync 0;
    shl.b32 %r6, %r4, 3;
    add.s32 %r7, %r5, %r6;
    xor.b32 %r4, %r4, 1;
    add.s32 %r2, %r2, %r3;
    setp.lt.s32 %p0, %r2, %r1;
    @%p0 bra L;
    mbarrier.arrive.shared.b64 _, [%r7];
    E:
    """
    expected = """
    if ctaid_x < n:
      v0 = ctaid_x, v1 = 0
      loop L2:
        if v0 >= n:
          leave L2
        cta-sync
        v0 = nctaid_x + v0, v1 = v1 ^ 1, v3 = v1
      bar-arrive [bars + 8*v3]
    """
    assert numbered(protocol(body)) == numbered(dedent(expected))


def test_an_unrolled_loop_that_is_left_between_its_copies():
    """``do: … while ++i < n`` twice a turn; the second copy arrives elsewhere."""
    body = """
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
    setp.lt.s32 %p0, %r1, 1;
    @%p0 bra E;
    L: mbarrier.arrive.shared.b64 _, [bars];
    add.s32 %r3, %r2, 1;
    setp.ge.s32 %p0, %r3, %r1;
    @%p0 bra E;
    mbarrier.arrive.shared.b64 _, [bars+24];
    add.s32 %r2, %r2, 2;
    setp.lt.s32 %p0, %r2, %r1;
    @%p0 bra L;
    E:
    """
    expected = """
    v0 = 0
    loop L1 v2 in 0 ..< n:
      if v0 == 0:
        bar-arrive [bars]
      else:
        bar-arrive [bars+24]
      v0 = select(v0 == 1, 0, v0 + 1)
    """
    assert numbered(protocol(body)) == numbered(dedent(expected))
    other = body.replace("add.s32 %r3, %r2, 1;", "add.s32 %r3, %r2, 3;")  # it does not ask the same behind each
    assert "..<" not in protocol(other) and protocol(other).count("bar-arrive") == 2
    behind = "setp.eq.s32 %p0, %r2, 0;\n@%p0 ret;\nbar.sync 0;"  # how many turns of the unrolled loop there were
    assert "..<" not in protocol(body + behind)


def test_what_a_loop_assigns_is_no_other_in_front_of_it():
    """The same product is what a variable is from a loop's second turn on, and is asked about in front of the loop."""
    body = """
    ld.param.u32 %r1, [n];
    mul.lo.s32 %r2, %r1, 3;
    setp.lt.s32 %p0, %r2, 7;
    @%p0 bra A;
    mbarrier.arrive.shared.b64 _, [bars];
    A: setp.lt.s32 %p0, %r1, 1;
    @%p0 bra E;
    mov.u32 %r3, 0;
    mov.u32 %r4, 0;
    L: setp.eq.s32 %p0, %r4, 3;
    @%p0 bra B;
    mbarrier.arrive.shared.b64 _, [bars+8];
    B: mov.u32 %r4, %r2;
    add.s32 %r3, %r3, 1;
    setp.lt.s32 %p0, %r3, %r1;
    @%p0 bra L;
    E:
    """
    expected = """
    if (n * 3) >= 7:
      bar-arrive [bars]
    v0 = 0
    loop L1 v1 in 0 ..< n:
      if v0 != 3:
        bar-arrive [bars+8]
      v0 = n * 3
    """
    assert numbered(protocol(body)) == numbered(dedent(expected))


def test_copies_of_a_signed_number_are_turns_if_it_is_not_negative():
    """``while left >= 2`` does nothing of a negative number, but then there is one left: it is not 0."""
    body = """
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %r1;
    setp.lt.s32 %p0, %r2, 2;
    @%p0 bra R;
    L: mbarrier.arrive.shared.b64 _, [bars];
    mbarrier.arrive.shared.b64 _, [bars+8];
    add.s32 %r2, %r2, -2;
    setp.ge.s32 %p0, %r2, 2;
    @%p0 bra L;
    R: setp.eq.s32 %p0, %r2, 0;
    @%p0 bra E;
    mbarrier.arrive.shared.b64 _, [bars];
    E:
    """
    assert "..<" not in protocol(body)
    guarded = body.replace("mov.u32", "setp.lt.s32 %p0, %r1, 1;\n@%p0 bra E;\nmov.u32")
    assert "in 0 ..< n:" in protocol(guarded) and "bar-arrive [bars + 8*" in protocol(guarded)


def test_a_ring_that_a_turn_goes_round_twice():
    """Four copies of a ring of two: the parity is a constant in each."""
    wait = "{.reg .pred q; W: mbarrier.try_wait.parity.shared::cta.b64 q, [bars+%d], %d; @!q bra W;}"
    copies = [
        f"{wait % (16 + 8 * (copy % 2), 1 - copy // 2)}\nmbarrier.arrive.shared.b64 _, [bars+{8 * (copy % 2)}];\n"
        for copy in range(4)
    ]
    rest = "".join(f"setp.eq.s32 %p2, %r2, {k};\n@%p2 bra E;\n{copies[k]}" for k in range(3))
    body = f"""
    ld.param.u32 %r1, [n];
    max.s32 %r2, %r1, 0;
    setp.lt.s32 %p0, %r1, 4;
    @%p0 bra T;
    L:
    {"".join(copies)}
    add.s32 %r2, %r2, -4;
    setp.gt.u32 %p1, %r2, 3;
    @%p1 bra L;
    T: {rest}
    E:
    """
    expected = """
    v0 = 0, v1 = 0
    loop L2 v3 in 0 ..< n:
      bar-wait [bars+16 + 8*v0] parity=-v1 + 1
      bar-arrive [bars + 8*v0]
      v0 = select(v0 == 1, 0, v0 + 1), v1 = select(v0 == 1, v1 ^ 1, v1)
    """
    assert numbered(protocol(body)) == numbered(dedent(expected))


SIGNED = """
    ld.param.u32 %r1, [n];
    mov.u32 %r2, {start};
    mov.b32 %r9, bars;
    setp.ge.s32 %p0, %r2, %r1;
    @%p0 bra E;
    L: mul.hi.s32 %r3, %r2, 1431655766;
    shr.u32 %r4, %r3, 31;
    add.s32 %r3, %r3, %r4;
    mul.lo.s32 %r3, %r3, 3;
    sub.s32 %r3, %r2, %r3;
    setp.lt.s32 %p1, %r3, 0;
    add.s32 %r4, %r3, 3;
    selp.b32 %r3, %r4, %r3, %p1;
    shl.b32 %r3, %r3, 3;
    add.s32 %r3, %r9, %r3;
    mbarrier.arrive.shared.b64 _, [%r3];
    add.s32 %r2, %r2, 1;
    setp.lt.s32 %p0, %r2, %r1;
    @%p0 bra L;
    E:
"""


def test_a_remainder_of_signed_numbers():
    """It is that of an unsigned one where the numbers are those of turns; where they may be negative nobody says so."""
    assert "bar-arrive [bars + 8*(v1 %u 3)]" in numbered(protocol(SIGNED.format(start=0)))
    assert "%u 3" not in protocol(SIGNED.format(start=-5))


def test_a_wait_where_a_loop_begins():
    """The loop that polls and the one around it have the same label."""
    body = """
    ld.param.u32 %r1, [n];
    setp.lt.s32 %p0, %r1, 1;
    @%p0 bra E;
    mov.u32 %r2, 0;
    L: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bars], 0;
    @!%p1 bra L;
    mbarrier.arrive.shared.b64 _, [bars+8];
    add.s32 %r2, %r2, 1;
    setp.lt.s32 %p0, %r2, %r1;
    @%p0 bra L;
    E:
    """
    expected = """
    loop L0 v1 in 0 ..< n:
      bar-wait [bars] parity=0
      bar-arrive [bars+8]
    """
    assert numbered(protocol(body)) == numbered(dedent(expected))


def test_a_parity_in_a_bit_of_the_turn():
    """``i & 2``, moved down or compared with 0: it comes round every four turns."""
    body = """
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
    setp.lt.s32 %p0, %r1, 1;
    @%p0 bra E;
    L: and.b32 %r3, %r2, 2;
    shr.u32 %r4, %r3, 1;
    W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bars], %r4;
    @!%p1 bra W;
    mbarrier.arrive.shared.b64 _, [bars+8], %r3;
    add.s32 %r2, %r2, 1;
    setp.lt.s32 %p0, %r2, %r1;
    @%p0 bra L;
    E:
    """
    expected = """
    loop L0 v1 in 0 ..< n:
      bar-wait [bars] parity=(v1 >>u 1) & 1
      bar-arrive [bars+8] count=((v1 >>u 1) & 1) * 2
    """
    assert numbered(protocol(body)) == numbered(dedent(expected))


def test_copies_that_are_left_over_in_a_loop_of_their_own():
    """Unrolled by four up to ``n & ~3``, one by one from there on: as one loop, with the parity of its turn."""
    wait = "{.reg .pred q; W: mbarrier.try_wait.parity.shared::cta.b64 q, [bars], %s; @!q bra W;}"
    copies = "\n".join(f"{wait % (copy % 2)}\nmbarrier.arrive.shared.b64 _, [bars+8];" for copy in range(4))
    body = f"""
    ld.param.u32 %r1, [n];
    setp.lt.s32 %p0, %r1, 1;
    @%p0 bra E;
    and.b32 %r2, %r1, 3;
    mov.u32 %r3, 0;
    add.s32 %r4, %r1, -1;
    setp.lt.u32 %p1, %r4, 3;
    @%p1 bra T;
    sub.s32 %r5, %r1, %r2;
    L:
    {copies}
    add.s32 %r3, %r3, 4;
    add.s32 %r5, %r5, -4;
    setp.ne.s32 %p2, %r5, 0;
    @%p2 bra L;
    T: setp.eq.s32 %p3, %r2, 0;
    @%p3 bra E;
    M: and.b32 %r6, %r3, 1;
    {wait % "%r6"}
    mbarrier.arrive.shared.b64 _, [bars+8];
    add.s32 %r3, %r3, 1;
    add.s32 %r2, %r2, -1;
    setp.ne.s32 %p4, %r2, 0;
    @%p4 bra M;
    E:
    """
    expected = """
    if n >= 1:
      v0 = 0
      loop L1 v2 in 0 ..< n:
        bar-wait [bars] parity=v0
        bar-arrive [bars+8]
        v0 = select(v0 == 1, 0, v0 + 1)
    """
    assert numbered(protocol(body)) == numbered(dedent(expected))
    other = body.replace("and.b32 %r6, %r3, 1;", "not.b32 %r6, %r3; and.b32 %r6, %r6, 1;")  # the other parity
    assert protocol(other).count("bar-wait") == 7  # four copies, and three that are left over
    without = body.replace("setp.lt.s32 %p0, %r1, 1;", "setp.lt.s32 %p0, %r1, 0;")  # it may begin with 2^32 turns
    assert "..< n:" not in protocol(without)


def test_copies_that_are_left_over_of_three():
    """Unrolled by three: what is left over is ``((n - 1) % 3 + 1) % 3``, which is n % 3 as n is at least 1."""
    body = """
    ld.param.u32 %r1, [n];
    setp.lt.s32 %p0, %r1, 1;
    @%p0 bra E;
    add.s32 %r4, %r1, -1;
    rem.u32 %r2, %r4, 3;
    add.s32 %r2, %r2, 1;
    rem.u32 %r2, %r2, 3;
    mov.u32 %r3, 0;
    setp.lt.u32 %p1, %r4, 2;
    @%p1 bra T;
    sub.s32 %r5, %r1, %r2;
    L:
    mbarrier.arrive.shared.b64 _, [bars];
    mbarrier.arrive.shared.b64 _, [bars+8];
    mbarrier.arrive.shared.b64 _, [bars+16];
    add.s32 %r5, %r5, -3;
    setp.ne.s32 %p2, %r5, 0;
    @%p2 bra L;
    T: mov.b32 %r7, bars;
    setp.eq.s32 %p3, %r2, 0;
    @%p3 bra E;
    M: mbarrier.arrive.shared.b64 _, [%r7];
    add.s32 %r7, %r7, 8;
    add.s32 %r2, %r2, -1;
    setp.ne.s32 %p4, %r2, 0;
    @%p4 bra M;
    E:
    """
    expected = """
    if n >= 1:
      v0 = 0
      loop L1 v2 in 0 ..< n:
        bar-arrive [bars + 8*v0]
        v0 = select(v0 == 2, 0, v0 + 1)
    """
    assert numbered(protocol(body)) == numbered(dedent(expected))


def test_what_a_loop_of_copies_that_are_left_over_carries_on():
    """The stage that the rest steps itself begins with 0; it is no constant in the copies."""
    copies = "\n".join(f"mbarrier.arrive.shared.b64 _, [bars+{8 * (copy % 2)}];\nbar.sync 0;" for copy in range(4))
    body = f"""
    ld.param.u32 %r1, [n];
    setp.lt.s32 %p0, %r1, 1;
    @%p0 bra E;
    and.b32 %r2, %r1, 3;
    mov.b32 %r7, bars;
    add.s32 %r4, %r1, -1;
    setp.lt.u32 %p1, %r4, 3;
    @%p1 bra T;
    sub.s32 %r5, %r1, %r2;
    L:
    {copies}
    add.s32 %r5, %r5, -4;
    setp.ne.s32 %p2, %r5, 0;
    @%p2 bra L;
    T: mov.u32 %r3, 0;
    setp.eq.s32 %p3, %r2, 0;
    @%p3 bra E;
    M: shl.b32 %r6, %r3, 3;
    add.s32 %r6, %r7, %r6;
    mbarrier.arrive.shared.b64 _, [%r6];
    bar.sync 0;
    setp.eq.s32 %p5, %r3, 1;
    add.s32 %r8, %r3, 1;
    selp.b32 %r3, 0, %r8, %p5;
    add.s32 %r2, %r2, -1;
    setp.ne.s32 %p4, %r2, 0;
    @%p4 bra M;
    E:
    """
    text = protocol(body)
    assert "..< n:" in text and text.count("bar-arrive [bars + 8*v") == 3  # those of the rest, each by its variable
    assert text.count("select(") >= 3
