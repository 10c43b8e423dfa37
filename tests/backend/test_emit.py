"""What a user sees of the backend: the PTX of small kernels, the line table, determinism."""

from __future__ import annotations

import re
from collections.abc import Callable

import every_op
import pytest
from backend_kernels import PIPE, SOURCE, Build, body_of, compile_tir, i32, kernel_a, line_span, pipe_kernel, ptx_of

from ptxdsl.backend.assemble import assemble
from ptxdsl.options import Options
from ptxdsl.signature import KernelSignature, StructParam, TensorMapParam
from ptxdsl.source import Source, Span
from ptxdsl.tir import BF16, F32, I1, I32, I64, Const, Kernel, Module, Op, Value, ptr

WAIT_IN_LOOP = "{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, %s; @!p bra W;}"
WAIT = "{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, %s; @p bra D; bra W; D:}"


@pytest.mark.parametrize("unrolled", [False, True], ids=["counter", "unrolled"])
def test_kernel_a(golden: Callable[[str, str], None], unrolled: bool) -> None:
    golden(f"kernel_a_{'unrolled' if unrolled else 'counter'}.ptx", ptx_of(kernel_a(unrolled)))


@pytest.mark.usefixtures("ptxas")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_ptxas_takes_every_operation(arch: str) -> None:
    float8 = arch != "sm_80"
    kernels = [
        *every_op.arithmetic(), *every_op.conversions(float8), *every_op.vectors(), *every_op.constants(),
        *every_op.pointers(), *every_op.controls(),
    ]  # fmt: skip
    module = Module([k.kernel() for k in kernels])
    emitted = compile_tir(module, arch=arch)
    assert set(assemble(emitted.ptx, Options(arch=arch), emitted.line_map).resources) == {k.name for k in kernels}


def instructions(body: Callable[[Build, Value, Value], None], **options: object) -> list[str]:
    return body_of(ptx_of(pipe_kernel(body), **options))[:-1]  # without ret


def test_waits_print_constant_addresses_and_phases_in_place() -> None:
    attrs = {**PIPE, "side": "empty", "subs": 2, "sub": 1}
    assert instructions(lambda k, bars, _: k("pipe.wait", None, bars, i32(2), i32(1), **attrs)) == [
        WAIT % "[k_bars+40], 1"
    ]


def test_waits_at_run_time_keep_constant_bytes_out_of_registers() -> None:
    def body(k: Build, bars: Value, index: Value) -> None:
        base = k.at(bars, i32(3), 8)
        k("pipe.wait", None, base, index, i32(0), **PIPE, side="empty", subs=1, sub=0)

    assert instructions(body) == [
        "ld.param.b32 %r2, [k_param_0];",
        "shl.b32 %r3, %r2, 3;",
        "mov.b32 %r4, k_bars;",
        "add.s32 %r1, %r4, %r3;",
        WAIT % "[%r1+24], 0",
    ]


def test_in_a_loop_the_table_stays_in_a_register() -> None:
    def body(k: Build, bars: Value, index: Value) -> None:
        def turn(_: Op, i: Value) -> None:
            k("pipe.wait", None, bars, i32(2), i32(0), **PIPE, side="empty", subs=1, sub=0)

        k.for_(i32(0), index, [], turn)

    lines = instructions(body)
    head = next(position for position, line in enumerate(lines) if line.endswith(":"))
    moves = [move for line in lines[:head] if (move := re.fullmatch(r"mov.b32 (%r\d+), k_bars;", line))]
    assert len(moves) == 1
    assert lines[head + 1] == WAIT_IN_LOOP % f"[{moves[0][1]}+16], 0"


def test_probe_tests_once_before_it_waits() -> None:
    def body(k: Build, bars: Value, _: Value) -> None:
        k("pipe.wait", None, bars, i32(0), i32(0), **PIPE, side="full", subs=1, sub=0)

    (line,) = instructions(body, wait="probe")
    assert line.index("test_wait") < line.index("@p bra D") < line.index("W: mbarrier.try_wait")


def test_the_kernels_own_wait_wins() -> None:
    k = pipe_kernel(lambda k, bars, _: k("pipe.wait", None, bars, i32(0), i32(0), **PIPE, side="full") and None)
    k.signature["wait"] = "probe"
    assert "test_wait" in ptx_of(k, wait="try")


def test_arrive_throws_the_state_away() -> None:
    lines = instructions(lambda k, bars, _: k("pipe.arrive", None, bars, i32(1), **PIPE, side="full") and None)
    assert lines == ["mbarrier.arrive.shared::cta.b64 _, [k_bars+8];"]


