"""Barriers of threads are executed by whole warps; lives of an mbarrier follow one another.

PTX ISA, ``barrier``: of an aligned one all threads of a warp execute the same instruction, and it counts whole warps.
"""

from __future__ import annotations

import pytest
from pipeline_kernels import kernel
from proofs import verdict

ACROSS = "res[t] = buf[63 - t]"
DIVERGENT = {
    "one instruction for all": (f"buf[t] = 1\nbarrier()\n{ACROSS}", ()),
    "two instructions": (
        f"buf[t] = 1\nif lane < 16:\n    barrier()\nelse:\n    barrier()\n{ACROSS}",
        ("divergent collective",),
    ),
    "two of a number": (
        f"buf[t] = 1\nif lane < 16:\n    named_barrier[64](1)\n    {ACROSS}\nelse:\n    named_barrier[64](1)",
        ("divergent collective",),
    ),
    "a lane waits where the others arrive": (
        f"buf[t] = 1\nif lane == 0:\n    named_barrier[64](1)\n    {ACROSS}\nelse:\n    named_barrier_arrive[64](1)",
        ("divergent collective",),
    ),
    "halves of two warps for one": (
        f"buf[t] = 1\nif lane < 16:\n    named_barrier[32](1)\n    {ACROSS}",
        ("divergent collective",),
    ),
    "halves of two warps for one, when the others have ended": (
        f"buf[t] = 1\nif lane >= 16:\n    return\nnamed_barrier[32](1)\n{ACROSS}",
        ("divergent collective",),
    ),
    "the rest of two warps, when the others have ended": (
        f"buf[t] = 1\nif lane >= 16:\n    return\nbarrier()\n{ACROSS.replace('63 - t', 't ^ 32')}",
        (),
    ),
    "lanes that come later to the same": (
        f"buf[t] = 1\nif lane == 0:\n    bars[t // 32].wait(1)\nbarrier()\n{ACROSS}",
        (),
    ),
}


@pytest.mark.parametrize("name", DIVERGENT)
def test_lanes_of_a_warp_come_to_one_barrier(name: str) -> None:
    body, kinds = DIVERGENT[name]
    assert verdict(kernel(body)).kinds == kinds


def test_lanes_of_a_warp_come_to_one_barrier_of_the_cluster() -> None:
    head, sync = "@kernel(threads=32, cluster=2)\ndef kernel(n: Int32):\n", "cluster_sync()"
    apart = f"    if lane_id() < 16:\n        {sync}\n    else:\n        {sync}\n"
    assert verdict(head + apart).kinds == ("divergent collective",)
    ended = f"    if lane_id() < 16:\n        return\n    {sync}\n"
    assert verdict(head + ended).verdict == "proved"


LIVES = """
if t == 0:
    bars[].init(64)
barrier()
_ = bars[].arrive()
bars[].wait(0)
barrier()
if {ends}:
    bars[].inval()
{between}
if t == 0:
    bars[].init(64)
barrier()
_ = bars[].arrive()
bars[].wait(0)
"""
HEAD = """\
@kernel(threads=64)
def kernel(n: Int32):
    var bars = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
    var t = Int32(thread_idx.x)
"""


@pytest.mark.parametrize(
    ("ends", "between", "kinds"),
    [
        ("t == 0", "pass", ()),
        ("t == 1", "syncwarp()", ()),
        ("t == 32", "barrier()", ()),
        ("t == 1", "pass", ("re-init or inval while live",)),
        ("t == 32", "syncwarp()", ("re-init or inval while live",)),
        ("t < 2", "barrier()", ("re-init or inval while live",)),
    ],
)
def test_a_barrier_is_initialised_after_its_last_life(ends: str, between: str, kinds: tuple[str, ...]) -> None:
    body = LIVES.format(ends=ends, between=between)
    assert verdict(HEAD + "".join(f"    {line}\n" for line in body.splitlines() if line)).kinds == kinds
