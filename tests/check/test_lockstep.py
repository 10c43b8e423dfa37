"""Blocks of a cluster that are followed as one: what is proved so, and that faults of single ranks are not."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import pytest
from corpus import CLEAN, FIXED, read
from proofs import SAMPLES

from ptxdsl import driver
from ptxdsl.check.cluster import Blocks, ways
from ptxdsl.check.proof import Proof, in_lockstep, prove
from ptxdsl.options import Options
from ptxdsl.protocol.from_tir import kernel_model
from ptxdsl.source import Source

TEXTS = {path.stem: read(path).text for path in CLEAN if "cluster=" in read(path).text}
MULTICAST, NEIGHBOURS, STORES = (
    TEXTS[name] for name in ("cluster_multicast", "cluster_of_neighbours", "stores_between_blocks")
)


def proofs(text: str, arch: str = "sm_90a", constants: Mapping[str, str] | None = None) -> tuple[Proof | None, Proof]:
    """What one block proves for all, and the proof in the end."""
    options = Options(arch, check="off")
    job = driver.Job(Source("kernel.pdsl", text), None, constants=constants or {}, options=options)
    kernel = kernel_model(driver.run(job, "tir").kernels[0])
    assert kernel.threads is not None and kernel.cluster is not None
    found = (in_lockstep(kernel, kernel.threads, blocks) for blocks in ways(prod(kernel.cluster)))
    return next((proof for proof in found if proof is not None), None), prove(kernel, kernel.threads)


def changed(text: str, *changes: tuple[str, str]) -> str:
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text


# Each block of four writes into the next one's ring, and tells the one before it that it has read.
ROUND = changed(
    NEIGHBOURS,
    ("cluster=2", "cluster=4"), ("var peer = rank ^ 1", "var peer = (rank + 1) % 4\n    var before = (rank + 3) % 4"),
    ("consumer_mbar()[].arrive_cluster(peer)", "consumer_mbar()[].arrive_cluster(before)"),
)  # fmt: skip


@pytest.mark.parametrize("blocks", [Blocks(2), Blocks(4), Blocks(8), Blocks(3, cyclic=True), Blocks(4, cyclic=True)])
def test_each_block_sees_each_other_one_at_one_place(blocks: Blocks) -> None:
    ranks = range(blocks.count)
    for block in ranks:
        assert {blocks.place(block, other) for other in ranks} == set(ranks)
        assert all(blocks.rank(block, blocks.place(block, other)) == other for other in ranks)
        # what block 0 knows of everybody's first and third event, told to another block and back again
        events = blocks.everywhere(1) | 1 << 2 * blocks.count + block
        there = blocks.seen_from(block, events)
        assert there == blocks.everywhere(1) | 1 << 2 * blocks.count
        assert blocks.seen_from(blocks.back(block), there) == events


def test_ways_to_see_one_another() -> None:
    assert [(b.count, b.cyclic) for n in (1, 2, 3, 4) for b in ways(n)] == [
        (2, False),
        (3, True),
        (4, False),
        (4, True),
    ]


@pytest.mark.parametrize("text", [*TEXTS.values(), ROUND], ids=[*TEXTS, "round"])
def test_one_block_is_followed_for_all(text: str) -> None:
    together, found = proofs(text)
    assert together is not None and found.verdict == together.verdict == "proved"
    assert found.steps == together.steps


@pytest.mark.parametrize("constants", [{"CLUSTER": "2"}, {"SPLIT": "2"}, {"SPLIT": "4", "GROUPS": "1"}], ids=str)
def test_one_block_is_followed_for_all_of_a_product(constants: dict[str, str]) -> None:
    text = (SAMPLES / "08_gemm_hopper.pdsl").read_text(encoding="utf-8")
    together, found = proofs(text, constants={"BN": "64", "C_STAGES": "1", **constants})
    assert together is not None and found.verdict == "proved" and found.steps == together.steps


def test_as_many_steps_whatever_the_size_of_the_cluster() -> None:
    four = changed(
        MULTICAST,
        ("cluster=2", "cluster=4"), (".init(2)", ".init(4)"), ("lane < 2", "lane < 4"), ("0x3", "0xF"),
        ("allocation[128", "allocation[256"), ("index()) * 64", "index()) * 128"), ("bytes(256)", "bytes(512)"),
        ("[unsafe_offset=slot + 32]", "[unsafe_offset=slot + 32] + tile[unsafe_offset=slot + 64]"),
        ("[unsafe_offset=slot + 64]", "[unsafe_offset=slot + 64] + tile[unsafe_offset=slot + 96]"),
    )  # fmt: skip
    (two, _), (more, _) = proofs(MULTICAST), proofs(four)
    assert two is not None and more is not None and two.steps == more.steps


FAULTS = {
    "arrives not from rank 1": (MULTICAST, "if lane < 2:", "if lane < 2 and rank == 0:"),
    "arrives at rank 0 alone": (MULTICAST, "if lane < 2:", "if lane < 1:"),
    "mask of rank 1": (MULTICAST, "0x3)", "UInt16(3) - UInt16(rank))"),
    "mask of the own block": (MULTICAST, "0x3)", "UInt16(1) << UInt16(rank))"),
    "bytes of rank 1": (MULTICAST, "expect_bytes(256)", "expect_bytes(256 - 128 * Int32(rank))"),
    "parity of rank 1": (MULTICAST, "c.wait()", "c.producer_mbar()[].wait(c.state.phase() ^ rank)"),
    "count of rank 1": (MULTICAST, ".init(2)", ".init(2 + Int32(block_rank_in_cluster()))"),
    "turns of rank 1": (MULTICAST, "range(n):\n            p", "range(n - Int32(rank)):\n            p"),
    "stage of rank 1": (MULTICAST, "Int32(p.state.index()) * 64", "(Int32(p.state.index()) ^ Int32(rank)) * 64"),
    "both load the same half": (MULTICAST, "* 64 + half)", "* 64)"),
    "rank 1 reads first": (MULTICAST, "c.wait()", "if rank == 0:\n                c.wait()"),
    "no meeting of rank 1": (
        MULTICAST,
        "    cluster_sync()\n    var lane",
        "    if block_rank_in_cluster() == 0:\n        cluster_sync()\n    var lane",
    ),
    "all tell rank 0": (NEIGHBOURS, "arrive_cluster(peer)", "arrive_cluster(0)"),
    "rank 1 tells itself": (NEIGHBOURS, "arrive_cluster(peer)", "arrive_cluster(peer & rank)"),
    "all write to rank 1": (NEIGHBOURS, "* 32 + lane), peer", "* 32 + lane), 1"),
    "rank 1 sends to itself": (STORES, "rank ^ 1, src", "1, src"),
    "rank 1 does not read": (STORES, "        taken.wait()\n", "        if rank == 0:\n            taken.wait()\n"),
    "rank 1 leaves early": (
        STORES,
        "taken.step()\n    given.acquire()",
        "taken.step()\n    if rank == 0:\n        given.acquire()",
    ),
    "rank 3 tells itself": (ROUND, "(rank + 3) % 4", "(rank + 3 + rank // 3) % 4"),
    "rank 3 writes to rank 1": (ROUND, "(rank + 1) % 4", "(rank + 1 + rank // 3) % 4"),
    "parity of rank 3": (ROUND, "wait_cluster(c.state.phase())", "wait_cluster(c.state.phase() ^ (rank // 3))"),
}


@pytest.mark.parametrize(("text", "before", "after"), FAULTS.values(), ids=FAULTS)
def test_faults_of_one_rank_are_found(text: str, before: str, after: str) -> None:
    together, found = proofs(changed(text, (before, after)))
    assert together is None and found.verdict == "fault", found


def test_blocks_with_roles_of_their_own_are_followed_each() -> None:
    """One of two blocks has the tensor cores work for both: nothing is wrong with that."""
    (path,) = (path for path in FIXED if path.stem == "09_commit_mask_fixed")
    entry = read(path)
    together, found = proofs(entry.text, entry.arch)
    assert together is None and found.verdict == "proved"
