"""Rings of two roles, right ones and such with one mistake: the class that is found, at which line, for which n."""

from __future__ import annotations

import numpy as np
import pytest
from pipeline_kernels import (
    ACQUIRE,
    COMMIT,
    READ,
    RELEASE,
    STATE,
    WAIT,
    WRITE,
    block,
    by_hand,
    copies,
    kernel,
    ring,
)
from proofs import lines, verdict

import ptxdsl

HERE, THERE = "var at = Int32(c.state.index()) * 32", "res[unsafe_offset=i] = buf[unsafe_offset=at + lane]"
ELECTED = "1 if i == 2 or i == 3 else 32"
PEELED = (WAIT, "res[unsafe_offset=lane] = buf[unsafe_offset=lane]", RELEASE)
FILL, MIRROR = "buf[unsafe_offset=t] = 1", "res[unsafe_offset=t] = buf[unsafe_offset=63 - t]"
ANY_PARITY = ("i % 3", "(i // 3) % 2 ^ 1", "(i // 3) % 2")

CLEAN = {
    "a ring": ring(),
    "the last turn is before the loop": ring(trips="n + 1", consumer_before=PEELED, consumer_trips="1, n + 1"),
    "the first fill needs no acquire": ring(
        before=("buf[unsafe_offset=lane] = 0", COMMIT), trips="n", consumer_trips="n + 1"
    ),
    "two warps read, 64 arrivals": ring(threads=96, count="32 if i < 2 else 64"),
    "one lane releases for its warp": ring(
        consumer=(WAIT, READ, "syncwarp()", "if lane == 0:", "    c.release_no_step()", "c.step()"), count=ELECTED
    ),
    "a stage may be skipped by both": ring(
        producer=("if i % 3 != 1:", "    p.acquire()", "    " + WRITE, "    p.commit()"),
        consumer=("if i % 3 != 1:", "    c.wait()", "    " + READ, "    c.release()"),
    ),
    "bulk copies": copies(),
    "stage and parity from the counter": by_hand(*ANY_PARITY),
    "parities in other words": by_hand("i - i // 3 * 3", "1 - (Int(i // 3) & 1)", "i % 6 >= 3"),
    "a counter that goes down": by_hand(*(e.replace("i", "(n - 1 - i)") for e in ANY_PARITY)).replace(
        "in range(n)", "in range(n - 1, -1, -1)"
    ),
    "PipelineState": STATE,
    "threads meet between write and read": block(FILL, "barrier()", MIRROR),
    "two loops one after the other": kernel(
        """
        if t < 32:
            var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))
            for i in range(n):
                p.acquire()
                p.commit()
            for i in range(n):
                p.acquire()
                buf[unsafe_offset=Int32(p.state.index()) * 32 + lane] = src[unsafe_offset=i * 32 + lane]
                p.commit()
        else:
            var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))
            for i in range(n):
                c.wait()
                c.release()
            for i in range(n):
                c.wait()
                res[unsafe_offset=i * 32 + lane] = buf[unsafe_offset=Int32(c.state.index()) * 32 + lane]
                c.release()
        """
    ),
}

