"""Instructions that all warps of a warpgroup, or all lanes of a warp, execute together: who has to come to them."""

from __future__ import annotations

import pytest
from proofs import verdict

from ptxdsl.check.report import ptx_verdicts
from ptxdsl.ptx.reader import read

DIVERGENT = ("divergent collective",)
ALONE = "takes whole warpgroups, but {} to it alone"

PRODUCT = """\
from layout import SharedTile
from pending import Pending
from wgmma import WGMMAAccumulator, wgmma_async, wgmma_commit_group_sync, wgmma_fence_aligned, wgmma_wait_group_sync
comptime T = SharedTile[DType.float16, 64, 64]

@kernel(threads={threads})
def kernel(res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var t = T(stack_allocation[T.bytes, UInt8, address_space=.SHARED, alignment=1024]())
    t.store(Int32(warp_id()), Int32(lane_id()), Float16(1))
    fence_proxy_async()
    barrier()
    {before}
    {role}:
        {setting}
        {fence}
        var acc = wgmma_async(t, t, Pending(WGMMAAccumulator[DType.float32, 64, 64]()))
        {commit}
        res[thread_idx.x] = wgmma_wait_group_sync[0](acc)[0]
"""


def product(
    threads: int,
    role: str,
    *,
    before: str = "pass",
    setting: str = "pass",
    fence: str = "wgmma_fence_aligned()",
    commit: str = "wgmma_commit_group_sync()",
) -> str:
    return PRODUCT.format(threads=threads, role=role, before=before, setting=setting, fence=fence, commit=commit)


HALF_WAITS = "if warp_id() < 2: named_barrier[64](1)"  # which makes two roles of the warps


@pytest.mark.parametrize(
    "text",
    [
        product(128, "if True"),
        product(256, "if warp_id() >= 4"),
        product(160, "if warp_id() < 4"),
        product(256, "if True", setting="warpgroup_reg_dealloc[40]()"),
        product(128, "if True", before=HALF_WAITS, setting="warpgroup_reg_dealloc[40]()"),
        product(128, "for _ in range(n)", before=HALF_WAITS),
        product(128, "if Int32(block_idx.x) < n"),
    ],
    ids=["a block", "a group of two", "beside a warp", "two groups", "two roles", "two roles in a loop", "of a block"],
)
def test_whole_warpgroups_come(text: str) -> None:
    assert verdict(text).verdict == "proved"


@pytest.mark.parametrize(
    ("text", "who"),
    [
        (product(64, "if True"), "warps 0 to 1 come"),
        (product(160, "if warp_id() > 0"), "warps 1 to 4 come"),
        (product(256, "if warp_id() >= 4 and warp_id() < 6"), "warps 4 to 5 come"),
        (product(128, "if True", before="if warp_id() < 3: return"), "warp 3 comes"),
        (product(128, "if lane_id() > 2"), "lanes 3 to 31 of warps 0 to 3 come"),
        (product(128, "for _ in range(warp_id() // 2, 2)"), "warps 0 to 1 come"),
        (product(128, "if True", setting="if warp_id() < 2: warpgroup_reg_dealloc[40]()"), "warps 0 to 1 come"),
        (product(128, "if True", fence="if warp_id() > 0: wgmma_fence_aligned()"), "warps 1 to 3 come"),
        (product(128, "if True", commit="if warp_id() == 2: wgmma_commit_group_sync()"), "warp 2 comes"),
    ],
    ids=[
        "half a block", "of two groups", "two warps", "others have left", "lanes", "another number of turns",
        "registers", "fence", "commit",
    ],
)  # fmt: skip
def test_a_part_of_a_warpgroup_is_told_of(text: str, who: str) -> None:
    found = verdict(text)
    assert found.kinds == DIVERGENT
    assert ALONE.format(who) in found.diagnostics[0].message


def test_the_warps_are_named_that_have_to_come() -> None:
    found = verdict(product(160, "if warp_id() > 0"))
    assert (found.diagnostics[0].help or "").startswith(
        "a warpgroup is four warps, the first of them of a number that 4 divides: "
        "let all of warps 4 to 7 come here together, in blocks of at least 256 threads"
    )


def test_parts_in_different_branches_do_not_come_together() -> None:
    """The same instruction twice is not one."""
    both = product(128, "if warp_id() < 2")
    body = both[both.index("    if warp_id() < 2:") :]
    assert verdict(both + body.replace("if warp_id() < 2", "if warp_id() >= 2")).kinds == DIVERGENT


def test_the_ptx_of_a_part_of_a_warpgroup() -> None:
    head = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry kernel()\n.reqntid {}, 1, 1\n{{\n"
    text = head + "wgmma.fence.sync.aligned;\nwgmma.commit_group.sync.aligned;\nret;\n}}\n"
    whole, part = (ptx_verdicts(read(text.format(threads), "kernel.ptx")) for threads in (128, 96))
    assert whole[0].verdict == "proved"
    assert part[0].kinds == DIVERGENT


ROWS = """\
from matrix_memory import ld_matrix

@kernel(threads=64)
def kernel(res: Pointer[Float16, MutAnyOrigin]):
    var s = stack_allocation[512, Float16, address_space=.SHARED, alignment=128]()
    s[thread_idx.x * 8] = 1
    barrier()
    if {who}:
        var f = ld_matrix[1](s + lane_id() * 8)
        res[thread_idx.x] = f[0]
"""


@pytest.mark.parametrize(("who", "kinds"), [("warp_id() == 1", ()), ("lane_id() < 16", DIVERGENT)])
def test_matrices_are_loaded_by_whole_warps(who: str, kinds: tuple[str, ...]) -> None:
    assert verdict(ROWS.format(who=who)).kinds == kinds
