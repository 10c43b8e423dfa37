"""What is asked of a launch parameter beside a loop that runs to it: whether it is 7, or by a loop with another step;
and ``while`` loops that count by a constant, which are ranges to the proof.

Each faulty kernel hangs for the launch that is named with it: one role waits for a turn which the other does not make.
"""

from __future__ import annotations

import pytest
from pipeline_kernels import ACQUIRE, COMMIT, READ, RELEASE, WAIT, WRITE, kernel
from proofs import verdict

from ptxdsl import driver
from ptxdsl.check.proof import prove
from ptxdsl.check.search import Search
from ptxdsl.options import Options
from ptxdsl.protocol.from_tir import kernel_model
from ptxdsl.source import Source

HEAD = "var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))"
TURN = f"{WAIT}\n{READ}\n{RELEASE}"


def block(head: str, body: str) -> str:
    return "\n".join([head, *(f"    {line}" for line in body.splitlines())])


def roles(producer: str, consumer: str) -> str:
    """Both around a ring of two stages."""
    made = f"var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))\n{producer}"
    return kernel("\n".join([block("if t < 32:", made), block("else:", f"{HEAD}\n{consumer}")]))


def fill(head: str, more: str = "") -> str:
    return block(head, f"{ACQUIRE}\n{WRITE}\n{COMMIT}\n{more}".rstrip())


def drain(head: str, more: str = "") -> str:
    return block(head, f"{TURN}\n{more}".rstrip())


UP = "var i: Int32 = 0\n"
K = "var k = Int32(grid_dim.x)\n"


LEAVE = "if i == k:\n        break\n    "
SKIP = "if j == 1 and k % 7 == 5:\n        i += 1\n        continue\n    "


def one_more(condition: str) -> str:
    """The consumer makes one more turn in some launches."""
    more = block(f"if {condition}:", f"{WAIT}\nres[] = buf[]\n{RELEASE}")
    return roles(fill("for i in range(n):"), drain("for i in range(n):") + "\n" + more)


FAULTY = {
    # n = 7: the eighth turn of the consumer
    "one more for one length": one_more("n == 7"),
    "one more for a large length": one_more("n == 100"),
    # n = 9: the producer's last turns need stages that the consumer gives back in its sixth
    "one by ones, one by twos": roles(
        UP + fill("while True:", "i += 1").replace(ACQUIRE, "if i >= n:\n        break\n    " + ACQUIRE),
        drain("for i in range(0, n, 2):"),
    ),
    # k = 5, two tiles: the consumer makes no turn in the second
    "a loop in a loop": roles(
        K + block("for j in range(n):", UP + fill("while i != k:", "i += 1")),
        K + block("for j in range(n):", UP + drain("while i != k:", "i += 1").replace(WAIT, SKIP + WAIT)),
    ),
    "one by twos, one by threes": roles(fill("for i in range(0, n, 2):"), UP + drain("while i < n:", "i += 3")),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_turn_too_many_or_too_few_is_found(name: str) -> None:
    found = verdict(FAULTY[name])
    assert (found.verdict, found.kinds) == ("fault", ("missing arrive",))


def test_the_launch_is_the_one_that_was_asked_for() -> None:
    found = [verdict(FAULTY[name]).shows_with for name in ("one more for one length", "one more for a large length")]
    assert found == [("n = 7",), ("n = 100",)]


ALIKE = {
    "up": (UP + fill("while i < n:", "i += 1"), drain("for i in range(n):")),
    "down by threes": ("var i = n\n" + fill("while i > 0:", "i -= 3"), drain("for i in range(n, 0, -3):")),
    "down to the last": ("var i = n - 1\n" + fill("while i >= 0:", "i -= 1"), drain("for i in range(n - 1, -1, -1):")),
    "the bound first": (UP + fill("while n > i:", "i += 2"), drain("for i in range(0, n, 2):")),
    "with its bound": (UP + fill("while i + 3 <= n:", "i += 2"), drain("for i in range(0, n - 2, 2):")),
    "left in the middle": (
        K + UP + fill("while i < n:", "i += 1").replace(ACQUIRE, LEAVE + ACQUIRE),
        K + drain("for i in range(n):").replace(WAIT, LEAVE + WAIT),
    ),
    "one in another": (
        K + "var j: Int32 = 0\n" + block("while j < n:", fill("for i in range(k):") + "\nj += 1"),
        K + block("for j in range(n):", UP + drain("while i < k:", "i += 1")),
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_the_same_turns_by_another_loop_are_the_same(name: str) -> None:
    found = verdict(roles(*ALIKE[name]))
    assert (found.verdict, found.diagnostics) == ("proved", ())


NO_RANGES = {
    "below an unsigned 0": "var u = UInt32(n)\n" + fill("while u > 0:", "u -= 3").replace("i * 32", "Int32(u) * 32"),
    "not to its bound": UP + fill("while i < n:", "if i != 5:\n    i += 1"),
    "by two steps": UP + fill("while i < n:", "if i == 5:\n    i += 2\n    continue\ni += 1"),
}


@pytest.mark.parametrize("name", NO_RANGES)
def test_a_loop_that_makes_other_turns_is_no_range(name: str) -> None:
    steps = drain("for i in range(0, n, 3):" if "unsigned" in name else "for i in range(n):")
    assert verdict(roles(NO_RANGES[name], steps)).verdict != "proved"


def test_groups_that_are_compared_only_late_are_one_group() -> None:
    """What is learned of such a group is found again: the search ends, here by its limit."""
    skip = "if i < min(n, j):\n        i += 1\n        continue\n    "
    turns = [
        K + block("for j in range(k):", UP + role("while i < n:", "i += 1").replace(first, skip + first))
        for role, first in ((fill, ACQUIRE), (drain, WAIT))
    ]
    module = driver.run(driver.Job(Source("kernel.pdsl", roles(*turns)), options=Options("sm_90a")), "tir")
    found = prove(kernel_model(module.kernels[0]), (64, 1, 1), max_states=40)
    assert (found.verdict, found.states) == ("not provable here", 41)


def test_programs_are_made_once_however_often_turns_are_told_apart_further(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(Search, "prepare", lambda search, prepare=Search.prepare: made.append(prepare(search)))
    turns = "for i in range(n):"
    found = verdict(roles(block("if n != 7:", fill(turns)), block("if n != 7:", drain(turns))))
    assert (found.verdict, len(made)) == ("proved", 1)


def test_a_turn_whose_value_is_compared_with_more_than_is_told_apart_is_not_proved() -> None:
    """m = 5000: (m + 2501) // 3 is 2500, no longer what the producer asks for, while the consumer waits."""
    filled = block("if (m + i) // 3 < 1000 or (m + i) // 3 >= i:", f"{ACQUIRE}\n{WRITE}\n{COMMIT}")
    skips = "var m = Int32(grid_dim.x)\n" + block("for i in range(n):", filled)
    assert verdict(roles(skips, drain("for i in range(n):"))).verdict == "not provable here"
