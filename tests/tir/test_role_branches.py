"""The vote before a role branch: only where the block's shape, which the kernel gives, says that warps agree."""

from dataclasses import replace

import pytest
from build_tir import Builder
from kernels import ring_copy
from run_tir import barrier_order

from ptxdsl.options import Options
from ptxdsl.rings.unroll import unroll_rings
from ptxdsl.tir import I32, Kernel, walk
from ptxdsl.tir.simplify import simplify
from ptxdsl.tir.verify import verify

OPTIONS = Options()


def prepared(b: Builder, options: Options = OPTIONS) -> Kernel:
    simplify(b.module)
    module = unroll_rings(b.module, options)
    verify(module)
    return module.kernels[0]


def votes(kernel: Kernel) -> int:
    return sum(op.name == "vote_any_sync" for op in walk(kernel.body))


def shaped(threads: tuple[int, int, int] | None) -> Builder:
    b = ring_copy()
    b.kernel.signature = replace(b.kernel.signature, threads=threads)
    return b


@pytest.mark.parametrize(
    ("threads", "want"),
    [((64, 1, 1), 1), ((48, 1, 1), 1), ((32, 2, 1), 1), ((16, 4, 1), 0), ((48, 1, 2), 0), (None, 0)],
)
def test_warps_must_lie_in_rows_of_the_block(threads: tuple[int, int, int] | None, want: int) -> None:
    assert votes(prepared(shaped(threads))) == want


def roles(bound: int, commit: bool = False, wait: bool = True, outer: bool = False, threads: bool = True) -> Builder:
    b = Builder()
    b.kernel.signature = replace(b.kernel.signature, threads=(64, 1, 1) if threads else None)
    bars, tid = b.shared("bars", 64), b.op("tid_x", ty=I32)
    above = b.if_(b.op("eq", b.op("tid_y", ty=I32), 0)) if outer else None
    if above:
        with b.region(above, 1):
            b.yield_()
        b.blocks.append(above.blocks[0])
    test = b.if_(b.op("lt.u", tid, bound))
    with b.region(test, 0):
        if wait:
            b.pipe("p", "wait", bars, 0, 1, stages=3)
        if commit:
            b.pipe("p", "commit_mma", bars, 0, stages=3, cta_group=1)
        b.yield_()
    with b.region(test, 1):
        b.yield_()
    if above:
        b.yield_()
        b.blocks.pop()
    b.ret()
    return b


def test_the_thread_count_is_what_tells_whole_warps() -> None:
    """Electing a lane of the full warp does not: in a block of 48 by 2 threads a warp may lie in two roles."""
    assert votes(prepared(roles(32))) == 1
    assert votes(prepared(roles(32, commit=True, threads=False))) == 0


def test_part_of_a_warp_does_not_vote() -> None:
    assert votes(prepared(roles(16))) == 0


def test_a_branch_without_waits_does_not_vote() -> None:
    assert votes(prepared(roles(32, commit=True, wait=False))) == 0


def test_a_branch_that_part_of_a_warp_may_reach_does_not_vote() -> None:
    assert votes(prepared(roles(32, outer=True))) == 0


@pytest.mark.parametrize(("first", "want"), [("wait", 0), ("arrive", 1)])
def test_where_part_of_a_warp_waits_on_its_own_the_warp_does_not_vote_after_it(first: str, want: int) -> None:
    """The part may wait for threads that only pass by: a vote would hold them."""
    b = Builder()
    b.kernel.signature = replace(b.kernel.signature, threads=(64, 1, 1))
    bars, tid = b.shared("bars", 64), b.op("tid_x", ty=I32)
    for comparison, bound, operation in (("eq", 5, first), ("lt.u", 32, "wait")):
        branch = b.if_(b.op(comparison, tid, bound))
        with b.region(branch, 0):
            b.pipe("p", operation, bars, *((0, 1) if operation == "wait" else (0,)), stages=3)
            b.yield_()
        with b.region(branch, 1):
            b.yield_()
    b.ret()
    assert votes(prepared(b)) == want


def test_without_the_ring_pass_there_is_no_vote() -> None:
    assert votes(prepared(shaped((64, 1, 1)), Options(ring_unroll=False))) == 0


def test_barrier_operations_keep_their_order_in_each_role() -> None:
    b = shaped((64, 1, 1))
    simplify(b.module)
    assert barrier_order(b.module) == {
        "copy [0, 32)": ["pipe.wait", "pipe.arrive"],
        "copy [32, 1024)": ["pipe.wait", "pipe.arrive"],
    }
    after = barrier_order(unroll_rings(b.module, Options()))
    assert after == {role: order * 5 for role, order in barrier_order(b.module).items()}
