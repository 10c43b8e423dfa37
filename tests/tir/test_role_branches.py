"""The vote before a role branch: only where every warp's threads agree whatever the block's shape is."""

from dataclasses import replace

import pytest
from build_tir import Builder
from kernels import ring_copy
from run_tir import barrier_order

from ptxdsl.options import Options
from ptxdsl.rings import unroll_rings
from ptxdsl.simplify import simplify
from ptxdsl.tir import I32, Kernel, walk
from ptxdsl.verify import verify

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


def roles(bound: int, commit: bool = False, wait: bool = True, outer: bool = False) -> Builder:
    b = Builder()
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


def test_an_election_over_the_warp_says_that_it_is_whole() -> None:
    assert votes(prepared(roles(32, commit=True))) == 1
    assert votes(prepared(roles(32))) == 0


def test_part_of_a_warp_does_not_vote() -> None:
    assert votes(prepared(roles(16, commit=True))) == 0


def test_a_branch_without_waits_does_not_vote() -> None:
    assert votes(prepared(roles(32, commit=True, wait=False))) == 0


def test_a_branch_that_part_of_a_warp_may_reach_does_not_vote() -> None:
    assert votes(prepared(roles(32, commit=True, outer=True))) == 0


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
    assert after == {role: order * 3 for role, order in barrier_order(b.module).items()}
