"""Races that depend on what is in memory: no proof can exclude them, the trace check sees those of the run.

Each kernel is right for the first table and wrong for the second one.
"""

import numpy as np
import pytest

import ptxdsl
from ptxdsl.races.trace import check_trace

HEAD = """\
@kernel(threads={threads}{cluster})
def kernel(
    table: Pointer[Int32, MutAnyOrigin], src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin]
):
    var bars = unsafe_stack_allocation[4, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    var buf = unsafe_stack_allocation[256, Float32, address_space=.SHARED, alignment=128]()
    var t = Int32(thread_idx.x)
    var lane = t % 32
    var first = table[unsafe_offset=0]
    var second = table[unsafe_offset=1]
"""
INIT = """\
    if t == 0:
        comptime for i in range(4):
            bars[unsafe_offset=i].init({count})
        fence_mbarrier_init()
    barrier()
"""
ORDER = np.arange(64)

READ, OVER, RACE = "slot read before full", "slot overwritten before release", "data race"
FENCE, DRAIN, EARLY = "missing proxy fence", "undrained wgmma, bulk or cp.async read", "use before init is visible"
LIVE, EXIT, PARITY, STALE = (
    "re-init or inval while live",
    "exit with work in flight",
    "wrong parity",
    "stale stage index",
)

# By what it is: body, table that is right, table that is wrong, classes that are found then.
KERNELS = {
    "a scatter to shared memory": (
        """\
    buf[unsafe_offset=table[unsafe_offset=t]] = src[unsafe_offset=t]
    barrier()
    res[unsafe_offset=t] = buf[unsafe_offset=t]
""",
        ORDER[::-1],
        np.r_[ORDER[:63], 3],
        {RACE},
    ),
    "a scatter to global memory": (
        "    res[unsafe_offset=table[unsafe_offset=t]] = src[unsafe_offset=t]\n",
        np.roll(ORDER, 5),
        np.r_[ORDER[:40], 0, ORDER[41:]],
        {RACE},
    ),
    "a gather of what another warp writes": (
        """\
    buf[unsafe_offset=t] = src[unsafe_offset=t]
    syncwarp()
    res[unsafe_offset=t] = buf[unsafe_offset=table[unsafe_offset=t]]
""",
        ORDER ^ 7,
        ORDER ^ 32,
        {RACE},
    ),
    "a barrier that is left out": (
        """\
    buf[unsafe_offset=t] = src[unsafe_offset=t]
    if first > 0:
        barrier()
    res[unsafe_offset=t] = buf[unsafe_offset=t ^ 32]
""",
        [1, 0],
        [0, 0],
        {RACE},
    ),
    "a slot that is not the barrier's": (
        INIT.format(count=32)
        + """\
    if t < 32:
        var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))
        for i in range(Int32(4)):
            p.acquire()
            buf[unsafe_offset=table[unsafe_offset=i] * 32 + lane] = src[unsafe_offset=lane]
            p.commit()
    else:
        var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))
        for i in range(Int32(4)):
            c.wait()
            res[unsafe_offset=i * 32 + lane] = buf[unsafe_offset=Int32(c.state.index()) * 32 + lane]
            c.release()
""",
        [0, 1, 0, 1],
        [0, 1, 1, 0],
        {STALE},
    ),
    "an arrival before the write": (
        INIT.format(count=32)
        + """\
    if t < 32:
        if first > 0:
            _ = bars[].arrive()
        buf[unsafe_offset=lane] = src[unsafe_offset=lane]
        if first == 0:
            _ = bars[].arrive()
    else:
        bars[].wait(0)
        res[unsafe_offset=lane] = buf[unsafe_offset=lane]
""",
        [0, 0],
        [1, 0],
        {READ},
    ),
    "a parity": (
        INIT.format(count=32)
        + """\
    if t < 32:
        buf[unsafe_offset=lane] = src[unsafe_offset=lane]
        _ = bars[].arrive()
    else:
        bars[].wait(UInt32(first))
        res[unsafe_offset=lane] = buf[unsafe_offset=lane]
""",
        [0, 0],
        [1, 0],
        {READ, PARITY},
    ),
    "a fence on one path": (
        """\
    buf[unsafe_offset=t] = src[unsafe_offset=t]
    if first > 0:
        fence_proxy_async[AddressSpace.SHARED]()
    barrier()
    if t == 0:
        cp_async_bulk_global_shared_cta(res, buf, 256)
        cp_async_bulk_commit_group()
        cp_async_bulk_wait_group[0, read=False]()
""",
        [1, 0],
        [0, 0],
        {FENCE},
    ),
    "the bytes of a bulk store": (
        """\
    buf[unsafe_offset=t] = src[unsafe_offset=t]
    fence_proxy_async[AddressSpace.SHARED]()
    barrier()
    if t == 0:
        cp_async_bulk_global_shared_cta(res, buf, first)
        cp_async_bulk_commit_group()
        cp_async_bulk_wait_group[0, read=False]()
    elif t >= 32:
        buf[unsafe_offset=t] = 1.0
""",
        [128, 0],
        [144, 0],
        {OVER},
    ),
    "a slot that is given back before it was read": (
        """\
    buf[unsafe_offset=t] = src[unsafe_offset=t]
    fence_proxy_async[AddressSpace.SHARED]()
    barrier()
    if t == 0:
        cp_async_bulk_global_shared_cta(res, buf, 256)
        cp_async_bulk_commit_group()
        if first > 0:
            cp_async_bulk_wait_group[0]()
    barrier()
    buf[unsafe_offset=t] = 1.0
    if t == 0:
        cp_async_bulk_wait_group[0, read=False]()
""",
        [1, 0],
        [0, 0],
        {DRAIN},
    ),
    "a store that is not waited for": (
        """\
    buf[unsafe_offset=t] = src[unsafe_offset=t]
    fence_proxy_async[AddressSpace.SHARED]()
    barrier()
    if t == 0:
        cp_async_bulk_global_shared_cta(res, buf, 256)
        cp_async_bulk_commit_group()
        if first > 0:
            cp_async_bulk_wait_group[0, read=False]()
""",
        [1, 0],
        [0, 0],
        {EXIT},
    ),
    "a copy into the memory that is read": (
        INIT.format(count=1)
        + """\
    if t == 0:
        bars[].expect_bytes(128)
        cp_async_bulk_shared_cta_global(buf.unsafe_offset(first * 32), src, 128, bars)
    if t < 32:
        res[unsafe_offset=lane] = buf[unsafe_offset=lane]
    bars[].wait(0)
""",
        [1, 0],
        [0, 0],
        {READ},
    ),
    "bytes that come too early": (
        INIT.format(count=1)
        + """\
    if t == 0:
        bars[].expect_bytes(Int32(128) + second)
        cp_async_bulk_shared_cta_global(buf, src, 128, bars)
        if first > 0:
            cp_async_bulk_shared_cta_global(buf.unsafe_offset(64), src, 128, bars)
    bars[].wait(0)
    if t < 32:
        res[unsafe_offset=lane] = buf[unsafe_offset=lane]
    else:
        res[unsafe_offset=t] = buf[unsafe_offset=32 + t]
""",
        [1, 128],
        [1, 0],
        {OVER, EXIT},
    ),
    "an end of a barrier's life": (
        INIT.format(count=64)
        + """\
    _ = bars[].arrive()
    bars[].wait(0)
    if first > 0:
        barrier()
    if t == 0:
        bars[].inval()
""",
        [1, 0],
        [0, 0],
        {LIVE},
    ),
    "data where a barrier lies": (
        INIT.format(count=64)
        + """\
    _ = bars[].arrive()
    bars[].wait(0)
    barrier()
    if t == 0:
        var words = bars.bitcast[Int32]()
        if first > 0:
            bars[].inval()
        words[] = second
""",
        [1, 0],
        [0, 0],
        {LIVE},
    ),
    "who initialises": (
        """\
    if t == first:
        bars[].init(64)
    if t < 32:
        syncwarp()
        if t == 0 and second > 0:
            fence_mbarrier_init()
    if second > 0:
        barrier()
    _ = bars[].arrive()
    bars[].wait(0)
""",
        [0, 1],
        [0, 0],
        {EARLY},
    ),
    "a flag": (
        """\
    if t == 0:
        res[unsafe_offset=64] = 5.0
        if first > 0:
            threadfence()
        store_relaxed(table.unsafe_offset(2), 7)
    elif t == 32:
        while load_acquire(table.unsafe_offset(2)) != 7:
            pass
        res[unsafe_offset=65] = res[unsafe_offset=64]
""",
        [1, 0, 0],
        [0, 0, 0],
        {RACE},
    ),
}  # fmt: skip

