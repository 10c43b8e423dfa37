"""Loops that ask a barrier until its phase is complete are waits; others around a test are not followed."""

from __future__ import annotations

import pytest
from pipeline_kernels import READ, RELEASE, ring
from proofs import verdict

ASKED = "c.producer_mbar()[].try_wait(c.state.phase())"
WAITS = {
    "while not": (f"while not {ASKED}: pass",),
    "a loop that is left": ("while True:", f"    if {ASKED}: break"),
    "what is counted is not needed": (f"while not {ASKED}: asked += 1",),
}
OTHERS = {
    "at most nine times": ("for _ in range(9):", f"    if {ASKED}: break"),
    "until it is not complete": (f"while {ASKED}: pass",),
    "once": (f"_ = {ASKED}",),
}


def _asking(lines: tuple[str, ...]) -> str:
    return ring(consumer=(*lines, READ, RELEASE), consumer_before=("var asked: Int32 = 0",))


@pytest.mark.parametrize("name", WAITS)
def test_asking_until_it_is_complete_is_a_wait(name: str) -> None:
    assert verdict(_asking(WAITS[name])).verdict == "proved"
    wrong = tuple(line.replace("state.phase()", "state.phase() ^ 1") for line in WAITS[name])
    assert verdict(_asking(wrong)).verdict == "fault"


@pytest.mark.parametrize("name", OTHERS)
def test_asking_otherwise_is_not_followed(name: str) -> None:
    assert verdict(_asking(OTHERS[name])).verdict == "not provable here"
