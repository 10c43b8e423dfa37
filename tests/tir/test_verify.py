"""The verifier: every rule has a module that breaks it, and the message names the operation and its line."""

from collections.abc import Callable

import pytest
from build_tir import SOURCE, Builder, c
from kernels import ring_copy

from ptxdsl.source import Span
from ptxdsl.tir import F32, I1, I32, I64, Const, Op, Ty, Value, ptr
from ptxdsl.tir.verify import InternalError, verify


def test_a_right_module_passes() -> None:
    verify(ring_copy().module)


def region(b: Builder, name: str) -> tuple:
    """An open ``if`` or loop with its empty other parts filled in."""
    if name == "if":
        op = b.if_(c(1, I1))
        with b.region(op, 1):
            b.yield_()
        return op, b.region(op, 0)
    op = b.loop([]) if name == "loop" else b.for_(0, 9) if name == "for" else b.scope()
    return op, b.region(op)


def out_of_its_block(b: Builder) -> None:
    _, inside = region(b, "if")
    with inside:
        x = b.op("tid_x", ty=I32, hint="x")
        b.yield_()
    b.op("add", x, 1)


def before_it_is_defined(b: Builder) -> None:
    x = Value(I32, "x")
    b.op("add", x, 1)
    b.blocks[-1].ops.append(Op("tid_x", [], [x], {}, b.span))


def twice(b: Builder) -> None:
    x = b.op("tid_x", ty=I32, hint="x")
    b.blocks[-1].ops.append(Op("tid_x", [], [x], {}, b.span))


def same_operation_twice(b: Builder) -> None:
    b.op("tid_x", ty=I32)
    b.blocks[-1].ops.append(b.blocks[-1].ops[-1])


def after_a_terminator(b: Builder) -> None:
    b.ret()
    b.op("tid_x", ty=I32)


def no_terminator(b: Builder) -> None:
    _, inside = region(b, "if")
    with inside:
        b.op("tid_x", ty=I32)


def yield_from_a_loop(b: Builder) -> None:
    _, inside = region(b, "loop")
    with inside:
        b.yield_()


def repeat_of_a_scope(b: Builder) -> None:
    op, inside = region(b, "scope")
    with inside:
        b.repeat(op)


def leave_of_an_if(b: Builder) -> None:
    op, inside = region(b, "if")
    with inside:
        b.leave(op)


def leave_of_what_is_past(b: Builder) -> None:
    op, inside = region(b, "scope")
    with inside:
        b.yield_()
    _, inside = region(b, "if")
    with inside:
        b.leave(op)


def too_few_carried(b: Builder) -> None:
    op = b.for_(0, 9, 1, 2)
    with b.region(op) as (_, x, _y):
        b.repeat(op, x)


def wrong_results(b: Builder) -> None:
    op = b.if_(c(1, I1), Value(I32))
    for which in (0, 1):
        with b.region(op, which):
            b.yield_(Const(F32, 1.0))


def condition(b: Builder) -> None:
    with b.region(op := b.if_(c(1)), 0):
        b.yield_()
    with b.region(op, 1):
        b.yield_()


def no_step(b: Builder) -> None:
    op, inside = region(b, "for")
    with inside:
        b.repeat(op)
    op.attrs["step"] = 0


def range_types(b: Builder) -> None:
    op = b.for_(0, c(9, I64))
    with b.region(op):
        b.repeat(op)


def a_missing_block(b: Builder) -> None:
    b.if_(c(1, I1)).blocks.pop()


