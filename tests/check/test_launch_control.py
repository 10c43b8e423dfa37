"""Cluster launch control: all that read an answer decide alike by it, for any number of answers."""

from __future__ import annotations

import pytest
from proofs import ROOT, SAMPLES, verdict

GEMM = (SAMPLES / "10_gemm_blackwell.pdsl").read_text(encoding="utf-8")
ASKING = GEMM.replace("B_MN: Bool = False, CLC: Bool = False", "B_MN: Bool = False, CLC: Bool = True", 1)
RING = (ROOT / "tests" / "check" / "faulty" / "11_answer_without_proxy_fence_fixed.pdsl").read_text(encoding="utf-8")


def pairs(ctas):
    """With tiles of 128 columns and two stages, which are looked at as quickly as any."""
    small = f"CTAS: Int = {ctas}, BN: Int = 128,\n    STAGES: Int = 2"
    return ASKING.replace("CTAS: Int = 1, BN: Int = 256,\n    STAGES: Int = 4", small, 1)


@pytest.mark.parametrize("ctas", [1, 2])
def test_the_products_are_proved(ctas):
    found = verdict(pairs(ctas), arch="sm_100a", kernel="gemm")
    assert (found.verdict, found.diagnostics) == ("proved", ())


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("5 * CTAS + READERS", "5 * CTAS", "E1202"),
        ("5 * CTAS + READERS", "5 * CTAS + READERS + 1", "E1202"),
        ("tiles.next[alone=True]()", "tiles.next()", "E1214"),
        ("tiles.ask()", "pass", "E1201"),
    ],
    ids=["a reader is not counted", "nobody is counted", "a thread waits for its warp", "nobody asks"],
)
def test_what_is_wrong_with_a_pair(before, after, kind):
    text = pairs(2)
    assert before in text
    found = verdict(text.replace(before, after, 1), arch="sm_100a", kernel="gemm")
    assert found.verdict == "fault"
    assert [said.code for said in found.diagnostics] == [kind]


def test_the_answer_may_decide_at_once():
    last = "            tile = next.x\n            more = next.canceled\n"
    assert RING.count(last) == 1
    at_once = "            if not next.canceled: break\n            tile = next.x\n"
    found = verdict(RING.replace(last, at_once), arch="sm_100a")
    assert (found.verdict, found.diagnostics) == ("proved", ())


BEGIN = "        var more = True\n        while more:\n            res"
ASK = "        while more:\n            p.acquire"
UNCLEAR = {
    "roles are an answer apart": (
        BEGIN,
        BEGIN.replace(
            "        while", "        if lane >= 32:\n            c.wait()\n            c.release()\n        while"
        ),
    ),
    "threads write answers, too": (
        BEGIN,
        BEGIN.replace("while", "if lane > 64: answers[unsafe_offset=1] = 1\n        while"),
    ),
    "two threads ask": ("if thread_idx.x == 0:\n        var p", "if thread_idx.x < 2:\n        var p"),
    "questions in a loop in a loop": (ASK, ASK.replace("while", "for _ in range(2):\n          while")),
}


@pytest.mark.parametrize("what", UNCLEAR)
def test_which_answer_it_is_must_be_seen(what):
    before, after = UNCLEAR[what]
    assert RING.count(before) == 1
    found = verdict(RING.replace(before, after), arch="sm_100a")
    assert found.verdict != "proved"


# Each block of a pair asks for itself, and both meet as often as it gets an answer.
APART = """
from cluster_launch_control import clusterlaunchcontrol_query_cancel, clusterlaunchcontrol_try_cancel

@kernel(threads=32, cluster=2)
def kernel():
    var bar = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
    var answer = unsafe_stack_allocation[2, UInt64, address_space=.SHARED, alignment=16]()
    if thread_idx.x == 0:
        bar[].init(1)
        fence_mbarrier_init()
    cluster_sync()
    var phase: UInt32 = 0
    var more = True
    while more:
        if thread_idx.x == 0:
            bar[].expect_bytes(16)
            clusterlaunchcontrol_try_cancel(answer, bar)
        bar[].wait(phase)
        more = clusterlaunchcontrol_query_cancel(answer).canceled
        fence_proxy_async()
        phase = phase ^ 1
        cluster_sync()
"""


def test_blocks_that_ask_for_themselves_have_answers_of_their_own():
    assert verdict(APART, arch="sm_100a").verdict == "not provable here"
    alone = APART.replace(", cluster=2", "").replace("cluster_sync", "barrier")
    assert verdict(alone, arch="sm_100a").verdict == "proved"


def test_nobody_asks_again_after_the_last_answer():
    """What that comes to is not defined (PTX ISA, clusterlaunchcontrol.try_cancel)."""
    assert RING.count("while more:") == 2
    found = verdict(RING.replace("while more:", "for _ in range(4):"), arch="sm_100a")
    assert found.verdict == "not provable here"
    assert "after the answer that there is none" in found.diagnostics[0].message
    once = verdict(RING.replace("while more:", "for _ in range(1):"), arch="sm_100a")
    assert once.verdict == "proved"


TWICE = """\
from cluster_launch_control import clusterlaunchcontrol_try_cancel


@kernel(threads=32)
def kernel():
    var bars = unsafe_stack_allocation[2, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    var first = unsafe_stack_allocation[2, UInt64, address_space=.SHARED, alignment=16]()
    var then = unsafe_stack_allocation[2, UInt64, address_space=.SHARED, alignment=16]()
    if thread_idx.x == 0:
        bars[unsafe_offset=0].init(1)
        bars[unsafe_offset=1].init(1)
        fence_mbarrier_init()
        bars[unsafe_offset=0].expect_bytes(16)
        clusterlaunchcontrol_try_cancel(first, bars)
        bars[unsafe_offset=0].wait(0)
        bars[unsafe_offset=1].expect_bytes(16)
        clusterlaunchcontrol_try_cancel(then, bars.unsafe_offset(1))
        bars[unsafe_offset=1].wait(0)
"""


def test_nor_with_another_question():
    found = verdict(TWICE, arch="sm_100a")
    assert found.verdict == "not provable here"
    assert "after the answer that there is none" in found.diagnostics[0].message
    lines = TWICE.splitlines(keepends=True)
    assert verdict("".join(lines[:-3]), arch="sm_100a").verdict == "proved"