COMMIT = "tcgen05.commit.cta_group::%d.mbarrier::arrive::one.shared::cluster.b64 [k_bars];"


def commit(group: int, *elect: Value) -> list[str]:
    return instructions(
        lambda k, bars, index: k("pipe.commit_mma", None, bars, i32(0), *elect, **PIPE, side="full", cta_group=group),
        arch="sm_100a",
    )


def test_commit_mma_elects_one_lane() -> None:
    assert commit(1) == ["{.reg .pred p; elect.sync _|p, -1; @p " + COMMIT % 1 + "}"]


def test_commit_mma_of_a_known_lane() -> None:
    assert commit(2, i32(1)) == [COMMIT % 2]
    assert commit(2, i32(0)) == []


def test_commit_mma_of_a_lane_known_at_run_time() -> None:
    def body(k: Build, bars: Value, index: Value) -> None:
        k("pipe.commit_mma", None, bars, i32(0), index, **PIPE, side="full", cta_group=2)

    assert instructions(body, arch="sm_100a") == [
        "ld.param.b32 %r1, [k_param_0];",
        "{.reg .pred p; setp.ne.b32 p, %r1, 0; @p " + COMMIT % 2 + "}",
    ]


@pytest.mark.parametrize(("stages", "count"), [(1, 1), (2, 5), (3, 5)])
def test_step(stages: int, count: int) -> None:
    k = Build()
    out, index, phase = k.pointer("out", I32), k.scalar("index"), k.scalar("phase")
    k.op("pipe.step", [index, phase, i32(0)], [I32] * 3, pipeline="p", stages=stages)
    step = k.body.ops[-1]
    for place, value in enumerate(step.results[:2]):
        k.store(k.at(out, i32(place)), value)
    lines = [line for line in body_of(ptx_of(k)) if not line.startswith(("ld.param", "st.global", "ret"))]
    assert len(lines) == count, lines


def test_modulo_of_a_known_non_negative_value_is_a_mask() -> None:
    k = Build()
    out = k.pointer("out", I32)
    k.store(out, k("mod.s", I32, k("tid_x", I32), i32(32)))
    assert "and.b32" in ptx_of(k) and "rem" not in ptx_of(k)


def test_contraction_is_an_option() -> None:
    def kernel() -> Build:
        k = Build()
        out, x, y = k.pointer("out"), k.scalar("x", F32), k.scalar("y", F32)
        k.store(out, k("fadd", F32, k("fmul", F32, x, y), x))
        return k

    assert "fma.rn.f32" in ptx_of(kernel())
    assert "fma" not in ptx_of(kernel(), contract=False)


def test_stages_of_an_unrolled_ring_share_an_address() -> None:
    k = Build()
    src, n = k.pointer("src"), k.scalar("n")
    for offset in range(3):
        i = k("add", I32, n, i32(offset), nsw=True)
        k.store(k.at(src, k("mul", I32, i, i32(32), nsw=True)), Const(F32, float(offset)))
    stores = [line.split("[")[1] for line in body_of(ptx_of(k)) if line.startswith("st")]
    assert stores == ["%rd3], 0;", "%rd3+128], 1065353216;", "%rd3+256], 1073741824;"]


def test_signature_becomes_directives() -> None:
    k = Build("k", threads=(96, 1, 1), min_blocks=2, max_registers=64, cluster=(2, 1, 1))
    ptx = ptx_of(k)
    for directive in (".reqntid 96, 1, 1", ".minnctapersm 2", ".maxnreg 64", ".reqnctapercluster 2, 1, 1"):
        assert directive in ptx
    assert ".maxntid 128, 1, 1" in ptx_of(Build("k", max_threads=(128, 1, 1)))


def test_parameters() -> None:
    k = Build("k")
    out, flag, half = k.pointer("out", BF16), k.scalar("flag", I1), k.scalar("half", BF16)
    map_ = Value(ptr("param"), "map")
    k.store(out, k("select", BF16, flag, half, Const(BF16, 0.0)))
    k("store", None, out, k("ptr.toint", I64, map_), align=8)
    signature = KernelSignature("k", (StructParam("s", "S", tuple(k.signature_params)), TensorMapParam("map")))
    kernel = Kernel("k", [*k.params, map_], k.body, signature, line_span(1))
    ptx = compile_tir(Module([kernel])).ptx
    entry = ptx[ptx.index(".entry") : ptx.index("{")]
    assert [" ".join(line.split()) for line in entry.splitlines()[1:-1]] == [
        ".param .u64 .ptr .global .align 2 k_param_0,",
        ".param .u8 k_param_1,",
        ".param .align 2 .b8 k_param_2[2],",
        ".param .align 64 .b8 k_param_3[128]",
    ]
    assert ".local" not in ptx  # the map is not copied


