"""What the help of a finding offers: it names what is wrong, and a kernel that follows it is proved."""

from __future__ import annotations

import pytest
from pipeline_kernels import READ, RELEASE, WAIT, WRITE, copies, kernel, ring
from proofs import verdict

DRAWN = """\
@kernel(threads=64)
def draws(counter: Pointer[Int32, MutAnyOrigin], res: Pointer[Int32, MutAnyOrigin], n: Int32):
    var tiles = stack_allocation[2, Int32, address_space=AddressSpace.SHARED]()
    var bars = stack_allocation[4, SharedMemBarrier, address_space=AddressSpace.SHARED]()
    if thread_idx.x == 0:
        MBarPipeline[2](bars).init[num_producer=1, num_consumer=32]()
    barrier()
    if thread_idx.x == 32:
        var p = RolePipeline[2, True](bars, bars + 2)
        while True:
            p.acquire()
            var t = fetch_add(counter, 1)
            tiles[p.state.index()] = t
            p.commit()
            if t >= n:
                break
    elif thread_idx.x < 32:
        var c = RolePipeline[2, False](bars, bars + 2)
        while True:
            c.wait()
            {}
            if t >= n:
                break
            res[t] = 1
"""
BY_HAND = kernel(
    """
    var phase: UInt32 = {}
    if t < 32:
        for i in range(n):
            bars[unsafe_offset=1].wait(phase)
            buf[unsafe_offset=lane] = src[unsafe_offset=i * 32 + lane]
            _ = bars[unsafe_offset=0].arrive()
            phase ^= 1
    else:
        phase = 0
        for i in range(n):
            bars[unsafe_offset=0].wait(phase)
            res[unsafe_offset=i * 32 + lane] = buf[unsafe_offset=lane]
            _ = bars[unsafe_offset=1].arrive()
            phase ^= 1
    """
)
READS, GIVES_BACK = "var t = tiles[c.state.index()]", "c.release()"


def _ring_from(second: int) -> str:
    """A ring whose second table begins at a barrier."""
    return ring().replace("bars.unsafe_offset(2)", f"bars.unsafe_offset({second})")


MENDED = {
    "bytes are announced": (
        copies(consumer=(WAIT, READ, "fence_proxy_async()", RELEASE)).replace("p.step()", "p.commit()"),
        "`p.step()` in place of `p.commit()`",
        copies(),
    ),
    "an index behind release": (
        DRAWN.format(f"{GIVES_BACK}\n            {READS}"),
        "take the index from the state before it steps",
        DRAWN.format(f"{READS}\n            {GIVES_BACK}"),
    ),
    "one table for both": (_ring_from(0), "`RolePipeline[2, …](bars, bars + 2)`", _ring_from(2)),
    "tables that overlap": (_ring_from(1), "`RolePipeline[2, …](bars, bars + 2)`", _ring_from(2)),
    "the first wait for a slot": (BY_HAND.format(0), "warp 0 waits for bars[1] begin with 1", BY_HAND.format(1)),
}  # fmt: skip


@pytest.mark.parametrize(("text", "help", "mended"), MENDED.values(), ids=list(MENDED))
def test_who_follows_the_help_has_a_proof(text: str, help: str, mended: str) -> None:
    found = verdict(text)
    assert found.verdict == "fault"
    assert help in (found.diagnostics[0].help or "")
    assert verdict(mended).verdict == "proved"


def test_ends_of_unequal_length_are_told_before_tables_that_overlap() -> None:
    """The consumer's three stages go into the producer's second table."""
    text = ring().replace("RolePipeline[2, False]", "RolePipeline[3, False]")
    assert "same number of stages" in (verdict(text).diagnostics[0].help or "")


def test_an_announcement_is_told_to_have_arrived() -> None:
    notes = dict.fromkeys(text for _, text in verdict(MENDED["bytes are announced"][0]).diagnostics[0].notes)
    assert "this announces the bytes and has arrived with that" in notes


def test_commit_beside_an_announcement_may_be_meant() -> None:
    """One thread announces the bytes of a copy, and all of its warp commit what they have written."""
    announce = "if t == 0:", "    p.producer_mbar()[].expect_bytes(0)"
    body = ("p.acquire()", WRITE, *announce, "p.commit()")
    assert verdict(ring(body, count="33 if i < 2 else 32")).verdict == "proved"
    help = verdict(ring(body, (READ, RELEASE), count="33 if i < 2 else 32")).diagnostics[0].help
    assert help is not None and "p.step()" not in help


LEAVES = """\
@kernel(threads=64)
def k(res: Pointer[Int32, MutAnyOrigin], n: Int32):
    var i = Int32(thread_idx.x)
    {}
    barrier()
"""


def test_threads_that_return_before_a_barrier_are_to_guard_their_accesses() -> None:
    found = verdict(LEAVES.format("if i >= n:\n        return\n    res[i] = 1"))
    assert found.verdict == "not provable here" and "`if i < n:`" in (found.diagnostics[0].help or "")
    assert verdict(LEAVES.format("if i < n:\n        res[i] = 1")).verdict == "proved"


RANKED = """\
from cluster import block_rank_in_cluster
@kernel(threads=32, cluster=4)
def k(src: Pointer[Float32], res: Pointer[Float32, MutAnyOrigin], n: Int):
    var part = stack_allocation[32, Float32, address_space=AddressSpace.SHARED]()
    var sums = stack_allocation[32, Float32, address_space=AddressSpace.SHARED]()
    var each = ceildiv(n, 4)
    var rank = Int(block_rank_in_cluster())
    var t = Int(thread_idx.x)
    var sum: Float32 = 0
    for i in range(rank * each, min((rank + 1) * each, n), 32):
        part[t] = src[i + t]
        barrier()
        sum += part[31 - t]
        barrier()
    sums[t] = sum
    cluster_sync()
    if rank == 0:
        comptime for r in range(1, 4):
            sum += load_cluster(sums + t, UInt32(r))
        res[t] = sum
    cluster_sync()
"""


def test_turns_that_depend_on_the_rank_are_named() -> None:
    found = verdict(RANKED)
    assert found.verdict == "not provable here"
    assert "depends on their ranks" in found.diagnostics[0].message
    assert found.diagnostics[0].span is not None and found.diagnostics[0].span.line == 10
