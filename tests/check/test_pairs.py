"""Pairs of blocks that multiply together: copies of the odd block count on the even one's barriers."""

import pytest
from proofs import SAMPLES, verdict

from ptxdsl import driver
from ptxdsl.check.proof import prove
from ptxdsl.check.search import Search
from ptxdsl.options import Options
from ptxdsl.protocol.from_tir import kernel_model
from ptxdsl.source import Source

GEMM = (SAMPLES / "10_gemm_blackwell.pdsl").read_text(encoding="utf-8")
PAIR = GEMM.replace(
    "CTAS: Int = 1, BN: Int = 256,\n    STAGES: Int = 4", "CTAS: Int = 2, BN: Int = 128,\n    STAGES: Int = 2", 1
)


def test_the_pair_is_proved():
    found = verdict(PAIR, arch="sm_100a", kernel="gemm")
    assert (found.verdict, found.diagnostics) == ("proved", ())


def test_who_waits_for_the_other_block_is_told_nothing_new_meanwhile(monkeypatch):
    """Warps without work are at the cluster's barrier while rings turn: a place is the same after every turn."""
    followed = []
    monkeypatch.setattr(
        Search, "follow", lambda search, state, follow=Search.follow: followed.append(search) or follow(search, state)
    )
    job = driver.Job(Source("pair.pdsl", PAIR), "gemm", options=Options("sm_100a", check="off"))
    found = prove(kernel_model(driver.run(job, "tir").kernels[0]), (256, 1, 1))
    assert len(followed) <= 3 * found.states  # two ways of each, and some once more


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("p.acquire[stage]()\n", "if rank == 0: p.acquire[stage]()\n", "E1208"),
        ("p.producer_mbar[stage]()[].wait(p.state.phase())\n", "pass\n", "E1207"),
        ("commit_to[CTAS](s.producer_mbar(), e)", "mma_arrive[2](s.producer_mbar(), e)", "E1212"),
    ],
    ids=["the odd block does not acquire", "nobody waits for the tiles", "one block is told"],
)
def test_what_is_wrong_with_a_pair(before, after, kind):
    assert before in PAIR
    found = verdict(PAIR.replace(before, after, 1), arch="sm_100a", kernel="gemm")
    assert found.verdict == "fault"
    assert [said.code for said in found.diagnostics] == [kind]