CLUSTER = {
    "the memory of a neighbour": (
        """\
    var rank = Int32(block_rank_in_cluster())
    buf[unsafe_offset=t] = src[unsafe_offset=t]
    if first > 0:
        cluster_sync()
    res[unsafe_offset=rank * 64 + t] = load_cluster(buf.unsafe_offset(t), UInt32(rank ^ 1))
    cluster_sync()
""",
        [1, 0],
        [0, 0],
        {RACE},
    ),
    "an exit before a neighbour has read": (
        """\
    var rank = Int32(block_rank_in_cluster())
    buf[unsafe_offset=t] = src[unsafe_offset=t]
    cluster_sync()
    if rank == 1:
        res[unsafe_offset=t] = load_cluster(buf.unsafe_offset(t), 0)
    else:  # stays long enough here
        for i in range(Int32(8)):
            barrier()
    if first > 0:
        cluster_sync()
""",
        [1, 0],
        [0, 0],
        {EXIT},
    ),
    "the block that is written to": (
        """\
    var rank = Int32(block_rank_in_cluster())
    store_cluster(buf.unsafe_offset(t), UInt32(table[unsafe_offset=rank]), src[unsafe_offset=t])
    cluster_sync()
    res[unsafe_offset=rank * 64 + t] = buf[unsafe_offset=t]
""",
        [1, 0],
        [1, 1],
        {RACE},
    ),
}  # fmt: skip


def found(body, table, cluster):
    head = HEAD.format(threads=64, cluster=", cluster=(2, 1, 1)" if cluster else "")
    kernel = ptxdsl.loads(head + body, name="kernel.pdsl").kernel
    numbers = np.zeros(64, np.int32)
    numbers[: len(table)] = table
    arguments = [numbers, np.arange(64, dtype=np.float32), np.zeros(128, np.float32)]
    races, report = check_trace(kernel, arguments, grid=2 if cluster else 1)
    assert report.finished, report.render()
    return races


@pytest.mark.parametrize("name", [*KERNELS, *CLUSTER])
def test_what_a_table_decides(name):
    body, right, wrong, kinds = (KERNELS | CLUSTER)[name]
    good = found(body, right, name in CLUSTER)
    assert not good.races and not good.incomplete, [d.render() for d in good.diagnostics]
    bad = found(body, wrong, name in CLUSTER)
    assert {race.kind for race in bad.races} == kinds, [d.render() for d in bad.diagnostics]