# name → kernel, class, a line that is shown, the least n with which it happens
FAULTY = {
    "a peeled wait": (ring(consumer_before=PEELED, consumer_trips="1, n"), "missing arrive", 20, 0),
    "one turn more": (ring(consumer_trips="n + 1"), "missing arrive", 21, 0),
    "an odd number of turns": (ring(trips="n // 2 * 2"), "missing arrive", 21, 1),
    "no acquire": (ring(producer=(WRITE, COMMIT)), "slot overwritten before release", 15, 3),
    "no wait": (ring(consumer=(READ, RELEASE)), "slot read before full", 21, 1),
    "no commit": (ring(producer=(ACQUIRE, WRITE, "p.step()")), "missing arrive", 21, 1),
    "no release": (ring(consumer=(WAIT, READ, "c.step()")), "missing arrive", 15, 3),
    "released, then read": (
        ring(consumer=(WAIT, HERE, RELEASE, THERE)),
        "slot overwritten before release",
        24,
        3,
    ),
    "committed, then written": (
        ring(producer=(ACQUIRE, "var at = Int32(p.state.index()) * 32", COMMIT, "buf[unsafe_offset=at + lane] = 0")),
        "slot read before full",
        18,
        1,
    ),
    "a stage further": (
        ring(consumer=(WAIT, HERE.replace("())", "() ^ 1)"), THERE, RELEASE)),
        "stale stage index",
        23,
        2,
    ),
    "64 arrive, 32 are expected": (ring(threads=96), "wrong arrival count", 23, 1),
    "32 arrive, 64 are expected": (ring(count="32 if i < 2 else 64"), "wrong arrival count", 7, 3),
    "one lane releases before the others have read": (
        ring(consumer=(WAIT, READ, "if lane == 0:", "    c.release_no_step()", "c.step()"), count=ELECTED),
        "slot overwritten before release",
        24,
        3,
    ),
    "parity of two bits": (by_hand("i % 3", "(i // 3) ^ 1 & 1", "(i // 3) % 2"), "wrong parity", 15, 7),
    "parity of the stage": (by_hand("i % 3", "(i // 3) % 2 ^ 1", "s % 2"), "wrong parity", 21, 2),
    "too many bytes announced": (copies(144), "byte mismatch", 17, 1),
    "too few bytes announced": (copies(112), "byte mismatch", 17, 1),
    "no copy": (copies(copy=()), "byte mismatch", 17, 1),
    "readers without a proxy fence": (copies(consumer=(WAIT, READ, RELEASE)), "missing proxy fence", 25, 5),
    "no fence after the initialisation": (copies(init_fence=False), "use before init is visible", 7, 1),
}  # fmt: skip

BLOCKS = {
    "nothing between write and read": (block(FILL, MIRROR), "data race"),
    "a barrier for half of the block": (block(FILL, "if t < 32:", "    barrier()", MIRROR), "divergent collective"),
    "a named barrier without its other half": (
        block("if t < 32:", "    named_barrier[64](1)", FILL),
        "divergent collective",
    ),
    "a shuffle of half a warp": (block("if t < 16:", "    syncwarp()", FILL), "divergent collective"),
}

SHOWN_BY_RUNS = frozenset({"missing arrive", "wrong arrival count", "byte mismatch"})


@pytest.mark.parametrize("name", CLEAN)
def test_right_kernels_are_proved(name: str) -> None:
    found = verdict(CLEAN[name])
    assert (found.verdict, found.diagnostics) == ("proved", ())


@pytest.mark.parametrize("name", FAULTY)
def test_mistakes_are_found(name: str) -> None:
    text, kind, line, n = FAULTY[name]
    found = verdict(text)
    assert (found.verdict, found.kinds) == ("fault", (kind,))
    assert line in lines(found)
    assert f"it shows with n = {n}" in (found.diagnostics[0].help or "")


@pytest.mark.parametrize("name", BLOCKS)
def test_mistakes_of_blocks_are_found(name: str) -> None:
    text, kind = BLOCKS[name]
    found = verdict(text)
    assert (found.verdict, found.kinds) == ("fault", (kind,))


def finishes(text: str, n: int) -> bool:
    src, res = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    report = ptxdsl.loads(text, check="off").kernel.simulate(src, res, n)
    return bool(report.finished)


@pytest.mark.parametrize("name", [name for name, case in FAULTY.items() if case[1] in SHOWN_BY_RUNS])
def test_the_least_n_is_the_least_that_a_run_fails_with(name: str) -> None:
    text, _, _, n = FAULTY[name]
    assert not finishes(text, n)
    assert all(finishes(text, smaller) for smaller in range(n))
