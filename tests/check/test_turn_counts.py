"""Loops that make as many turns in other words, and such as make more or fewer in some launches."""

from __future__ import annotations

from itertools import combinations

import pytest
from pipeline_kernels import ring
from proofs import verdict

# Of range(…): a third of n, rounded up.
SAME = ("0, n, 3", "ceildiv(n, 3)", "(n + 2) // 3", "(n - 1) // 3 + 1", "n, 0, -3", "n - 1, -1, -3")
# One turn more, or less, for some n from 1 to 4.
MORE = ("(n + 3) // 3", "ceildiv(n, 2)", "n // 3 + 1", "0, n + 1, 3")
FEWER = ("n // 3", "(n + 1) // 3", "0, n, 4", "1, n, 3", "n, 1, -3")


@pytest.mark.parametrize(("one", "other"), [*combinations(SAME, 2), ("2, n, 3", "ceildiv(n - 2, 3)")])
def test_loops_that_make_as_many_turns(one: str, other: str) -> None:
    assert verdict(ring(trips=one, consumer_trips=other)).verdict == "proved"


@pytest.mark.parametrize("trips", SAME)
def test_a_consumer_that_makes_more_turns(trips: str) -> None:
    pairs = [(trips, more) for more in MORE] + [(fewer, trips) for fewer in FEWER]
    for producer, consumer in pairs:
        found = verdict(ring(trips=producer, consumer_trips=consumer))
        assert found.kinds in (("missing arrive",), ("cyclic wait",)), (producer, consumer)


def test_a_share_that_one_role_rounds_up_shows_in_a_small_launch() -> None:
    """Block s of S has the rows from n * s // S to n * (s + 1) // S."""
    shares = ("var s = Int32(block_idx.x)", "var all = Int32(grid_dim.x)", "var first = n * s // all")
    more = "first, (n * (s + 1) + all - 1) // all"
    right = ring(trips=more, consumer_trips=more, before=shares, consumer_before=shares)
    assert verdict(right).verdict == "proved"
    found = verdict(right.replace(more, "first, n * (s + 1) // all", 1))
    assert (found.verdict, found.kinds) == ("fault", ("missing arrive",))
    # The first of two blocks has none of one row, rounded up it has the one; a block alone has it either way.
    assert found.shows_with == ("n = 1, block_idx.x = 0, grid_dim.x = 2",)


def test_the_index_is_that_of_the_source() -> None:
    """Stages by the number of the turn, which is a third of the index."""
    fill = ("p.acquire()", "buf[unsafe_offset=i // 3 % 2 * 32 + lane] = src[unsafe_offset=i]", "p.commit()")
    drain = ("c.wait()", "res[unsafe_offset=lane] = buf[unsafe_offset=i % 2 * 32 + lane]", "c.release()")
    assert verdict(ring(fill, drain, trips="0, n, 3", consumer_trips="ceildiv(n, 3)")).verdict == "proved"
    wrong = tuple(line.replace("i // 3 % 2", "i // 3 % 2 * 0") for line in fill)
    assert verdict(ring(wrong, drain, trips="0, n, 3", consumer_trips="ceildiv(n, 3)")).verdict == "fault"
