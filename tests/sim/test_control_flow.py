"""Branches, divergence, loops, exits and calls of compiled warps."""

import numpy as np
import pytest
from harness import HEAD, Launch, compile_kernel, launch, run

from ptxdsl.diagnostics import CompileError
from ptxdsl.ptx.reader import read
from ptxdsl.sim import layout
from ptxdsl.sim.launch import compiled, simulate
from ptxdsl.sim.program.program import build

LANE = np.arange(32, dtype=np.uint32)


def kernel(body: str, extra: str = "") -> str:
    """A kernel with one array p0; %out is this thread's element's address, %t its number."""
    return f"""{extra}
.visible .entry k(.param .u64 p0) {{
.reg .b64 %out, %d<8>; .reg .b32 %t, %r<16>; .reg .pred %p<8>;
ld.param.u64 %out, [p0]; mov.u32 %t, %tid.x; mad.wide.u32 %out, %t, 4, %out;
{body}
}}"""


def result(body: str, threads: int = 32, extra: str = "", **options: int) -> np.ndarray:
    out = np.zeros(threads, np.uint32)
    launch(kernel(body, extra), [out], threads=threads, **options)
    return out


def test_both_sides_of_a_branch() -> None:
    body = """
    setp.lt.u32 %p1, %t, 10;
    @%p1 bra LOW;
    mov.u32 %r1, 7; bra.uni END;
    LOW: mov.u32 %r1, %t;
    END: st.global.u32 [%out], %r1; ret;"""
    assert (result(body, 48) == np.where(np.arange(48) < 10, np.arange(48), 7)).all()


