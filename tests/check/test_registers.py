"""Registers that warpgroups take over from one another: whether who asks for more gets them."""

from __future__ import annotations

import pytest
from proofs import ROOT, verdict

TOO_MANY = (ROOT / "tests" / "check" / "faulty" / "27_more_registers_than_there_are.pdsl").read_text(encoding="utf-8")
RIGHT = TOO_MANY.replace("[240]", "[232]")
LOWER, RAISE = "        warpgroup_reg_dealloc[40]()\n", "        warpgroup_reg_alloc[232]()\n"
BARRIER = "        barrier()\n"


def _changed(text: str, *changes: tuple[str, str]):
    for before, after in changes:
        assert text.count(before) == 1
        text = text.replace(before, after)
    return verdict(text)


def _said(found) -> str:
    (said,) = found.diagnostics
    return said.message


def test_what_all_want_is_more_than_they_have() -> None:
    found = verdict(TOO_MANY)
    assert found.kinds == ("cyclic wait",)
    # 128 of 40 and 256 of 240 registers; 384 of 168
    assert "want 66560 together, and have 64512 (168 a thread" in _said(found)


def test_a_limit_of_the_kernel_counts() -> None:
    found = _changed(RIGHT, ("min_blocks=1", "max_registers=128"))
    assert found.kinds == ("cyclic wait",) and "have 49152 (128 a thread" in _said(found)


def test_nobody_waits_where_ptxas_ignores_it() -> None:
    found = _changed(TOO_MANY, ("threads=384, min_blocks=1", "threads=384"))
    assert (found.verdict, found.assumptions) == ("proved", ())


def test_a_barrier_before_both_is_in_nobodys_way() -> None:
    found = _changed(RIGHT, (LOWER, BARRIER + LOWER), (RAISE, BARRIER + RAISE))
    assert (found.verdict, found.assumptions) == ("proved", ())


@pytest.mark.parametrize(
    "changes",
    [
        [(LOWER, "        if n > 3:\n    " + LOWER)],
        [(LOWER, ""), ("            p.acquire()\n", "            p.acquire()\n    " + LOWER)],
        [(LOWER, LOWER + LOWER)],
        [(LOWER, "        bars[0].wait(1)\n" + LOWER)],
        [(LOWER, BARRIER + LOWER), (RAISE, RAISE + BARRIER)],
    ],
    ids=["for some launches", "in every turn", "twice", "behind a wait", "behind a barrier that comes after the other"],
)
def test_what_is_not_followed_is_assumed(changes: list[tuple[str, str]]) -> None:
    found = _changed(RIGHT, *changes)
    (assumed,) = found.assumptions
    assert found.verdict == "proved" and assumed.startswith("if the registers that are asked for at line ")


@pytest.mark.parametrize(
    "change",
    [("dealloc[40]", "dealloc[240]"), ("dealloc[40]", "alloc[160]")],
    ids=["lowered to more", "raised to less"],
)
def test_what_has_no_meaning_is_not_provable(change: tuple[str, str]) -> None:
    found = _changed(RIGHT, change)
    assert found.verdict == "not provable here"
    assert "but from the launch on it has 168" in _said(found)
