"""The ring pass: what is unrolled and what not, and the same barrier operations in the same order either way."""

import pytest
from build_tir import Builder, c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernels import ring_copy
from programs import Writer, ring_loops, statements
from run_tir import OutOfFuel, run

from ptxdsl.options import Options
from ptxdsl.ring_plan import MAX_OPERATIONS
from ptxdsl.rings import unroll_rings
from ptxdsl.simplify import simplify
from ptxdsl.tir import Kernel, Op, walk
from ptxdsl.verify import verify

OPTIONS = Options()


def unrolled(b: Builder, options: Options = OPTIONS) -> Kernel:
    simplify(b.module)
    verify(b.module)
    module = unroll_rings(b.module, options)
    verify(module)
    return module.kernels[0]


def waits(kernel: Kernel) -> list[object]:
    """The index of each wait in the text, ``None`` where it is in a register."""
    return [getattr(op.operands[1], "value", None) for op in walk(kernel.body) if op.name == "pipe.wait"]


def outcome(kernel: Kernel, n: int, m: int) -> list | None:
    try:
        return run(kernel, n, m, fuel=100_000)
    except OutOfFuel:
        return None


def agree(writer: Writer, arguments: list[tuple[int, int]]) -> Kernel:
    """The unrolled kernel, after checking that it does what the kernel as written does."""
    verify(writer.b.module)
    want = [outcome(writer.kernel, *a) for a in arguments]
    kernel = unrolled(writer.b)
    for a, trace in zip(arguments, want, strict=True):
        assert trace is None or outcome(kernel, *a) == trace
    return kernel


SLOW = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(ring_loops(1), st.integers(1, 8), st.integers(0, 20))
def test_one_pipeline(program: list, stages: int, n: int) -> None:
    agree(Writer(program, [stages]), [(n, 1), (n, 0)])


@SLOW
@given(ring_loops(2), st.lists(st.integers(1, 5), min_size=2, max_size=2), st.integers(0, 20))
def test_two_pipelines(program: list, stages: list[int], n: int) -> None:
    agree(Writer(program, stages), [(n, 1)])


@SLOW
@given(statements(2), st.lists(st.integers(1, 4), min_size=2, max_size=2), st.integers(0, 5))
def test_any_program(program: list, stages: list[int], n: int) -> None:
    agree(Writer(program, stages), [(n, 1)])


@pytest.mark.parametrize("stages", range(1, 9))
def test_every_trip_count_of_the_copy_ring(stages: int) -> None:
    for thread in (0, 32):
        before = ring_copy(stages)
        after = unrolled(ring_copy(stages))
        for n in range(21):
            assert run(after, 1 << 20, 2 << 20, n, thread=thread) == run(
                before.kernel, 1 << 20, 2 << 20, n, thread=thread
            )


@pytest.mark.parametrize("stages", range(1, 9))
def test_three_stages_and_more_are_unrolled(stages: int) -> None:
    kernel = unrolled(ring_copy(stages))
    want = {1: [0], 2: [None]}.get(stages, list(range(stages)))
    assert waits(kernel) == want * 2


def test_the_option_and_the_kernel_can_turn_it_off() -> None:
    assert waits(unrolled(ring_copy(), Options(ring_unroll=False))) == [None, None]
    assert waits(unrolled(ring_copy(ring_unroll=False))) == [None, None]


def test_the_module_before_is_not_changed() -> None:
    b = ring_copy()
    simplify(b.module)
    before = [op.name for op in walk(b.body)]
    unroll_rings(b.module, OPTIONS)
    assert [op.name for op in walk(b.body)] == before


def test_the_phase_flips_once_a_turn() -> None:
    kernel = unrolled(ring_copy(3))
    loop = next(op for op in walk(kernel.body) if op.name == "loop")
    assert [op.name for op in loop.blocks[0].ops].count("xor") == 1
    assert not any(op.name == "pipe.step" for op in walk(kernel.body))


def test_steps_of_straight_code_fold() -> None:
    writer = Writer([("wait", 0), ("arrive", 0), ("step", 0)] * 5, [3], observe=False)
    assert waits(agree(writer, [(0, 0)])) == [0, 1, 2, 0, 1]


