"""What a fault comes from where something is left out, and what an array does not have."""

from __future__ import annotations

import pytest
from pipeline_kernels import ACQUIRE, READ, RELEASE, WAIT, WRITE, block, ring
from proofs import verdict

FILL = (ACQUIRE, WRITE, "_ = p.producer_mbar()[].arrive()", "p.step()")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ring(FILL[:-1]), "waits for the same phase in every turn: nothing in the loop steps to the next one"),
        (ring(FILL, (WAIT, READ)), "waits for the same phase in every turn: nothing in the loop steps to the next one"),
        (ring(FILL, (READ, RELEASE)), "a stage is given back here, and nothing waits for it before"),
    ],
    ids=["step", "release", "wait"],
)
def test_a_step_that_is_left_out_is_named(text: str, said: str) -> None:
    found = verdict(text)
    assert found.verdict == "fault"
    assert said in [text for _, text in found.diagnostics[0].notes]


@pytest.mark.parametrize("at", ["64", "t + 1", "t * 2"])
def test_an_index_that_no_launch_keeps_in_its_array(at: str) -> None:
    """``buf`` has 64 elements."""
    for write in (
        f"buf[unsafe_offset={at}] = 1",
        f"buf[unsafe_offset=t] = 1\n    barrier()\n    res[] = buf[unsafe_offset={at}]",
    ):
        found = verdict(block(*write.split("\n    ")))
        assert (found.verdict, found.kinds) == ("fault", ("stale stage index",))
        assert found.diagnostics[0].message.startswith(
            "stale stage index: `buf` has 64 elements, and this accesses element"
        )
    assert verdict(block("buf[unsafe_offset=t] = 1")).verdict == "proved"
