"""Pairs of blocks that multiply together: copies of the odd block count on the even one's barriers."""

import pytest
from proofs import SAMPLES, verdict

GEMM = (SAMPLES / "10_gemm_blackwell.pdsl").read_text(encoding="utf-8")
PAIR = GEMM.replace(
    "CTAS: Int = 1, BN: Int = 256,\n    STAGES: Int = 4", "CTAS: Int = 2, BN: Int = 128,\n    STAGES: Int = 2", 1
)


def test_the_pair_is_proved():
    found = verdict(PAIR, arch="sm_100a", kernel="gemm")
    assert (found.verdict, found.diagnostics) == ("proved", ())


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("p.acquire[stage]()\n", "if rank == 0: p.acquire[stage]()\n", "E1208"),
        ("p.producer_mbar[stage]()[].wait(p.state.phase())\n", "pass\n", "E1207"),
        ("tell[CTAS](s.producer_mbar(), e)", "mma_arrive[2](s.producer_mbar(), e)", "E1212"),
    ],
    ids=["the odd block does not acquire", "nobody waits for the tiles", "one block is told"],
)
def test_what_is_wrong_with_a_pair(before, after, kind):
    assert before in PAIR
    found = verdict(PAIR.replace(before, after, 1), arch="sm_100a", kernel="gemm")
    assert found.verdict == "fault"
    assert [said.code for said in found.diagnostics] == [kind]
