"""The ring pass: what is unrolled and what not, and the same barrier operations in the same order either way."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from build_tir import Builder, c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernels import ring_copy
from programs import Writer, ring_loops, statements
from run_tir import OutOfFuel, run

from ptxdsl.options import Options
from ptxdsl.rings import plan as ring_plan
from ptxdsl.rings.plan import MAX_OPERATIONS
from ptxdsl.rings.unroll import unroll_rings
from ptxdsl.tir import I8, I32, I64, Const, Kernel, Op, Ty, walk
from ptxdsl.tir.simplify import simplify
from ptxdsl.tir.verify import verify

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


def turns(copies: int, *stages: int) -> list[int]:
    """The waits of a loop over whole turns of so many copies, and of the remainder after it."""
    return [turn % s for turn in [*range(copies), *range(copies - 1)] for s in stages]


FORMS = ("two turns", "one turn", "tested")


@contextmanager
def preferred(form: str) -> Iterator[None]:
    """Every loop that can have the form has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ring_plan, "MAX_CONSTANT_PHASE", MAX_OPERATIONS if form == "two turns" else 0)
        if form == "tested":
            patch.setattr(ring_plan, "total_copies", lambda copies, trips: MAX_OPERATIONS + 1)
        yield


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
@given(ring_loops(1), st.integers(1, 8), st.integers(0, 20), st.sampled_from(FORMS), st.booleans())
def test_one_pipeline(program: list, stages: int, n: int, form: str, signed: bool) -> None:
    with preferred(form):
        agree(Writer(program, [stages], signed=signed), [(n, 1), (n, 0)])


@SLOW
@given(ring_loops(2), st.lists(st.integers(1, 5), min_size=2, max_size=2), st.integers(0, 20), st.sampled_from(FORMS))
def test_two_pipelines(program: list, stages: list[int], n: int, form: str) -> None:
    with preferred(form):
        agree(Writer(program, stages), [(n, 1)])


@SLOW
@given(statements(2), st.lists(st.integers(1, 4), min_size=2, max_size=2), st.integers(0, 5))
def test_any_program(program: list, stages: list[int], n: int) -> None:
    agree(Writer(program, stages), [(n, 1)])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stages", range(1, 9))
def test_every_trip_count_of_the_copy_ring(stages: int, form: str) -> None:
    with preferred(form):
        after = unrolled(ring_copy(stages))
    for thread in (0, 32):
        for n in range(-1, 21):
            want = run(ring_copy(stages).kernel, 1 << 20, 2 << 20, n, thread=thread)
            assert run(after, 1 << 20, 2 << 20, n, thread=thread) == want
            assert len(want) == 3 * max(n, 0)


@pytest.mark.parametrize(
    ("stages", "want"),
    [(1, [0]), (2, turns(4, 2)), *((s, turns(s, s)) for s in range(3, 9))],
)
def test_two_stages_and_more_are_unrolled(stages: int, want: list) -> None:
    assert waits(unrolled(ring_copy(stages))) == want * 2


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
    with preferred("one turn"):
        kernel = unrolled(ring_copy(3))
    loop = next(op for op in walk(kernel.body) if op.name == "loop")
    assert [op.name for op in loop.blocks[0].ops].count("xor") == 1
    assert not any(op.name == "pipe.step" for op in walk(kernel.body))


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_over_two_turns_the_phase_is_a_constant(stages: int) -> None:
    with preferred("two turns"):
        kernel = unrolled(ring_copy(stages))
    phases = [op.operands[2] for op in walk(kernel.body) if op.name == "pipe.wait"]
    assert all(isinstance(phase, Const) for phase in phases)
    producer = [phase.value for phase in phases[: 4 * stages - 1]]
    assert producer == (([1] * stages + [0] * stages) * 2)[: 4 * stages - 1]


