"""Blocks of a cluster that send to a rank: one that is there, and one that is not."""

from __future__ import annotations

import pytest
from corpus import CLEAN, read
from pipeline_kernels import GIVES
from proofs import lines, verdict

THERE = {"the other": (2, "1 - rank"), "the next": (4, "(rank + 1) % 4"), "the one before": (4, "(rank + 3) % 4")}
NOT_THERE = {
    "beyond": (2, "rank + 2"),
    "behind the last": (4, "rank + 1"),
    "of one lane": (2, "rank + Int32(thread_idx.x) // 31 * 2"),
    "before the first": (2, "rank - 1"),
    "far before": (2, "rank - 5"),
}


@pytest.mark.parametrize(("count", "to"), THERE.values(), ids=list(THERE))
def test_blocks_that_are_there(count: int, to: str) -> None:
    assert verdict(GIVES.format(count=count, to=to, tell=to)).verdict == "proved"


@pytest.mark.parametrize(("count", "to"), NOT_THERE.values(), ids=list(NOT_THERE))
def test_an_arrival_at_no_block(count: int, to: str) -> None:
    found = verdict(GIVES.format(count=count, to="rank", tell=to))
    assert (found.verdict, found.kinds) == ("fault", ("use before init is visible",))
    assert "the block of rank" in found.diagnostics[0].message
    assert 11 in lines(found)


@pytest.mark.parametrize(("count", "to"), NOT_THERE.values(), ids=list(NOT_THERE))
def test_memory_of_no_block(count: int, to: str) -> None:
    found = verdict(GIVES.format(count=count, to=to, tell="rank"))
    if "thread_idx" in to:
        assert (found.verdict, found.kinds) == ("not provable here", ())
        assert "memory of different blocks" in found.diagnostics[0].message
    else:
        assert (found.verdict, found.kinds) == ("fault", ("stale stage index",))
        assert "the cluster has no block of rank" in found.diagnostics[0].message
    assert found.diagnostics[0].span is not None and found.diagnostics[0].span.line == 10


def test_a_multicast_to_a_block_that_the_cluster_has_not() -> None:
    text = next(read(path).text for path in CLEAN if path.stem == "cluster_multicast")
    assert "full, 0x3)" in text
    found = verdict(text.replace("full, 0x3)", "full, 0x7)"))
    assert (found.verdict, found.kinds) == ("fault", ("use before init is visible",))
    assert "the block of rank 2, and the cluster has 2 blocks" in found.diagnostics[0].message
