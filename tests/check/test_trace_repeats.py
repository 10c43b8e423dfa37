"""Turns that repeat what is known are passed over by the trace check, and nothing changes by that."""

import numpy as np
import pytest

import ptxdsl
from ptxdsl.races.repeats import Repeats
from ptxdsl.races.state import walk
from ptxdsl.races.tape import Counters, Tape, moved
from ptxdsl.races.trace import check_trace
from ptxdsl.races.trace_ends import TraceEnds

RING = """\
@kernel(threads=64)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32, k: Int32):
    var bars = unsafe_stack_allocation[6, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    var buf = unsafe_stack_allocation[96, Float32, address_space=.SHARED, alignment=128]()
    if thread_idx.x == 0:
        comptime for i in range(6):
            bars[unsafe_offset=i].init(32)
    barrier()
    var lane = Int32(lane_id())
    if thread_idx.x < 32:
        var p = RolePipeline[3, True](bars, bars.unsafe_offset(3))
        for i in range(n):
            p.acquire()
            buf[unsafe_offset=Int32(p.state.index()) * 32 + lane] = src[unsafe_offset=i * 32 + lane]
            p.commit()
        {last}
    else:
        var c = RolePipeline[3, False](bars, bars.unsafe_offset(3))
        for i in range(n):
            c.wait()
            var stage = Int32(c.state.index())
            {turn}
"""


def ring(turn: str, last: str = "pass") -> str:
    return RING.format(turn=turn.strip(), last=last)


GIVEN_BACK = """\
            res[unsafe_offset=i * 32 + lane] = buf[unsafe_offset=stage * 32 + lane]
            c.release()
"""
# In turn k the stage is read after it has been given back.
LATE = ring("""\
            if i != k:
                res[unsafe_offset=i * 32 + lane] = buf[unsafe_offset=stage * 32 + lane]
            c.release()
            if i == k:
                res[unsafe_offset=i * 32 + lane] = buf[unsafe_offset=stage * 32 + lane]
""")
# From turn k on what is written is what the producer reads 40 turns later.
AHEAD = ring("""\
            var to = res if i < k else src.unsafe_offset(1280)
            to[unsafe_offset=i * 32 + lane] = buf[unsafe_offset=stage * 32 + lane]
            c.release()
""")
# At its end the producer writes what the consumer has written in turn k.
AGAIN = ring(GIVEN_BACK, "res[unsafe_offset=k * 32 + lane] = 1")
RIGHT = ring(GIVEN_BACK)
# Bulk copies that are waited for until they have read. In turn k one goes where the one before went.
STORED = """\
@kernel(threads=32)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32, k: Int32):
    var buf = unsafe_stack_allocation[32, Float32, address_space=.SHARED, alignment=128]()
    for i in range(n):
        buf[unsafe_offset=Int32(lane_id())] = src[unsafe_offset=i * 32 + Int32(lane_id())]
        fence_proxy_async[AddressSpace.SHARED]()
        barrier()
        if thread_idx.x == 0:
            var to = i if i != k else i - 1
            cp_async_bulk_global_shared_cta(res.unsafe_offset(to * 32), buf, 128)
            cp_async_bulk_commit_group()
            cp_async_bulk_wait_group[0]()
        barrier()
"""


def known(order):
    """All that the check knows: of global memory too, and what is kept for words."""
    tape = Tape(Counters())
    walk(order, tape)
    state = tape.state()
    cells = [
        [*cells.writes.arrays(), cells.read, np.where(cells.read != 0, cells.reader, 0)]
        for _, cells in sorted(order.spaces.global_cells.items())
    ]
    waits = [[(number, wait.time, wait.phase) for wait in waits] for number, waits in order.races.waits.items()]
    return state.counters, state.numbers, cells, waits


