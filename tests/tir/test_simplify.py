"""``simplify``: the same trace, and nothing left that it promises to remove."""

from build_tir import Builder, c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import Writer, statements
from run_tir import OutOfFuel, run

from ptxdsl.tir import I32, Value, walk
from ptxdsl.tir.simplify import simplify
from ptxdsl.tir.verify import verify


def names(b: Builder) -> list[str]:
    return [op.name for op in walk(b.body)]


def simplified(b: Builder) -> Builder:
    verify(b.module)
    simplify(b.module)
    verify(b.module)
    return b


def outcome(writer: Writer, n: int, m: int) -> list | None:
    try:
        return run(writer.kernel, n, m)
    except OutOfFuel:
        return None


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(statements(2), st.lists(st.integers(1, 4), min_size=2, max_size=2), st.integers(0, 5), st.booleans())
def test_the_trace_stays(program: list, stages: list[int], n: int, observe: bool) -> None:
    before, after = Writer(program, stages, observe), Writer(program, stages, observe)
    verify(before.b.module)
    simplify(after.kernel)
    verify(after.b.module)
    want = outcome(before, n, 1)
    assert want is None or outcome(after, n, 1) == want
    size = sum(1 for _ in walk(after.kernel.body))
    simplify(after.kernel)
    assert sum(1 for _ in walk(after.kernel.body)) == size, "a second run finds nothing new"


def test_an_unchanged_variable_is_not_carried_through_four_loops() -> None:
    b = Builder()
    n, out = b.param("n"), b.shared("out", 64)
    keep, total = b.op("mul", n, n), c(0)

    def nest(depth: int, keep: Value, total: Value) -> tuple[Value, Value]:
        if depth == 0:
            return keep, b.op("add", total, keep)
        loop = b.for_(0, n, keep, total)
        with b.region(loop) as (_, k, t):
            b.repeat(loop, *nest(depth - 1, k, t))
        return loop.results[0], loop.results[1]

    _, total = nest(4, keep, total)
    b.store(out, total)
    b.ret()
    assert run(b.kernel, 2)[-1][2] == 16 * 4
    simplified(b)
    loops = [op for op in walk(b.body) if op.name == "for"]
    assert [len(op.operands) for op in loops] == [3, 3, 3, 3]
    assert run(b.kernel, 2)[-1][2] == 16 * 4


def test_two_variables_that_swap_equal_values_are_one() -> None:
    b = Builder()
    n, out = b.param("n"), b.shared("out", 64)
    loop = b.for_(0, n, n, n)
    with b.region(loop) as (_, x, y):
        b.store(out, x)
        b.repeat(loop, y, x)
    b.ret()
    simplified(b)
    (loop,) = (op for op in walk(b.body) if op.name == "for")
    assert len(loop.operands) == 2


def test_a_variable_that_only_counts_itself_is_removed() -> None:
    b = Builder()
    n, out = b.param("n"), b.shared("out", 64)
    loop = b.for_(0, n, 0)
    with b.region(loop) as (i, dead):
        b.store(out, i)
        b.repeat(loop, b.op("add", dead, 1))
    b.ret()
    assert "add" not in names(simplified(b))


def test_a_branch_on_a_constant_is_its_branch() -> None:
    b = Builder()
    out, r = b.shared("out", 64), Value(I32, "r")
    with b.region(test := b.if_(b.op("lt.s", 1, 2), r), 0):
        b.store(out, 7)
        b.yield_(5)
    with b.region(test, 1):
        b.yield_(6)
    b.store(out, r)
    b.ret()
    assert names(simplified(b)) == ["shared.alloc", "store", "store", "return"]
    assert [event[2] for event in run(b.kernel)] == [7, 5]


def test_a_scope_left_only_at_its_end_is_spliced() -> None:
    b = Builder()
    out, r = b.shared("out", 64), Value(I32, "r")
    with b.region(scope := b.scope(r)):
        b.leave(scope, 3)
    b.store(out, r)
    b.ret()
    assert names(simplified(b)) == ["shared.alloc", "store", "return"]


def test_a_scope_left_early_stays() -> None:
    b = Builder()
    n, out, r = b.param("n"), b.shared("out", 64), Value(I32, "r")
    with b.region(scope := b.scope(r)):
        with b.region(test := b.if_(b.op("eq", n, 0)), 0):
            b.leave(scope, 1)
        with b.region(test, 1):
            b.yield_()
        b.yield_(2)
    b.store(out, r)
    b.ret()
    assert "scope" in names(simplified(b))
    assert [run(b.kernel, n)[-1][2] for n in (0, 1)] == [1, 2]


