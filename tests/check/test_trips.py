"""The trips that the proof says are those in which the simulator shows the fault, by a count of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import FAULTY, read
from trip_counts import last_of, of_trip, replays

# Of these there is a trip, and no run that could confirm it.
NOT_SHOWN = {
    # no launch is found that the simulator could show it with: it takes tensor maps, or counters that begin at 0
    "02_answer_not_given_back", "05_tells_another_number", "10_release_before_products_are_done",
    "11_answer_without_proxy_fence", "22_asked_over_unread_answers", "22_epilogue_over_products",
    "22_number_drawn_before_all_have_read", "25_leaves_by_another_test",
    # what is read was never written, which is no race
    "22_handed_over_again", "22_handed_over_unfilled",
    # the lanes of the run go in lock step
    "22_lanes_have_not_met",
    # a block hangs in other turns of its warps where these count
    "08_readers_of_the_own_block",
}  # fmt: skip


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.stem)
def test_the_simulator_comes_to_the_fault_in_the_trip_that_is_said(path: Path) -> None:
    for diagnostic, shown in replays(read(path)):
        assert (shown is None) == (path.stem in NOT_SHOWN)
        if shown is None:
            continue
        in_trips = [set(of_trip(trip, shown.done)) for trip in diagnostic.trips]
        last = [set(last_of(trip, shown.done)) for trip in diagnostic.trips]
        assert all(in_trips), (diagnostic.render(), shown.fault)
        if "deadlock" in diagnostic.message:  # they stand there
            assert shown.stuck
            assert all(last) and all(map(set.issuperset, in_trips, last))
        elif not shown.stuck:  # one of the two has just come there
            assert any(map(set.intersection, in_trips, last))


def test_most_trips_are_confirmed() -> None:
    assert 5 * len(NOT_SHOWN) < len(FAULTY)


SLICES = """\
@kernel(threads=64)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var bars = unsafe_stack_allocation[4, SharedMemBarrier, address_space=.SHARED]()
    var tile = unsafe_stack_allocation[64, Float32, address_space=.SHARED]()
    if thread_idx.x == 0:
        comptime for i in range(4):
            bars[unsafe_offset=i].init(32)
    barrier()
    var lane = Int32(thread_idx.x) % 32
    var rows = ceildiv(n, Int32(grid_dim.x))
    var first = Int32(block_idx.x) * rows
    var last = min(first + rows, n)
    if thread_idx.x < 32:
        var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))
        for i in range(first, last):
            p.acquire()
            tile[unsafe_offset=Int32(p.state.index()) * 32 + lane] = src[unsafe_offset=i * 32 + lane]
            p.commit()
    else:
        var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))
        for i in range(first, last + 1):
            c.wait()
            res[unsafe_offset=i * 32 + lane] = tile[unsafe_offset=Int32(c.state.index()) * 32 + lane]
            c.release()
"""


def test_the_trip_is_that_of_the_block_and_the_grid_that_are_told(tmp_path: Path) -> None:
    """One row for two blocks: none is left for the second one, whose consumer goes round once all the same."""
    path = tmp_path / "slices.pdsl"
    head = "# launch: grid 2, block 64\n# args: src: float32[64] in; res: float32[96] out; n: int32 in [1]\n"
    path.write_text(head + SLICES)
    entry = read(path)
    assert entry.proof({}).shows_with == ("n = 1, grid_dim.x = 2, block_idx.x = 1",)
    ((diagnostic, shown),) = replays(entry)
    (trip,) = diagnostic.trips
    assert (trip.who, trip.loops[0][1]) == ("warp 1", 1)
    assert shown is not None and shown.stuck
    line = trip.span.line
    assert {(one.block, dict(one.trips)[line - 1]) for one in shown.done if one.line == line} == {
        (0, 1), (0, 2), (1, 1),
    }  # fmt: skip
