"""Copies that follow at once and complete on one barrier are one step, which hides nothing of what they do."""

from __future__ import annotations

import pytest
from corpus import CLEAN, read
from proofs import verdict

from ptxdsl import driver
from ptxdsl.check.proof import PROVED, Proof, prove
from ptxdsl.options import Options
from ptxdsl.protocol.from_tir import kernel_model
from ptxdsl.source import Source

TWO = next(read(path).text for path in CLEAN if path.stem == "two_loads_a_stage")
FIRST, SECOND = (line for line in TWO.splitlines(keepends=True) if "cp_async_bulk" in line)


def proof(text: str) -> Proof:
    job = driver.Job(Source("kernel.pdsl", text), None, options=Options("sm_90a", check="off"))
    return prove(kernel_model(driver.run(job, "tir").kernels[0]), (64, 1, 1))


def test_two_copies_take_as_many_steps_as_one() -> None:
    one = proof(TWO.replace(SECOND, "").replace(FIRST, FIRST.replace(", 128,", ", 384,")))
    two = proof(TWO)
    assert one.verdict == two.verdict == PROVED
    assert (one.states, one.steps) == (two.states, two.steps)


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (SECOND, SECOND.replace("slot.unsafe_offset(32)", "slot.unsafe_offset(16)"), "E1208"),
        (SECOND, SECOND + SECOND.replace("slot.unsafe_offset(32)", "slot.unsafe_offset(16)"), "E1208"),
        ("expect_bytes(384)", "expect_bytes(128)", "E1204"),
        (SECOND, SECOND + SECOND, "E1208"),
        ("expect_bytes(384)", "expect_bytes(512)", "E1204"),
    ],
    ids=["written twice", "a third, written twice", "more than announced", "the second again", "less than announced"],
)
def test_what_is_wrong_with_copies_in_a_row(before: str, after: str, kind: str) -> None:
    found = verdict(TWO.replace(before, after))
    assert (found.verdict, [said.code for said in found.diagnostics]) == ("fault", [kind])