@pytest.fixture
def run(monkeypatch):
    """Runs a kernel: what is found, what was known when its CTA exited, and how many events were passed over."""

    def run(text, n, k, passing=True, schedule=None):
        seen, passed = [], []
        exited, go_on = TraceEnds.exited, Repeats._go_on

        def exits(self, cta):
            seen.append(known(self))
            exited(self, cta)

        def goes_on(self):
            passed.append(self._turns * len(self._turn))
            go_on(self)

        with monkeypatch.context() as patch:
            patch.setattr(TraceEnds, "exited", exits)
            patch.setattr(Repeats, "_go_on", goes_on)
            if not passing:
                patch.setattr(Repeats, "_look_for_turn", lambda self: None)
            src, res = np.arange(32 * (n + 80), dtype=np.float32), np.zeros(32 * (n + 80), np.float32)
            kernel = ptxdsl.loads(text).kernel
            found, report = check_trace(kernel, [src, res, n, k], grid=1, schedule=schedule)
        assert report.finished
        return found, seen, sum(passed)

    return run


def same(one, other):
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other)


@pytest.mark.parametrize("text", [RIGHT, LATE, AHEAD, STORED, AGAIN], ids=["right", "late", "ahead", "stored", "again"])
def test_what_is_known_and_found_is_as_if_nothing_had_been_passed_over(run, text):
    found, seen, passed = run(text, 170, 130)
    all_found, all_seen, none = run(text, 170, 130, passing=False)
    assert passed > 700 and none == 0
    told = [[(r.kind, r.diagnostic.message, r.place, r.stage, r.trip) for r in f.races] for f in (found, all_found)]
    assert told[0] == told[1]
    assert len(seen) == 1 and same(seen, all_seen)


def test_a_fault_after_many_turns_is_found_with_its_turn(run):
    (race,) = run(LATE, 170, 130)[0].races
    assert race.kind == "slot overwritten before release"
    assert (race.stage, race.trip) == (130 % 3, 133 // 3 - 1)  # as the producer waits to fill the stage again
    assert not run(LATE, 170, 1000)[0].races


def test_turns_that_were_passed_over_may_be_raced_with(run):
    assert [race.kind for race in run(AGAIN, 170, 169)[0].races] == ["data race"]
    assert not run(AGAIN, 170, 160)[0].races  # the producer has waited for that turn


def test_stores_that_may_not_have_written_are_raced_with(run):
    assert [race.kind for race in run(STORED, 170, 130)[0].races] == ["data race"]
    assert not run(STORED, 170, 1000)[0].races


def test_other_schedules_repeat_nothing_and_find_the_same(run):
    found, _, _ = run(LATE, 60, 40, schedule="random:3")
    assert [race.kind for race in found.races] == ["slot overwritten before release"]


def state(*numbers):
    """Numbers of counters 0, 1, …, each several."""
    tape = Tape(Counters())
    for counter, some in enumerate(numbers):
        tape.numbers(counter, np.array(some))
    return tape.state()


def test_a_state_is_moved_only_where_the_order_of_numbers_stays():
    shift = moved(state([0, 3, 7, 9], [4]), state([0, 3, 12, 14], [4]), 2)
    assert shift is not None
    assert shift.after(np.array([0, 0, 0, 1]), np.array([3, 7, 9, 4]), 10).tolist() == [3, 57, 59, 4]
    assert moved(state([3, 7, 9]), state([3, 7, 9]), 1) is not None
    assert moved(state([3, 7, 9]), state([3, 12, 13]), 1) is None  # not by one amount
    assert moved(state([3, 7, 9]), state([8, 7, 14]), 1) is None  # 3 has come past 7
    assert moved(state([7, 7]), state([7, 12]), 1) is None  # they were the same, and one goes on
    assert moved(state([0, 9]), state([5, 14]), 1) is None  # 0 is never
    assert moved(state([3, 9]), state([3, 8]), 1) is None
    assert moved(state([3], [9]), state([3, 9]), 2) is None
