"""What is asked of a launch parameter beside a loop that runs to it: whether it is 7, or by a loop with another step.

Each faulty kernel hangs for the launch that is named with it: one role waits for a turn which the other does not make.
"""

from __future__ import annotations

import pytest
from pipeline_kernels import COMMIT, READ, RELEASE, WAIT, WRITE, kernel
from proofs import verdict

HEAD = "var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))"
TURN = f"{WAIT}\n{READ}\n{RELEASE}"


def block(head: str, body: str) -> str:
    return "\n".join([head, *(f"    {line}" for line in body.splitlines())])


def roles(producer: str, consumer: str) -> str:
    """Both around a ring of two stages."""
    made = f"var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))\n{producer}"
    return kernel("\n".join([block("if t < 32:", made), block("else:", f"{HEAD}\n{consumer}")]))


def fill(head: str, more: str = "") -> str:
    return block(head, f"p.acquire()\n{WRITE}\n{COMMIT}\n{more}".rstrip())


def drain(head: str, more: str = "") -> str:
    return block(head, f"{TURN}\n{more}".rstrip())


UP = "var i: Int32 = 0\n"


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
        UP + fill("while True:", "i += 1").replace("p.acquire()", "if i >= n:\n        break\n    p.acquire()", 1),
        drain("for i in range(0, n, 2):"),
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


def test_the_same_length_by_a_range_and_by_a_condition_is_the_same() -> None:
    assert verdict(roles(fill("for i in range(n):"), UP + drain("while i < n:", "i += 1"))).verdict == "proved"