@pytest.mark.parametrize("form", FORMS[:2])
def test_between_the_stages_of_a_turn_there_is_nothing_else(form: str) -> None:
    b = Builder()
    n, bars = b.param("n"), b.shared("bars", 64)
    with b.region(loop := b.for_(0, n, 0, 1, 0)) as (_, index, phase, count):
        b.pipe("p", "wait", bars, index, phase, stages=3)
        b.pipe("p", "arrive", bars, index, stages=3)
        b.repeat(loop, *b.pipe("p", "step", index, phase, count, stages=3).results)
    b.ret()
    with preferred(form):
        kernel = unrolled(b)
    (loop,) = (op for op in walk(kernel.body) if op.name == "loop")
    copies, flip = (3, ["xor"]) if form == "one turn" else (6, [])
    count_and_test = ["sub", "ge.u", "if", "repeat"]
    assert [op.name for op in loop.blocks[0].ops] == ["pipe.wait", "pipe.arrive"] * copies + flip + count_and_test
    assert len(loop.blocks[0].params) == 1 + len(flip)


def test_steps_of_straight_code_fold() -> None:
    writer = Writer([("wait", 0), ("arrive", 0), ("step", 0)] * 5, [3], observe=False)
    assert waits(agree(writer, [(0, 0)])) == [0, 1, 2, 0, 1]


def test_a_loop_entered_after_some_steps_starts_there() -> None:
    body = [("wait", 0), ("step", 0)]
    writer = Writer([*body, *body, ("for", 0, "n", 1, body)], [3], observe=False)
    want = [0, 1, *((2 + wait) % 3 for wait in turns(6, 3))]
    assert waits(agree(writer, [(n, 0) for n in range(20)])) == want


def waits_of(body: list, stages: list[int], trips: object = "n") -> list[object]:
    writer = Writer([("for", 0, trips, 1, body)], stages, observe=False)
    return waits(agree(writer, [(n, 1) for n in range(20)]))


WAIT, STEP = ("wait", 0), ("step", 0)


def test_a_step_in_both_branches_is_one_step() -> None:
    body = [WAIT, ("if", "i", 0, [("store", "x"), STEP], [STEP])]
    assert waits_of(body, [3]) == turns(3, 3)


def test_a_step_in_one_branch_keeps_the_counter() -> None:
    assert waits_of([WAIT, ("if", "i", 0, [STEP], [])], [3]) == [None]


def test_two_steps_a_turn_keep_the_counter() -> None:
    assert waits_of([WAIT, STEP, STEP], [3]) == [None]


@pytest.mark.parametrize("form", FORMS)
def test_continue_and_break_inside(form: str) -> None:
    body = [WAIT, ("if", "i", 0, [STEP, ("continue",)], []), ("when", "i", 20, ("break",)), ("store", "i"), STEP]
    with preferred(form):
        assert waits_of(body, [3]) == {"two turns": turns(6, 3), "one turn": turns(3, 3), "tested": [0, 1, 2]}[form]


def test_a_break_leaves_the_remainder_out() -> None:
    body = [WAIT, ("when", "i", 1, ("break",)), STEP]
    writer = Writer([("for", 0, "n", 1, body), ("store", "x")], [3], observe=False)
    assert len(run(agree(writer, [(n, 0) for n in range(20)]), 20, 0)) == 3


def test_a_while_loop_is_tested_after_each_stage() -> None:
    writer = Writer([("while", 20, [WAIT, STEP])], [3], observe=False)
    assert waits(agree(writer, [(0, 0)])) == [0, 1, 2]


def test_a_continue_without_its_step_keeps_the_counter() -> None:
    assert waits_of([WAIT, ("when", "i", 0, ("continue",)), STEP], [3]) == [None]


@pytest.mark.parametrize(
    ("stages", "want"),
    [
        ([3, 2], turns(6, 3, 2)),
        ([4, 8], turns(8, 4, 8)),
        ([4, 2], turns(8, 4, 2)),
        ([3, 3], turns(6, 3, 3)),
        ([3, 1], turns(6, 3, 1)),
    ],
)
def test_two_pipelines_go_by_their_common_multiple(stages: list[int], want: list) -> None:
    assert waits_of([("wait", 0), ("wait", 1), ("step", 0), ("step", 1)], stages) == want


def test_two_pipelines_without_one_go_by_the_larger() -> None:
    want = [index for k in turns(5, 5) for index in (None, k)]
    assert waits_of([("wait", 0), ("wait", 1), ("step", 0), ("step", 1)], [3, 5]) == want


