"""Roles that go round without anything to be decided: for ever, or until something is wrong."""

from __future__ import annotations

from corpus import CLEAN, read
from pipeline_kernels import ACQUIRE, COMMIT, READ, RELEASE, WAIT, WRITE, kernel
from proofs import lines, verdict


def roles(producer: str, consumer: str, third: str = "", turn: str = "") -> str:
    """Both go round while their conditions hold. turn: what the producer counts before it acquires."""
    text = f"""
        if t < 32:
            var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))
            var i: Int32 = 0
            while {producer}:
                {turn or "pass"}
                {ACQUIRE}
                {WRITE}
                {COMMIT}
                i += 1
        elif t < 64:
            var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))
            var i: Int32 = 0
            while {consumer}:
                {WAIT}
                {READ}
                {RELEASE}
                i += 1
        """
    more = f"else:\n            {third}\n" if third else ""
    return kernel(text.rstrip() + "\n        " + more, threads=96 if third else 64)


def test_loops_until_a_number_is_met() -> None:
    """With n = -1 they go on until the number wraps, which is taken never to come."""
    assert verdict(roles("i != n", "i != n")).verdict == "proved"
    found = verdict(roles("i != n", "i != n + 1"))
    assert (found.verdict, found.kinds) == ("fault", ("missing arrive",))


def test_loops_without_an_end() -> None:
    assert verdict(roles("True", "True")).verdict == "proved"
    waiting = verdict(roles("True", "True", "bars[unsafe_offset=4].wait(0)"))
    assert waiting.verdict != "proved"


def test_what_is_wrong_after_many_turns() -> None:
    late = roles("True", "True").replace("p.acquire()\n", "if i != 300:\n                p.acquire()\n")
    found = verdict(late)
    assert found.verdict == "fault"


def test_a_role_that_waits_for_the_same_phase_for_ever() -> None:
    text = next(read(path).text for path in CLEAN if path.stem == "tiles_from_a_counter")
    found = verdict(text.replace("            c.release()\n", ""))
    assert (found.verdict, found.kinds, found.shows_with) == ("fault", ("wrong parity",), ("n = 2",))
    assert "go round for ever" in found.diagnostics[0].message and found.diagnostics[0].span.line in lines(found)
