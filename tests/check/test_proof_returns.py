"""Threads that have returned, or go round a loop more often than others, and those that meet without them.

PTX ISA, ``exit``: a barrier for all threads of a block or cluster does not wait for threads that have exited;
``barrier``: a warp that comes counts as a whole.
"""

from __future__ import annotations

import numpy as np
import pytest
from proofs import lines, verdict

import ptxdsl

HEAD = """\
@kernel(threads=128{options})
def kernel(src: Pointer[Float32, ImmutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var s = stack_allocation[128, Float32, address_space=.SHARED]()
    var i = Int32(thread_idx.x)
"""
LEAVE = "    if i >= {}:\n        return\n"
WRITE, READ = "    s[i] = 1\n", "    res[i] = s[99 - i]\n"


@pytest.mark.parametrize(
    ("first", "meet", "kinds"),
    [
        (LEAVE.format(100) + WRITE, "barrier()", ()),
        (LEAVE.format(96) + WRITE, "barrier()", ()),
        (LEAVE.format(100) + WRITE, "named_barrier[128](1)", ()),  # of each warp some lanes come
        (LEAVE.format(96) + WRITE, "named_barrier[128](1)", ("divergent collective",)),
        (LEAVE.format(100) + WRITE, "pass", ("data race",)),
        (WRITE + LEAVE.format(96), "barrier()", ()),
    ],
)
def test_barriers_do_not_wait_for_threads_that_have_returned(first: str, meet: str, kinds: tuple[str, ...]) -> None:
    read = READ if "100" in first else READ.replace("99", "95")
    assert verdict(HEAD.format(options="") + first + f"    {meet}\n" + read).kinds == kinds


def test_a_barrier_in_a_branch_is_not_one_that_the_others_have_returned_before() -> None:
    text = HEAD.format(options="") + "    if i < 96:\n        barrier()\n"
    assert verdict(text).kinds == ("divergent collective",)


@pytest.mark.parametrize(
    ("threads", "said"),
    [
        (96, "`barrier` wants all threads, but warp 3 ends without coming to it"),
        (40, "`barrier` wants whole warps, but threads 32 to 39 come to it without the rest of theirs"),
        (33, "`barrier` wants whole warps, but thread 32 comes to it without the rest of theirs"),
    ],
)
def test_who_passes_a_barrier_by_does_not_keep_the_others_there(threads: int, said: str) -> None:
    """PTX ISA, ``exit``: the barrier is released; and the simulator goes on."""
    text = HEAD.format(options="") + f"    if i < {threads}:\n        barrier()\n    res[i] = 1\n"
    (fault,) = verdict(text).diagnostics
    assert said in fault.message and "deadlock" not in fault.message
    report = ptxdsl.loads(text, check="off").kernel.simulate(np.zeros(128, np.float32), np.zeros(128, np.float32), 1)
    assert report.finished


def test_who_passes_a_barrier_of_the_cluster_by_is_named() -> None:
    """Warp 0 arrives without waiting, which is all that the others need of it; warp 3 does not come."""
    body = "    if i < 32:\n        cluster_arrive()\n    elif i < 96:\n        cluster_sync()\n    res[i] = 1\n"
    (fault, *_) = verdict(HEAD.format(options=", cluster=2") + body).diagnostics
    assert "the barrier of the cluster wants all threads, but warp 3" in fault.message


@pytest.mark.parametrize(("less", "rest"), [("sum", "max"), ("sum", "sum")])
def test_lanes_exchange_values_at_one_instruction(less: str, rest: str) -> None:
    body = f"    if i < 7:\n        res[i] = warp_{less}(i)\n    else:\n        res[i] = warp_{rest}(i)\n"
    text = HEAD.format(options="").replace("Float32", "Int32") + body
    assert verdict(text).kinds == ("divergent collective",)
    report = ptxdsl.loads(text, check="off").kernel.simulate(np.zeros(128, np.int32), np.zeros(128, np.int32), 1)
    assert report.diagnostics[0].code == "E1180"  # the simulator's words for it