def test_two_kernels_share_nothing() -> None:
    kernels = [kernel_a(False), kernel_a(False)]
    kernels[1].name = "second"
    ptx = compile_tir(Module([k.kernel() for k in kernels])).ptx
    first, second = ptx.split(".visible .entry")[1:]
    assert "kernel_a_bars" in first and "kernel_a" not in second and "second_bars" in second


def test_names_of_shared_memory_are_legal_and_unique() -> None:
    k = Build("k")
    out = k.pointer("out", I32)
    for name in ("a b", "a-b", "ä", ""):
        shared = k("shared.alloc", ptr("shared"), bytes=4, align=4, name=name)
        k("store", None, shared, i32(1), align=4, volatile=True)
        k.store(out, k("load", I32, shared, align=4, volatile=True))
    names = re.findall(r"\.shared .*? (\S+)\[4\]", ptx_of(k))
    assert names == ["k_a_b", "k_a_b_2", "k__", "k_shared"]


def test_ptx_is_the_same_every_time() -> None:
    first = compile_tir(kernel_a(True).module())
    compile_tir(kernel_a(False).module(), arch="sm_100a")
    assert compile_tir(kernel_a(True).module()) == first


def test_line_map_covers_every_line_and_finds_the_operation() -> None:
    k = Build()
    out = k.pointer("out", I32)
    k("trap", None)
    k.store(out, i32(1))
    emitted = compile_tir(k.module())
    lines = emitted.ptx.splitlines()
    assert len(lines) == len(emitted.line_map)
    place = next(n for n, line in enumerate(lines) if "trap" in line)
    span = emitted.line_map[place]
    assert span is not None and span.line == 2 and span.source is SOURCE


def test_lineinfo_names_every_file_as_given() -> None:
    k = Build()
    out = k.pointer("out", I32)
    k("store", None, out, i32(1), align=4, volatile=True)
    other = Source("lib/ring.pdsl", "def f():\n    pass\n")
    k.body.ops.append(Op("store", [out, i32(2)], [], {"align": 4, "volatile": True}, Span(other, 9, 17)))
    emitted = compile_tir(k.module(), lineinfo=True)
    assert re.findall(r'\.file\s+\d+ "(.*)"', emitted.ptx) == ["test.pdsl", "lib/ring.pdsl"]
    assert re.findall(r"\.loc\s+(\d+ \d+)", emitted.ptx) == ["1 2", "2 2"]
    place = next(n for n, line in enumerate(emitted.ptx.splitlines()) if re.search(r"st.*, 2;", line))
    assert emitted.line_map[place] == Span(other, 9, 17)
    assert ".loc" not in ptx_of(k)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("C:\\k.pdsl", r"C:\134k.pdsl"),
        ("j\u00fcrgen/k.pdsl", r"j\303\274rgen/k.pdsl"),
        ('a"b%20.pdsl', "a'b%20.pdsl"),
        ("two\nlines\udcff.pdsl", r"two\012lines\377.pdsl"),
    ],
)
def test_whatever_a_file_is_called_its_lines_are_found(name: str, written: str, ptxas: object) -> None:
    other = Source(name, "def f():\n    pass\n")
    k = Build()
    out = k.pointer("out", I32)
    k.body.ops.append(Op("store", [out, i32(2)], [], {"align": 4, "volatile": True}, Span(other, 9, 17)))
    emitted = compile_tir(k.module(), lineinfo=True)
    place = next(n for n, line in enumerate(emitted.ptx.splitlines()) if re.search(r"st.*, 2;", line))
    assert emitted.line_map[place] == Span(other, 9, 17)
    assert re.findall(r'\.file\s+\d+ "(.*)"', emitted.ptx) == ["test.pdsl", written]
    assert assemble(emitted.ptx, Options(), emitted.line_map).cubin


def test_header_names_file_and_options() -> None:
    first, second, *_ = ptx_of(Build(), arch="sm_100a", wait="probe", contract=False).splitlines()
    assert re.fullmatch(r"// generated by ptxdsl \S+ from test\.pdsl", first)
    assert second == "// --arch sm_100a --wait probe --no-contract"
