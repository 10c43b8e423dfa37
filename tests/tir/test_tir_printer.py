"""The printed form: golden text for the copy ring before and after the ring pass, and the details one by one."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from build_tir import Builder, c
from kernels import ring_copy

from ptxdsl.options import Options
from ptxdsl.rings.unroll import unroll_rings
from ptxdsl.tir import F32, I1, I32, Const, Ty, Value
from ptxdsl.tir.printer import tir_text
from ptxdsl.tir.simplify import simplify

Golden = Callable[[str, str], None]


def body(b: Builder) -> list[str]:
    """The lines of the kernel's body, without comments and indentation of the kernel."""
    b.ret()
    lines = tir_text(b.module).splitlines()[1:-2]
    return [line[2:].partition("  //")[0].rstrip() for line in lines]


def test_before_rings(golden: Golden) -> None:
    golden("ring_copy.tir", tir_text(ring_copy().module))


def test_after_rings(golden: Golden) -> None:
    b = ring_copy()
    b.kernel.signature = replace(b.kernel.signature, threads=(64, 1, 1))
    simplify(b.module)
    golden("ring_copy_unrolled.tir", tir_text(unroll_rings(b.module, Options())))


def test_the_same_text_each_time() -> None:
    assert tir_text(ring_copy().module) == tir_text(ring_copy().module)


def test_names_are_hints_and_numbers() -> None:
    b = Builder()
    b.op("tid_x", ty=I32)
    x = b.op("tid_x", ty=I32, hint="x")
    b.op("add", x, -1, hint="x")
    b.op("add", x, x)
    assert body(b) == ["%0 = tid_x i32", "%x = tid_x i32", "%x.1 = add i32 %x, -1", "%1 = add i32 %x, %x"]


def test_constants_and_vectors() -> None:
    b = Builder()
    b.op("fadd", Const(Ty("f32", 2), (0.5, -1.0)), Const(Ty("f32", 2), (0.0, 2.0)))
    b.op("fneg", Const(F32, 3.0))
    assert body(b) == ["%0 = fadd f32x2 <0.5, -1.0>, <0.0, 2.0>", "%1 = fneg f32 3.0"]


def test_sub_stages_parity_and_election() -> None:
    b = Builder()
    bars = b.shared("bars", 64)
    b.pipe("s", "wait", bars, 0, 1, stages=1, side="empty", subs=4, sub=2, method="acquire[2]")
    b.pipe("s", "commit_mma", bars, 0, 1, stages=1, cta_group=2)
    b.ret()
    text = tir_text(b.module).splitlines()
    assert text[2].split("  // ") == [
        f"{'  pipe.wait s.empty %bars[0*4+2] parity=1':<72}",
        "s.acquire[2]()  t.pdsl:1:1",
    ]
    assert "  pipe.commit_mma s.full %bars[0] elect=1 cta_group=2 " in text[3]


def test_a_jump_past_an_inner_loop_names_its_target() -> None:
    b = Builder()
    with b.region(outer := b.for_(0, 9, 5, step=-2, names="i x")) as (_, x):
        with b.region(inner := b.loop([])):
            with b.region(test := b.if_(c(1, I1)), 0):
                b.repeat(outer, x)
            with b.region(test, 1):
                b.leave(inner)
            b.emit("unreachable", [], [])
        b.leave(outer, x)
    assert body(b) == [
        "@0: %x: i32 = loop %i in 0 ..> 9 step -2 carried (%x.1: i32 = 5) {",
        "  loop {",
        "    if 1 {",
        "      repeat @0 (%x.1)",
        "    } else {",
        "      leave",
        "    }",
        "    unreachable",
        "  }",
        "  leave @0 (%x.1)",
        "}",
    ]


def roles(condition: Callable[[Builder, Value], Value], threads: tuple[int, int, int] | None = None) -> list[str]:
    b = Builder()
    b.kernel.signature = replace(b.kernel.signature, threads=threads)
    test = b.if_(condition(b, b.op("tid_x", ty=I32)))
    for which, number in enumerate((1, 2)):
        with b.region(test, which):
            b.emit("asm", [], [], text=str(number), constraints="", side_effects=True)
            b.yield_()
    b.ret()
    lines = [line.strip() for line in tir_text(b.module).splitlines()]
    return [" ".join(line.split()) for line in lines if line.startswith(("role", "if", "} else"))]


@pytest.mark.parametrize(
    ("condition", "want"),
    [
        (lambda b, t: b.op("lt.u", t, 32), ["role threads [0, 32) {", "} else { // threads [32, ...)"]),
        (lambda b, t: b.op("ge.s", t, 64), ["role threads [64, ...) {", "} else { // threads [0, 64)"]),
        (lambda b, t: b.op("eq", t, 0), ["role threads [0, 1) {", "} else { // threads [1, ...)"]),
        (lambda b, t: b.op("eq", b.op("floordiv.s", t, 32), 2), ["role threads [64, 96) {", "} else {"]),
        (lambda b, t: b.op("eq", b.op("shr.u", t, 7), 1), ["role threads [128, 256) {", "} else {"]),
        (lambda b, t: b.op("and", b.op("ge.u", t, 32), b.op("lt.u", t, 64)), ["role threads [32, 64) {", "} else {"]),
        (lambda b, t: b.op("not", b.op("lt.u", t, 32)), ["role threads [32, ...) {", "} else { // threads [0, 32)"]),
        (lambda b, t: b.op("vote_any_sync", -1, b.op("lt.u", t, 32), ty=I1),
         ["role threads [0, 32) {", "} else { // threads [32, ...)"]),
        (lambda b, t: b.op("eq", b.op("mod.u", t, 32), 0), ["if %2 {", "} else {"]),
        (lambda b, t: b.op("lt.u", b.op("mod.u", t, 32), b.op("tid_y", ty=I32)), ["if %3 {", "} else {"]),
    ],
)  # fmt: skip
def test_an_if_on_a_thread_range_is_a_role(condition: Callable[[Builder, Value], Value], want: list[str]) -> None:
    assert roles(condition) == want


def test_the_block_size_bounds_the_other_role() -> None:
    assert roles(lambda b, t: b.op("lt.u", t, 32), (64, 1, 1))[1] == "} else { // threads [32, 64)"


def test_a_role_inside_a_role_is_narrowed() -> None:
    b = Builder()
    tid = b.op("tid_x", ty=I32)
    outer = b.if_(b.op("lt.s", tid, 32))
    with b.region(outer, 0):
        b.yield_()
    with b.region(outer, 1):
        inner = b.if_(b.op("lt.s", tid, 64))
        with b.region(inner, 0):
            b.emit("trap", [], [])
            b.yield_()
        with b.region(inner, 1):
            b.yield_()
        b.yield_()
    assert "  role threads [32, 64) {" in body(b)