def test_lanes_meet_at_any_two_syncwarp() -> None:
    body = "    if i < 7:\n        syncwarp()\n    else:\n        syncwarp()\n"
    text = HEAD.format(options="") + body
    assert verdict(text).verdict == "proved"
    assert (
        ptxdsl.loads(text, check="off")
        .kernel.simulate(np.zeros(128, np.float32), np.zeros(128, np.float32), 1)
        .finished
    )


def test_what_returned_threads_have_written_is_ordered_by_nothing() -> None:
    text = HEAD.format(options="") + WRITE + LEAVE.format(96) + "    barrier()\n" + READ.replace("99", "127")
    assert verdict(text).kinds == ("data race",)


def test_nor_do_barriers_of_a_cluster() -> None:
    left = "    if i >= 96 and block_rank_in_cluster() == 0:\n        return\n"
    assert verdict(HEAD.format(options=", cluster=2") + left + "    cluster_sync()\n").verdict == "proved"


@pytest.mark.parametrize(
    ("body", "said", "line"),
    [
        (LEAVE.format("n") + "    barrier()\n", "not provable here", 5),
        (LEAVE.format("n") + "    res[i] = warp_sum(src[i])\n    barrier()\n", "fault", 5),
        ("    if i < n:\n        barrier()\n", "fault", 5),
        ("    for j in range(i, n, 128):\n        res[j] = 1\n        barrier()\n", "fault", 5),
        ("    for j in range(i, n * 128, 128):\n        res[j] = 1\n        barrier()\n", "not provable here", 5),
        ("    if n % 128 == 0:\n        for j in range(i, n, 128):\n            barrier()\n", "not provable here", 6),
    ],
    ids=["return", "return before a shuffle", "branch", "loop", "as often", "in a branch"],
)
def test_threads_go_as_many_ways_as_a_value_of_the_launch_says(body: str, said: str, line: int) -> None:
    found = verdict(HEAD.format(options="") + body)
    assert found.verdict == said
    assert line in lines(found)


GUARDED = WRITE + "    barrier()\n{}" + READ.replace("99", "127")


@pytest.mark.parametrize(
    ("leave", "said"),
    [
        (LEAVE.format("n"), "proved"),
        ("    if i >= n or i % 2 == 0:\n        return\n", "proved"),
        (LEAVE.format("n") + "    if src[i] < 0:\n        res[i] = s[i]\n        return\n", "proved"),
        ("    for _ in range(3):\n        if i >= n:\n            return\n", "not provable here"),
        ("    if i >= n:\n        s[100] = 1\n        return\n", "fault"),  # while thread 27 reads it
        ("    if i >= n:\n        s[0] = 1\n        return\n", "proved"),  # thread 127 does not read it then
        (LEAVE.format("n") + "    s[i] = 2\n", "fault"),
    ],
    ids=[
        "return",
        "a condition of two",
        "two returns",
        "in a loop",
        "writes before",
        "writes what nobody reads",
        "writes behind",
    ],
)
def test_what_follows_the_last_barrier_may_be_returned_before(leave: str, said: str) -> None:
    text = HEAD.format(options="") + GUARDED.format(leave)
    assert verdict(text).verdict == said


def test_threads_fill_shared_memory_in_as_many_turns_as_there_is_work() -> None:
    def filled(turns: str, meet: str = "    barrier()\n") -> tuple[str, tuple[str, ...]]:
        fill = f"    for j in {turns}:\n        s[j] = src[i]\n"
        found = verdict(HEAD.format(options="") + fill + meet + READ.replace("99", "127"))
        return found.verdict, found.assumptions

    within = "if the index at line 6 stays within its array"
    once = "if no two threads write different values to the same bytes at line 6"
    assert filled("range(i, n, 128)") == ("proved", (within,))
    assert filled("range(i % 64, n, 128)") == ("proved", (within, once))
    assert filled("range(i, n, 128)", meet="")[0] == "not provable here"


def test_what_threads_have_counted_in_unequal_turns_is_not_taken_for_equal() -> None:
    fill = "    var count: Int32 = 0\n    for j in range(i, n, 128):\n        s[j] = src[j]\n        count += 1\n"
    for use in ("    if count > 1:\n        barrier()\n", "    for _ in range(count):\n        barrier()\n"):
        assert verdict(HEAD.format(options="") + fill + use).verdict != "proved"
