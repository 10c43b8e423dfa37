"""Kernels for tests of the proof: two roles around a ring, right and with one mistake each."""

from __future__ import annotations

from textwrap import dedent, indent

_HEAD = """\
@kernel(threads={threads})
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var bars = unsafe_stack_allocation[16, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    var buf = unsafe_stack_allocation[4096, Float32, address_space=.SHARED, alignment=128]()
    if thread_idx.x == 0:
        comptime for i in range(16):
            bars[unsafe_offset=i].init(Int32({count}))
{fence}
    barrier()
    var t = Int32(thread_idx.x)
    var lane = t % 32
"""


def kernel(body: str, threads: int = 64, count: str = "32", init_fence: bool = False) -> str:
    """A kernel of this body, where ``t`` is the thread, ``lane`` its lane. count: of barrier i, an expression of i."""
    fence = "        fence_mbarrier_init()" if init_fence else ""
    return _HEAD.format(threads=threads, count=count, fence=fence) + indent(dedent(body).strip("\n"), "    ") + "\n"


ACQUIRE, WRITE, COMMIT = (
    "p.acquire()",
    "buf[unsafe_offset=Int32(p.state.index()) * 32 + lane] = src[unsafe_offset=i * 32 + lane]",
    "p.commit()",
)
WAIT, READ, RELEASE = (
    "c.wait()",
    "res[unsafe_offset=i * 32 + lane] = buf[unsafe_offset=Int32(c.state.index()) * 32 + lane]",
    "c.release()",
)

# Each block gives values to another one, which reads them after its barrier.
GIVES = """\
@kernel(threads=32, cluster={count})
def kernel(res: Pointer[Float32, MutAnyOrigin]):
    var bars = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
    var got = unsafe_stack_allocation[32, Float32, address_space=.SHARED, alignment=128]()
    if thread_idx.x == 0:
        bars[].init(32)
        fence_mbarrier_init()
    cluster_sync()
    var rank = Int32(block_rank_in_cluster())
    store_cluster(got.unsafe_offset(thread_idx.x), UInt32({to}), Float32(1))
    bars[].arrive_cluster(UInt32({tell}))
    bars[].wait_cluster(0)
    res[unsafe_offset=thread_idx.x] = got[unsafe_offset=thread_idx.x]
    cluster_sync()
"""

COPY = "cp_async_bulk_shared_cta_global(to, src.unsafe_offset(i * 32), 128, full)"


def ring(
    producer: tuple[str, ...] = (ACQUIRE, WRITE, COMMIT),
    consumer: tuple[str, ...] = (WAIT, READ, RELEASE),
    *,
    trips: str = "n",
    consumer_trips: str = "n",
    before: tuple[str, ...] = (),
    consumer_before: tuple[str, ...] = (),
    threads: int = 64,
    count: str = "32",
) -> str:
    """A ring of two stages. producer, consumer: statements of their loops' bodies; before: those before the loops."""
    lines = ["if t < 32:", "    var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))"]
    lines += [f"    {line}" for line in before]
    lines += [f"    for i in range({trips}):", *(f"        {line}" for line in producer)]
    lines += ["else:", "    var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))"]
    lines += [f"    {line}" for line in consumer_before]
    lines += [f"    for i in range({consumer_trips}):", *(f"        {line}" for line in consumer)]
    return kernel("\n".join(lines), threads, count)


def copies(
    announced: int = 128,
    copy: tuple[str, ...] = ("var to = buf.unsafe_offset(Int32(p.state.index()) * 32)", COPY),
    consumer: tuple[str, ...] = (WAIT, READ, "fence_proxy_async()", RELEASE),
    *,
    init_fence: bool = True,
) -> str:
    """A ring of four stages that bulk copies fill."""
    lines = ["if t == 0:", "    var p = RolePipeline[4, True](bars, bars.unsafe_offset(4))", "    for i in range(n):"]
    lines += [
        "        p.acquire()",
        "        var full = p.producer_mbar()",
        f"        full[].expect_bytes({announced})",
    ]
    lines += [f"        {line}" for line in copy] + ["        p.step()"]
    lines += ["elif t >= 32:", "    var c = RolePipeline[4, False](bars, bars.unsafe_offset(4))"]
    lines += ["    for i in range(n):", *(f"        {line}" for line in consumer)]
    return kernel("\n".join(lines), count="1 if i < 4 else 32", init_fence=init_fence)


def by_hand(index: str, producer_parity: str, consumer_parity: str) -> str:
    """A ring of three stages without RolePipeline: the stage and the parities as expressions of i and s."""
    return kernel(
        f"""
        if t < 32:
            for i in range(n):
                var s = {index}
                bars[unsafe_offset=3 + s].wait(UInt32({producer_parity}))
                buf[unsafe_offset=s * 32 + lane] = src[unsafe_offset=i * 32 + lane]
                _ = bars[unsafe_offset=s].arrive()
        else:
            for i in range(n):
                var s = {index}
                bars[unsafe_offset=s].wait(UInt32({consumer_parity}))
                res[unsafe_offset=i * 32 + lane] = buf[unsafe_offset=s * 32 + lane]
                _ = bars[unsafe_offset=3 + s].arrive()
        """
    )


STATE = kernel(
    """
    if t < 32:
        var state = PipelineState[3](0, 1, 0)
        for i in range(n):
            bars[unsafe_offset=3 + Int32(state.index())].wait(state.phase())
            buf[unsafe_offset=Int32(state.index()) * 32 + lane] = src[unsafe_offset=i * 32 + lane]
            _ = bars[unsafe_offset=Int32(state.index())].arrive()
            state.step()
    else:
        var state = PipelineState[3]()
        for i in range(n):
            bars[unsafe_offset=Int32(state.index())].wait(state.phase())
            res[unsafe_offset=i * 32 + lane] = buf[unsafe_offset=Int32(state.index()) * 32 + lane]
            _ = bars[unsafe_offset=3 + Int32(state.index())].arrive()
            state.step()
    """
)


def block(*statements: str, threads: int = 64) -> str:
    """A block without pipelines; ``t`` is the thread."""
    head = f"""\
@kernel(threads={threads})
def kernel(res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var buf = unsafe_stack_allocation[{threads}, Float32, address_space=.SHARED]()
    var t = Int32(thread_idx.x)
"""
    return head + "".join(f"    {line}\n" for line in statements)