def test_a_loop_entered_after_some_steps_starts_there() -> None:
    body = [("wait", 0), ("step", 0)]
    writer = Writer([*body, *body, ("for", 0, "n", 1, body)], [3], observe=False)
    assert waits(agree(writer, [(n, 0) for n in range(9)])) == [0, 1, 2, 0, 1]


def waits_of(body: list, stages: list[int], trips: object = "n") -> list[object]:
    writer = Writer([("for", 0, trips, 1, body)], stages, observe=False)
    return waits(agree(writer, [(n, 1) for n in range(20)]))


WAIT, STEP = ("wait", 0), ("step", 0)


def test_a_step_in_both_branches_is_one_step() -> None:
    body = [WAIT, ("if", "i", 0, [("store", "x"), STEP], [STEP])]
    assert waits_of(body, [3]) == [0, 1, 2]


def test_a_step_in_one_branch_keeps_the_counter() -> None:
    assert waits_of([WAIT, ("if", "i", 0, [STEP], [])], [3]) == [None]


def test_two_steps_a_turn_keep_the_counter() -> None:
    assert waits_of([WAIT, STEP, STEP], [3]) == [None]


def test_continue_and_break_inside() -> None:
    body = [WAIT, ("if", "i", 0, [STEP, ("continue",)], []), ("when", "i", 2, ("break",)), ("store", "i"), STEP]
    assert waits_of(body, [3]) == [0, 1, 2]


def test_a_continue_without_its_step_keeps_the_counter() -> None:
    assert waits_of([WAIT, ("when", "i", 0, ("continue",)), STEP], [3]) == [None]


def test_two_pipelines_go_by_their_common_multiple() -> None:
    body = [("wait", 0), ("wait", 1), ("step", 0), ("step", 1)]
    assert waits_of(body, [3, 2]) == [0, 0, 1, 1, 2, 0, 0, 1, 1, 0, 2, 1]
    assert waits_of(body, [4, 8])[::2] == [0, 1, 2, 3] * 2
    assert waits_of(body, [3, 3]) == [0, 0, 1, 1, 2, 2]


def test_two_pipelines_without_one_go_by_the_larger() -> None:
    assert waits_of([("wait", 0), ("wait", 1), ("step", 0), ("step", 1)], [3, 5]) == [
        x for k in range(5) for x in (None, k)
    ]


def test_a_one_stage_pipeline_goes_along() -> None:
    assert waits_of([("wait", 0), ("wait", 1), ("step", 0), ("step", 1)], [3, 1]) == [0, 0, 1, 0, 2, 0]