CASES: list[tuple[Callable[[Builder], object], str]] = [
    (out_of_its_block, "'add' uses %x out of its block"),
    (before_it_is_defined, "'add' uses %x before it is defined"),
    (twice, "'tid_x' defines x a second time"),
    (same_operation_twice, "'tid_x' stands in two places"),
    (after_a_terminator, "'return' ends a block that goes on"),
    (no_terminator, "'if' has a block without a terminator"),
    (yield_from_a_loop, "'yield' does not end a block of an if or a scope"),
    (repeat_of_a_scope, "'repeat' targets no enclosing loop or for"),
    (leave_of_an_if, "'leave' targets no enclosing loop or for or scope"),
    (leave_of_what_is_past, "'leave' targets no enclosing loop or for or scope"),
    (too_few_carried, "'repeat' hands over (i32), not (i32, i32)"),
    (wrong_results, "'yield' hands over (f32), not (i32)"),
    (condition, "'if' takes (i32), not (i1)"),
    (no_step, "'for' has the step 0"),
    (range_types, "'for' counts from i32 to i64"),
    (a_missing_block, "'if' has 1 blocks"),
    (lambda b: b.op("add", c(1), c(1, I64)), "'add' is (i32, i64) -> (i32), not I I -> I"),
    (lambda b: b.op("fadd", 1, 2), "'fadd' is (i32, i32) -> (i32), not F F -> F"),
    (lambda b: b.op("lt.s", 1, 2, ty=I32), "'lt.s' is (i32, i32) -> (i32)"),
    (lambda b: b.op("select", c(1, I1), c(1), Const(F32, 1.0), ty=I32), "'select' is"),
    (lambda b: b.op("ext.s", c(1, I64), ty=I32), "'ext.s' cannot be (i64) -> (i32)"),
    (lambda b: b.op("trunc", c(1), ty=I64), "'trunc' cannot be (i32) -> (i64)"),
    (lambda b: b.op("bitcast", c(1), ty=I64), "'bitcast' cannot be (i32) -> (i64)"),
    (lambda b: b.op("not", c(1)), "'not' cannot be (i32) -> (i32)"),
    (lambda b: b.op("vec.build", 1, 2, ty=Ty("i32", 4)), "'vec.build' cannot be"),
    (lambda b: b.op("vec.splat", 1, ty=Ty("f32", 4)), "'vec.splat' cannot be"),
    (lambda b: b.op("vec.shuffle", 1, 2, ty=Ty("i32", 4), mask=[0, 1]), "'vec.shuffle' cannot be"),
    (lambda b: b.op("load", c(0), ty=I32, align=4), "'load' is (i32) -> (i32), not P -> T"),
    (lambda b: b.op("load", b.shared("s", 8), ty=I32), "'load' lacks the attribute 'align'"),
    (lambda b: b.op("add", Const(I32, 1 << 31), 1), "'add' has the constant 2147483648 as i32"),
    (lambda b: b.op("add", Const(I32, True), 1), "'add' has the constant True as i32"),
    (lambda b: b.op("fneg", Const(F32, 1)), "'fneg' has the constant 1 as f32"),
    (lambda b: b.op("fneg", Const(Ty("f32", 2), (1.0,))), "'fneg' has the constant (1.0,) as f32x2"),
    (lambda b: b.emit("mbarrier_frobnicate", [], []), "'mbarrier_frobnicate' is neither an operation"),
    (lambda b: b.pipe("p", "wait", b.shared("s", 8), 0, stages=3), "'pipe.wait' is (ptr.shared, i32)"),
    (lambda b: b.pipe("p", "arrive", b.shared("s", 8), 0, stages=3, sub=1), "has sub-stage 1 of 1"),
    (lambda b: b.pipe("p", "arrive", b.shared("s", 8), 0, stages=3, side="left"), "is of the side 'left'"),
    (lambda b: b.pipe("p", "step", 0, 0, 0, stages=0), "has 0 stages"),
    (lambda b: b.pipe("p", "commit_mma", b.shared("s", 8), 0, stages=3), "lacks the attribute 'cta_group'"),
]


@pytest.mark.parametrize(("broken", "message"), CASES, ids=lambda x: x.__name__ if callable(x) else None)
def test_a_broken_rule_is_named(broken: Callable[[Builder], object], message: str) -> None:
    b = Builder("k")
    b.param("q", ptr("global"))
    b.line = 7
    broken(b)
    b.ret()
    with pytest.raises(InternalError) as caught:
        verify(b.module)
    assert str(caught.value).startswith("t.pdsl:7:1: in kernel k: ")
    assert message in str(caught.value)


def test_the_kernel_itself_needs_an_end() -> None:
    b = Builder("k")
    b.kernel.span = Span(SOURCE, 0, 4)
    with pytest.raises(InternalError, match=r"t.pdsl:1:1: in kernel k: the body has a block without a terminator"):
        verify(b.module)