def test_a_loop_that_each_lane_leaves_at_its_own_time() -> None:
    body = """
    mov.u32 %r1, 0; mov.u32 %r2, 0;
    L: setp.ge.u32 %p1, %r1, %t;
    @%p1 bra E;
    add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; bra L;
    E: st.global.u32 [%out], %r2; ret;"""
    assert (result(body) == LANE * (LANE - 1) // 2 * (LANE > 0)).all()


def test_lanes_that_parted_meet_again() -> None:
    """After the branch's two sides the whole warp votes together, with no barrier written."""
    body = """
    and.b32 %r3, %t, 3;
    setp.eq.u32 %p1, %r3, 0; @%p1 bra A;
    setp.eq.u32 %p2, %r3, 1; @%p2 bra B;
    bra END;
    A: mov.u32 %r2, 1; bra END;
    B: mov.u32 %r2, 2;
    END: activemask.b32 %r1; st.global.u32 [%out], %r1; ret;"""
    assert (result(body) == 0xFFFFFFFF).all()


def test_nested_divergence() -> None:
    body = """
    mov.u32 %r1, 0; mov.u32 %r5, 0;
    OUTER: and.b32 %r2, %t, 7; setp.gt.u32 %p1, %r1, %r2; @%p1 bra END;
    mov.u32 %r3, 0;
    INNER: setp.ge.u32 %p2, %r3, %r1; @%p2 bra NEXT;
    add.u32 %r5, %r5, 1; add.u32 %r3, %r3, 1; bra INNER;
    NEXT: add.u32 %r1, %r1, 1; bra OUTER;
    END: st.global.u32 [%out], %r5; ret;"""
    assert (result(body) == (LANE & 7) * ((LANE & 7) + 1) // 2).all()


def test_exits_under_a_guard() -> None:
    body = """
    setp.ge.u32 %p1, %t, 20; @%p1 exit;
    activemask.b32 %r1; st.global.u32 [%out], %r1; ret;"""
    assert (result(body) == np.where(LANE < 20, (1 << 20) - 1, 0)).all()


def test_a_lane_that_spins_lets_the_lane_that_it_waits_for_run() -> None:
    """Lane 0 spins at the lower address on a flag that lane 31 sets later in the text."""
    out = np.zeros(33, np.uint32)
    text = kernel("""
    ld.param.u64 %d1, [p0];
    setp.eq.u32 %p1, %t, 31; @%p1 bra SETS;
    SPIN: ld.volatile.global.u32 %r1, [%d1+128]; setp.eq.u32 %p2, %r1, 0; @%p2 bra SPIN;
    st.global.u32 [%out], %r1; ret;
    SETS: mov.u32 %r2, 5; mov.u32 %r3, 0;
    W: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 100; @%p3 bra W;
    st.global.u32 [%d1+128], %r2; st.global.u32 [%out], %r3; ret;""")
    for fuel in (7, 100, 1 << 24):
        out[:] = 0
        launch(text, [out], fuel=fuel)
        assert (out[:31] == 5).all() and out[31] == 100


def test_a_spin_lock_among_the_lanes_of_a_warp() -> None:
    out = np.zeros(2, np.uint32)
    launch(
        """
.visible .entry k(.param .u64 p0) {
.reg .b64 %d; .reg .b32 %r<9>; .reg .pred %p<3>;
ld.param.u64 %d, [p0];
L: atom.global.cas.b32 %r1, [%d], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
ld.volatile.global.u32 %r2, [%d+4]; add.u32 %r2, %r2, 3; st.volatile.global.u32 [%d+4], %r2;
atom.global.exch.b32 %r3, [%d], 0;
ret; }""",
        [out],
    )
    assert out.tolist() == [0, 96]


@pytest.mark.parametrize("fuel", [1, 3, 1000])
def test_fuel_only_interrupts(fuel: int) -> None:
    body = """
    mov.u32 %r1, 0; mov.u32 %r2, 0;
    L: add.u32 %r2, %r2, %t; add.u32 %r1, %r1, 1; and.b32 %r3, %t, 15; add.u32 %r3, %r3, 5;
    setp.lt.u32 %p1, %r1, %r3; @%p1 bra L;
    st.global.u32 [%out], %r2; ret;"""
    assert (result(body, fuel=fuel) == LANE * ((LANE & 15) + 5)).all()


def test_fuel_counts_blocks() -> None:
    made = Launch(compile_kernel(".visible .entry k() { L: bra L; }"))
    made.warps[0]["fuel"] = 10
    assert made.code.run(made.warps.ctypes.data) == layout.FUEL
    assert made.warps[0]["fuel"] == 0 and made.warps[0]["mask"] == 0xFFFFFFFF
    assert made.warps[0]["issued"] == 10 and made.warps[0]["retired"] == 320


def test_branch_tables() -> None:
    body = """
    and.b32 %r1, %t, 3;
    T: .branchtargets A, B, C, B;
    brx.idx %r1, T;
    A: mov.u32 %r2, 10; bra END;
    B: mov.u32 %r2, 20; bra END;
    C: mov.u32 %r2, 30;
    END: st.global.u32 [%out], %r2; ret;"""
    assert (result(body) == np.array([10, 20, 30, 20] * 8)).all()


def test_an_index_beyond_the_branch_table_is_a_fault() -> None:
    made = Launch(
        compile_kernel(kernel("T: .branchtargets A, B; brx.idx %t, T; A: ret; B: ret;")), [np.zeros(32, np.uint32)]
    )
    assert made.run() == layout.FAULT
    assert made.warps[0]["fault_kind"] == layout.BAD_ADDRESS and made.warps[0]["fault_lane"] == 2


def test_trap_names_its_lanes() -> None:
    made = Launch(compile_kernel(kernel("setp.eq.u32 %p1, %t, 9; @%p1 trap; ret;")), [np.zeros(32, np.uint32)])
    assert made.run() == layout.TRAPPED
    assert made.warps[0]["mask"] == 1 << 9
    assert made.code.sites[made.warps[0]["site"]].instruction.opcode == "trap"


def test_guards_and_negated_guards() -> None:
    values = np.arange(32, dtype=np.uint32)
    body = "setp.lt.u32 %p1, %a, 10; @%p1 mov.u32 %b, 1; @!%p1 mov.u32 %b, 2; @%p1 add.u32 %b, %b, %a;"
    found = run(body, {"%a": values}, {"%b": "u32"}, ".reg .pred %p1;")
    assert (found["%b"] == np.where(values < 10, 1 + values, 2)).all()


CALLEE = """
.func (.param .b32 f_ret) f(.param .b32 f_a, .param .align 8 .b8 f_b[16]) {
.reg .b32 %r<9>; .reg .pred %p<3>;
ld.param.b32 %r1, [f_a]; ld.param.v2.b32 {%r2, %r3}, [f_b]; ld.param.b32 %r4, [f_b+8];
setp.gt.u32 %p1, %r1, 5; @%p1 bra BIG;
add.u32 %r5, %r1, %r2; st.param.b32 [f_ret], %r5; ret;
BIG: add.u32 %r5, %r3, %r4; st.param.b32 [f_ret], %r5; ret;
}
"""


def test_calls_with_parameters_in_registers_and_early_returns() -> None:
    body = """
    mov.u32 %r7, 100;
    { .param .b32 a; .param .align 8 .b8 b[16]; .param .b32 r;
    st.param.b32 [a], %t; st.param.v2.b32 [b], {%r7, %t}; st.param.b32 [b+8], 1;
    call.uni (r), f, (a, b);
    ld.param.b32 %r1, [r]; }
    { .param .b32 a; .param .align 8 .b8 b[16]; .param .b32 r;
    st.param.b32 [a], 0; st.param.v2.b32 [b], {%r1, %t}; st.param.b32 [b+8], 1;
    call.uni (r), f, (a, b);
    ld.param.b32 %r2, [r]; }
    st.global.u32 [%out], %r2; ret;"""
    assert (result(body, extra=CALLEE) == np.where(LANE > 5, LANE + 1, LANE + 100)).all()


def test_a_parameter_whose_pieces_overlap_is_in_memory() -> None:
    body = """
    { .param .b64 a; .param .b32 r;
    mov.b64 %d1, {%t, 77}; st.param.b64 [a], %d1;
    call.uni (r), g, (a);
    ld.param.b32 %r1, [r]; }
    st.global.u32 [%out], %r1; ret;"""
    callee = """
.func (.param .b32 ret) g(.param .b64 a) { .reg .b32 %r<4>;
ld.param.b32 %r1, [a]; ld.param.b32 %r2, [a+4]; add.u32 %r3, %r1, %r2; st.param.b32 [ret], %r3; ret; }"""
    assert (result(body, extra=callee) == LANE + 77).all()


def test_register_parameters_and_a_guarded_call() -> None:
    callee = ".func (.reg .b32 r) g(.reg .b32 a) { add.u32 r, a, 3; ret; }"
    body = "mov.u32 %r1, 0; setp.lt.u32 %p1, %t, 4; @%p1 call (%r1), g, (%t); st.global.u32 [%out], %r1; ret;"
    assert (result(body, extra=callee) == np.where(LANE < 4, LANE + 3, 0)).all()


def failure(text: str, kernel: str | None = None) -> tuple[str, str]:
    with pytest.raises(CompileError) as caught:
        build(read(HEAD + text), kernel)
    return caught.value.diagnostics[0].code, caught.value.diagnostics[0].message


def test_recursion_is_refused() -> None:
    text = ".func f() { call g; ret; }\n.func g() { call f; ret; }\n.visible .entry k() { call f; ret; }"
    code, message = failure(".func g();\n" + text)
    assert code == "E1111" and "k -> f -> g -> f" in message


def test_calls_that_double_without_end_are_refused() -> None:
    lines = [".func f0() { .reg .b32 %r<2>; add.u32 %r1, %r1, 1; ret; }"]
    lines += [f".func f{i}() {{ call f{i - 1}; call f{i - 1}; ret; }}" for i in range(1, 40)]
    assert failure("\n".join([*lines, ".visible .entry k() { call f39; ret; }"]))[0] == "E1113"


def test_an_unknown_kernel_is_an_error_that_lists_the_others() -> None:
    with pytest.raises(CompileError) as caught:
        build(read(HEAD + ".visible .entry a() { ret; } .visible .entry b() { ret; }"), "c")
    assert "a, b" in (caught.value.diagnostics[0].help or "")


def test_a_parameter_of_a_call_of_no_type() -> None:
    with pytest.raises(CompileError) as caught:
        compile_kernel(kernel("{ .param .b32 a; st.param.b [a], %t; } ret;"))
    assert [d.code for d in caught.value.diagnostics] == ["E1110"]


def test_everything_unsupported_is_reported_at_once() -> None:
    text = kernel("tex.1d.v4.f32.s32 {%r1,%r2,%r3,%r4}, [%out, {%t}];\nadd.u64 %d1, %d2, %t;\nret;")
    with pytest.raises(CompileError) as caught:
        compile_kernel(text)
    assert [d.code for d in caught.value.diagnostics] == ["E1110", "E1110"]
    assert "%t" in caught.value.diagnostics[1].message


def test_improved_code_takes_over_between_two_calls() -> None:
    body = """mov.u32 %r1, 0; mov.u32 %r2, 0;
    L: add.u32 %r2, %r2, %t; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra L;
    st.global.u32 [%out], %r2; ret;"""
    out = np.zeros(32, np.uint32)
    made = Launch(compile_kernel(kernel(body)), [out])
    made.warps[0]["fuel"] = 50
    assert made.code.run(made.warps.ctypes.data) == layout.FUEL
    made.code.improve()
    assert made.run() == layout.ALL_STOPPED
    assert (out == 100 * LANE).all()


def test_code_that_runs_long_is_compiled_better_and_gives_the_same() -> None:
    body = """mov.u32 %r1, 0; mov.u32 %r2, 0;
    L: mad.lo.u32 %r2, %r2, 3, %t; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 200000; @%p1 bra L;
    st.global.u32 [%out], %r2; ret;"""
    text = HEAD + kernel(body)
    outs = np.zeros((3, 32), np.uint32)
    improved = []
    for out in outs:
        assert simulate(text, grid=1, block=32, arguments=[out]).finished
        improved.append(compiled(text, None).improved)
    assert improved == [False, False, True], "in the third run: it has executed enough by then"
    assert (outs[1:] == outs[0]).all() and outs[0].any()