@pytest.mark.parametrize(("lines", "want"), [(MAX_OPERATIONS // 12, [0, 1, 2]), (MAX_OPERATIONS // 3, [None])])
def test_a_large_body_keeps_the_counter(lines: int, want: list) -> None:
    body = [WAIT, *[("set", "x", "i", 1), ("store", "x")] * lines, STEP]
    assert waits(unrolled(Writer([("for", 0, "n", 1, body)], [3], observe=False).b)) == want


def test_a_loop_in_a_tile_loop_keeps_the_counter() -> None:
    inner = ("for", 0, "n", 1, [WAIT, STEP])
    writer = Writer([("for", 0, "m", 1, [inner])], [3], observe=False)
    assert waits(agree(writer, [(n, m) for n in range(5) for m in range(4)])) == [None]


def test_a_pipeline_made_in_the_tile_loop_is_unrolled() -> None:
    b = Builder()
    n, bars = b.param("n"), b.shared("bars", 64)
    with b.region(tiles := b.for_(0, n)):
        with b.region(loop := b.for_(0, n, 0, 1, 0)) as (_, index, phase, count):
            b.pipe("p", "wait", bars, index, phase, stages=3)
            b.repeat(loop, *b.pipe("p", "step", index, phase, count, stages=3).results)
        b.repeat(tiles)
    b.ret()
    assert waits(unrolled(b)) == [0, 1, 2]


@pytest.mark.parametrize(("trips", "want"), [(6, [0, 1, 2]), (3, [0, 1, 2]), (4, [None])])
def test_known_trips_that_fill_the_ring_make_the_index_constant(trips: int, want: list) -> None:
    inner = ("for", 0, trips, 1, [WAIT, STEP])
    writer = Writer([("for", 0, "m", 1, [inner])], [3], observe=False)
    assert waits(agree(writer, [(0, m) for m in range(6)])) == want


def test_known_trips_are_tested_for_once() -> None:
    writer = Writer([("for", 0, 6, 1, [WAIT, STEP])], [3], observe=False)
    kernel = agree(writer, [(0, 0)])
    assert [op.name for op in walk(kernel.body)].count("leave") == 1


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("step", [1, -1, 100, -100])
def test_a_range_at_the_edge_of_its_type(step: int, signed: bool) -> None:
    """The next index past the end does not exist in the type."""
    if signed:
        start, stop = (0x7FFFFF00, 0x7FFFFFFF) if step > 0 else (-0x7FFFFF00, -0x80000000)
    else:
        start, stop = (-0x100, -1) if step > 0 else (0x100, 0)

    def kernel() -> Builder:
        b = Builder()
        a, z, bars = b.param("a"), b.param("z"), b.shared("bars", 64)
        loop = b.for_(a, z, 0, 1, 0, step=step)
        loop.attrs["signed"] = signed
        with b.region(loop) as (i, index, phase, count):
            b.pipe("p", "wait", bars, index, phase, stages=3)
            b.store(bars, i)
            b.repeat(loop, *b.pipe("p", "step", index, phase, count, stages=3).results)
        b.ret()
        return b

    after = unrolled(kernel())
    assert waits(after) == [0, 1, 2]
    want = run(kernel().kernel, start, stop)
    assert run(after, start, stop) == want
    assert len(want) == 2 * -(-255 // abs(step)) or len(want) == 2 * -(-256 // abs(step))


def test_the_index_after_the_loop() -> None:
    b = Builder()
    n, out = b.param("n"), b.shared("out", 64)
    with b.region(loop := b.for_(0, n, 0, 1, 0)) as (_, *state):
        b.repeat(loop, *b.pipe("p", "step", *state, stages=3).results)
    for result in loop.results:
        b.store(out, result)
    b.ret()
    kernel = unrolled(b)
    for trips in range(10):
        index, phase, count = (event[2] for event in run(kernel, trips))
        assert (index, phase, count) == (trips % 3, 1 ^ (trips // 3 & 1), trips)


def test_operations_keep_their_lines() -> None:
    def lines(kernel: Kernel) -> set[int]:
        return {op.span.line for op in walk(kernel.body) if op.name.startswith("pipe.") and op.name != "pipe.step"}

    b = ring_copy()
    simplify(b.module)
    assert lines(unrolled(b)) == lines(b.kernel)


def test_an_index_out_of_the_ring_keeps_the_counter() -> None:
    b = Builder()
    n, bars = b.param("n"), b.shared("bars", 64)
    with b.region(loop := b.for_(0, n, 3, 1, 0)) as (_, index, phase, count):
        b.pipe("p", "wait", bars, index, phase, stages=3)
        b.repeat(loop, *b.pipe("p", "step", index, phase, count, stages=3).results)
    b.ret()
    assert waits(unrolled(b)) == [None]


def test_deep_nests_of_ring_loops_are_planned_in_proportion() -> None:
    b = Builder()
    n, bars = b.param("n"), b.shared("bars", 64)

    def nest(depth: int) -> None:
        loop: Op = b.for_(0, c(3) if depth % 2 else n, 0, 1, 0)
        with b.region(loop) as (_, index, phase, count):
            b.pipe("p", "wait", bars, index, phase, stages=3)
            if depth:
                nest(depth - 1)
            b.repeat(loop, *b.pipe("p", "step", index, phase, count, stages=3).results)

    nest(24)
    b.ret()
    kernel = unrolled(b)
    assert 25 < len(waits(kernel)) < 25 * MAX_OPERATIONS
