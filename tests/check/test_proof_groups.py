"""Copies of which each thread waits for its own: who may write again after whose wait."""

from __future__ import annotations

import pytest
from pipeline_kernels import kernel
from proofs import verdict

from ptxdsl import driver
from ptxdsl.check.agents import Shape, agents
from ptxdsl.check.threads import block_of
from ptxdsl.options import Options
from ptxdsl.protocol.from_tir import kernel_model
from ptxdsl.source import Source

STORE = """
for i in range(n):
    buf[unsafe_offset=t] = src[unsafe_offset=i * 64 + t]
    fence_proxy_async[AddressSpace.SHARED]()
    syncwarp()
    if lane == 0:
        cp_async_bulk_global_shared_cta(res.unsafe_offset(i * 64 + t), buf.unsafe_offset(t), 128)
        cp_async_bulk_commit_group()
    {wait}
    {meet}
cp_async_bulk_wait_group[0, read=False]()
"""
WAIT, MEET = "cp_async_bulk_wait_group[0]()", "syncwarp()"
STARTER, ANOTHER = f"if lane == 0: {WAIT}", f"if lane == 1: {WAIT}"


def stores(wait: str, meet: str) -> str:
    """Each warp fills its part of a buffer, and its first lane stores it."""
    return kernel(STORE.format(wait=wait, meet=meet))


@pytest.mark.parametrize(
    ("wait", "meet", "kinds"),
    [
        (WAIT, MEET, ()),
        (STARTER, MEET, ()),
        # lanes that have started nothing are not held up
        (WAIT, "pass", ("slot overwritten before release",)),
        (STARTER, "pass", ("slot overwritten before release",)),
        (ANOTHER, MEET, ("undrained wgmma, bulk or cp.async read",)),
    ],
)
def test_a_buffer_is_filled_again_when_its_warp_knows_that_it_is_stored(
    wait: str, meet: str, kinds: tuple[str, ...]
) -> None:
    assert verdict(stores(wait, meet)).kinds == kinds


@pytest.mark.parametrize(("wait", "count"), [(STARTER, 1), (WAIT, 1), (ANOTHER, 6)])
def test_who_waits_for_its_own_copies_goes_with_the_rest_of_the_block(wait: str, count: int) -> None:
    """Another lane's wait has nothing to wait for: in each of the two warps starter, waiter and the rest are apart."""
    job = driver.Job(Source("kernel.pdsl", stores(wait, MEET)), None, options=Options("sm_90a", check="off"))
    model = kernel_model(driver.run(job, "tir").kernels[0])
    assert len(agents(Shape(model, block_of((64, 1, 1))))) == count


GROUPS = {
    "bulk": (
        """
        buf[unsafe_offset=t] = 1
        fence_proxy_async()
        barrier()
        if t == 0:
            cp_async_bulk_global_shared_cta(res, buf, 128)
            {commit}
            {wait}
        """,
        "cp_async_bulk_commit_group()",
        "cp_async_bulk_wait_group[0]()",
    ),
    "cp.async": (
        """
        async_copy[4](src.unsafe_offset(t), buf.unsafe_offset(t))
        {commit}
        {wait}
        res[unsafe_offset=t] = buf[unsafe_offset=t]
        """,
        "async_copy_commit_group()",
        "async_copy_wait_group[0]()",
    ),
}


@pytest.mark.parametrize("family", GROUPS)
def test_what_is_missing_for_work_that_is_under_way(family: str) -> None:
    """A group that is never closed, or never waited for, is told of by the names of its own family."""
    body, commit, wait = GROUPS[family]
    assert verdict(kernel(body.format(commit=commit, wait=wait))).verdict == "proved"
    unclosed, undone = (verdict(kernel(body.format(**lacks))) for lacks in (
        {"commit": "pass", "wait": wait}, {"commit": commit, "wait": "pass"}
    ))  # fmt: skip
    assert f"`{commit}` has to stand between it and its wait" in (unclosed.diagnostics[0].help or "")
    assert commit[: commit.index("_commit")] in (undone.diagnostics[0].help or "")
    assert "_wait_" in (undone.diagnostics[0].help or "")