@pytest.mark.parametrize(
    ("stages", "lines", "want"),
    [
        (3, 1, turns(6, 3)),
        (3, 4, turns(3, 3)),
        (3, 40, turns(3, 3)),
        (3, 64, [0, 1, 2]),
        (3, 256, [None]),
        (2, 8, turns(4, 2)),
        (2, 16, [None]),
    ],
)
def test_larger_bodies_are_copied_less(stages: int, lines: int, want: list) -> None:
    body = [WAIT, *[("set", "x", "i", 1), ("store", "x")] * lines, STEP]
    assert waits(unrolled(Writer([("for", 0, "n", 1, body)], [stages], observe=False).b)) == want


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
    assert waits(unrolled(b)) == turns(6, 3)


@pytest.mark.parametrize(("trips", "want"), [(6, [0, 1, 2] * 2), (3, [0, 1, 2]), (4, [None])])
def test_known_trips_that_fill_the_ring_make_the_index_constant(trips: int, want: list) -> None:
    inner = ("for", 0, trips, 1, [WAIT, STEP])
    writer = Writer([("for", 0, "m", 1, [inner])], [3], observe=False)
    assert waits(agree(writer, [(0, m) for m in range(6)])) == want


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("trips", range(21))
def test_known_trips_are_tested_for_at_most_once(trips: int, form: str) -> None:
    writer = Writer([("for", 0, trips, 1, [WAIT, STEP])], [3], observe=False)
    with preferred(form):
        kernel = agree(writer, [(0, 0)])
    copies = 6 if form == "two turns" else 3
    looped = (form == "tested" and trips > 0) or trips >= 2 * copies
    assert [op.name for op in walk(kernel.body)].count("leave") == looped
    if form != "tested":
        assert len(waits(kernel)) == (copies + trips % copies if looped else trips)


EDGES = {
    (I8, True): [-128, -127, -100, -1, 0, 1, 19, 126, 127],
    (I8, False): [-128, -127, -2, -1, 0, 1, 5, 100, 127],
    (I32, True): [-(2**31), -(2**31) + 7, 2**31 - 20, 2**31 - 1],
    (I32, False): [0, 11, -20, -1],
    (I64, True): [-(2**63), -(2**63) + 7, 2**63 - 20, 2**63 - 1],
    (I64, False): [0, 11, -20, -1],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("step", [1, -1, 3, -3, 100, -128])
@pytest.mark.parametrize(("ty", "signed"), EDGES)
def test_a_range_at_the_edge_of_its_type(ty: Ty, signed: bool, step: int, form: str) -> None:
    """The next index past the end, and the trip count as a signed number, need not exist in the type."""

    def kernel() -> Builder:
        b = Builder()
        a, z, bars = b.param("a", ty), b.param("z", ty), b.shared("bars", 64)
        loop = b.for_(a, z, 0, 1, 0, step=step)
        loop.attrs["signed"] = signed
        with b.region(loop) as (i, *state):
            b.pipe("p", "wait", bars, *state[:2], stages=3)
            b.store(bars, i)
            b.repeat(loop, *b.pipe("p", "step", *state, stages=3).results)
        for result in loop.results:
            b.store(bars, result)
        b.ret()
        return b

    with preferred(form):
        after = unrolled(kernel())
    before, edges = kernel().kernel, EDGES[ty, signed]
    for start in edges:
        for stop in edges:
            first, last = (v if signed else v % 2**ty.bits for v in (start, stop))
            trips = max(0, -((first - last) // step))
            if trips <= 300:
                want = run(before, start, stop)
                assert len(want) == 2 * trips + 3
                assert run(after, start, stop) == want


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stages", [2, 3])
def test_the_pipeline_after_the_loop(stages: int, form: str) -> None:
    b = Builder()
    n, out = b.param("n"), b.shared("out", 64)
    with b.region(loop := b.for_(0, n, 0, 1, 0)) as (_, *state):
        b.repeat(loop, *b.pipe("p", "step", *state, stages=stages).results)
    for result in loop.results:
        b.store(out, result)
    b.ret()
    with preferred(form):
        kernel = unrolled(b)
    for trips in range(20):
        index, phase, count = (event[2] for event in run(kernel, trips))
        assert (index, phase, count) == (trips % stages, 1 ^ (trips // stages & 1), trips)


def test_a_pipeline_that_nobody_uses_after_the_loop_leaves_nothing() -> None:
    kernel = unrolled(ring_copy(3))
    assert not any(op.results for op in walk(kernel.body) if op.name == "scope")


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