def test_a_value_of_a_branch_does_not_leave_it_by_itself() -> None:
    """The other branch returns, so the result can only be the inner value, which is not visible outside."""
    b = Builder()
    n, out, r = b.param("n"), b.shared("out", 64), Value(I32, "r")
    with b.region(test := b.if_(b.op("eq", n, 0), r), 0):
        b.ret()
    with b.region(test, 1):
        b.yield_(b.op("add", n, 1))
    b.store(out, r)
    b.ret()
    simplified(b)
    assert run(b.kernel, 4)[-1][2] == 5


def test_what_nothing_needs_goes_and_what_acts_stays() -> None:
    b = Builder()
    out = b.shared("out", 64)
    b.op("load", out, ty=I32, align=4)
    b.op("load", out, ty=I32, align=4, volatile=True)
    b.op("tid_x", ty=I32)
    b.emit("asm", [], [I32], text="mov.u32 $0, 1;", constraints="=r", side_effects=False)
    b.emit("asm", [], [], text="nanosleep.u32 9;", constraints="", side_effects=True)
    b.pipe("p", "step", 0, 1, 0, stages=3)
    with b.region(loop := b.for_(0, 9, 0)) as (_, x):
        b.repeat(loop, b.op("add", x, 1))
    b.ret()
    assert names(simplified(b)) == ["shared.alloc", "load", "asm", "pipe.step", "return"]


def test_code_after_an_endless_loop_is_cut() -> None:
    b = Builder()
    out = b.shared("out", 64)
    with b.region(loop := b.loop([])):
        b.store(out, 1)
        b.repeat(loop)
    b.store(out, 2)
    b.ret()
    assert names(simplified(b)) == ["shared.alloc", "loop", "store", "repeat", "unreachable"]


def test_a_dead_exit_condition_is_kept_while_its_loop_is() -> None:
    b = Builder()
    n, out = b.param("n"), b.shared("out", 64)
    with b.region(loop := b.for_(0, 9)) as (i,):
        with b.region(test := b.if_(b.op("eq", i, n)), 0):
            b.leave(loop)
        with b.region(test, 1):
            b.yield_()
        b.store(out, i)
        b.repeat(loop)
    b.ret()
    simplified(b)
    assert len(run(b.kernel, 4)) == 4


def test_many_accumulators_in_deep_loops_take_time_in_proportion() -> None:
    """128 accumulators through four loops, and 128 more that never change."""
    b = Builder()
    n, out = b.param("n"), b.shared("out", 4096)

    def nest(depth: int, values: list[Value]) -> list[Value]:
        if depth == 0:
            return [*(b.op("add", v, n) for v in values[:128]), *values[128:]]
        loop = b.for_(0, n, *values)
        with b.region(loop) as (_, *inner):
            b.repeat(loop, *nest(depth - 1, inner))
        return loop.results

    for v in nest(4, [c(k) for k in range(256)]):
        b.store(out, v)
    b.ret()
    simplified(b)
    inner = [op for op in walk(b.body) if op.name == "for"][-1]
    assert len(inner.operands) == 2 + 128


def test_a_join_that_turns_out_true_does_not_spoil_those_inside() -> None:
    """``x`` changes from turn to turn, but not in the inner loop: that is seen although both start from one value."""
    b = Builder()
    n, out = b.param("n"), b.shared("out", 64)
    with b.region(outer := b.for_(0, n, n)) as (i, x):
        with b.region(inner := b.for_(0, n, x)) as (_, y):
            b.store(out, y)
            b.repeat(inner, y)
        b.repeat(outer, b.op("add", inner.results[0], i))
    b.ret()
    simplified(b)
    assert [len(op.operands) for op in walk(b.body) if op.name == "for"] == [3, 2]


def test_a_value_carried_out_of_many_branches_is_kept_once() -> None:
    b = Builder()
    n, out = b.param("n"), b.shared("out", 64)

    def nest(depth: int) -> Value:
        result = Value(I32)
        if depth == 0:
            return b.op("add", n, 1)
        with b.region(test := b.if_(b.op("eq", n, depth), result), 0):
            b.ret()
        with b.region(test, 1):
            b.yield_(nest(depth - 1))
        return result

    value = nest(12)
    with b.region(loop := b.for_(0, n, value)) as (_, carried):
        b.store(out, carried)
        b.repeat(loop, carried)
    b.ret()
    simplified(b)
    assert [len(op.operands) for op in walk(b.body) if op.name == "for"] == [2]
    assert run(b.kernel, 20)[-1][2] == 21
