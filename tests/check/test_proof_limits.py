"""What a proof must not overlook: each kernel is wrong, or out of reach, in a way that is easily taken for right."""

from __future__ import annotations

import pytest
from pipeline_kernels import GIVES, block, copies, kernel, ring
from proofs import lines, verdict

from ptxdsl import driver
from ptxdsl.check.proof import prove
from ptxdsl.options import Options
from ptxdsl.protocol.from_tir import kernel_model
from ptxdsl.source import Source

COPIES = "from async_copy import async_copy, async_copy_commit_group, async_copy_wait_group\n\n@kernel"
READING = (
    'res[unsafe_offset=t] = inlined_assembly["ld.shared.b32 $0, [$1];", Float32, constraints="=f,r", '
    "has_side_effect=False](at)"
)

# Faults behind which a careless proof would see none: kernel, class, a line that is shown.
FAULTS = {
    "lanes that take a variable from a branch": (
        kernel("""
            var often: Int32 = 1
            if lane == 0:
                often = 2
            if t < 32:
                for i in range(n):
                    if often == 1:
                        _ = bars[unsafe_offset=0].arrive()
                    bars[unsafe_offset=0].wait(UInt32(i % 2))
            """),
        "cyclic wait",
        18,
    ),
    "one role that makes up a phase for another": (
        kernel(
            """
            if t < 32:
                _ = bars[unsafe_offset=0].arrive()
                buf[unsafe_offset=lane] = 1
                _ = bars[unsafe_offset=0].arrive()
            elif t < 64:
                bars[unsafe_offset=0].wait(0)
                res[unsafe_offset=lane] = buf[unsafe_offset=lane]
            else:
                _ = bars[unsafe_offset=0].arrive()
            """,
            threads=96,
            count="64",
        ),
        "wrong parity",
        15,
    ),
    "a place counted from before the array": (
        kernel("""
            if t >= 32:
                buf[unsafe_offset=t - 32] = 1
            else:
                res[unsafe_offset=t] = buf[unsafe_offset=t]
            """),
        "data race",
        13,
    ),
    "data where barriers live": (
        kernel("""
            var words = bars.bitcast[Float32]()
            if t < 32:
                words[unsafe_offset=lane] = 1
            """),
        "re-init or inval while live",
        14,
    ),
    "a write that only a shuffle parts from the read": (
        block("buf[unsafe_offset=t] = 1", "_ = shuffle_idx(t, 0)", "res[unsafe_offset=t] = buf[unsafe_offset=t ^ 1]"),
        "data race",
        7,
    ),
    "accesses that data decides about": (
        block(
            "if res[unsafe_offset=t] > 0:",
            "    buf[unsafe_offset=t] = 1",
            "res[unsafe_offset=t] = buf[unsafe_offset=63 - t]",
        ),
        "data race",
        6,
    ),
    "lanes that get by a shuffle what another lane alone has": (
        block(
            "var m: Int32 = 0",
            "if t % 32 == 0:",
            "    m = n",
            "m = shuffle_idx(m, 0)",
            "buf[unsafe_offset=t] = 1",
            "if m > 0 and t % 32 > 0:",
            "    res[unsafe_offset=t] = buf[unsafe_offset=63 - t]",
        ),
        "data race",
        11,
    ),
    "a cp.async that nobody waits for before the read": (
        block(
            "async_copy[4](res.unsafe_offset(t), buf.unsafe_offset(t))",
            "async_copy_commit_group()",
            "res[unsafe_offset=t] = buf[unsafe_offset=t]",
            "async_copy_wait_group[0]()",
        ).replace("@kernel", COPIES),
        "undrained wgmma, bulk or cp.async read",
        9,
    ),
}


def test_each_thread_waits_for_its_own_copies() -> None:
    statements = (
        "async_copy[4](res.unsafe_offset(t), buf.unsafe_offset(t))",
        "async_copy_commit_group()",
        "async_copy_wait_group[0]()",
        "barrier()",
        "res[unsafe_offset=t] = buf[unsafe_offset=63 - t]",
    )
    assert verdict(block(*statements).replace("@kernel", COPIES)).verdict == "proved"
    found = verdict(block(*(s for s in statements if s != "barrier()")).replace("@kernel", COPIES))
    assert (found.verdict, found.kinds) == ("fault", ("data race",))


# What no proof is given for, and the reason.
OUT_OF_REACH = {
    "inline assembly": (
        block('inlined_assembly["bar.sync 0;", NoneType, constraints="", has_side_effect=True]()'),
        "what inline assembly does is not modelled",
    ),
    "inline assembly that reads, whatever it says": (
        block(
            "var at = UInt32(Int(buf.unsafe_offset(63 - t)))",
            "buf[unsafe_offset=t] = 1",
            READING,
        ),
        "what inline assembly does is not modelled",
    ),
    "a pointer to one memory or another": (
        block(
            "var p = res.unsafe_offset(64)",
            "if n > 3:",
            "    p = buf.address_space_cast[AddressSpace.GENERIC]()",
            "p[unsafe_offset=t] = 1",
            "res[unsafe_offset=t] = buf[unsafe_offset=63 - t]",
        ),
        "what memory this generic pointer points to is not seen",
    ),
    "a write before an array": (kernel("buf[unsafe_offset=t - 32] = 1"), "beyond the array"),
    "a barrier that data chooses": (
        kernel("""
            var which = Int32(src[unsafe_offset=0])
            bars[unsafe_offset=which].wait(0)
            """),
        "which barrier it is depends on data",
    ),
    "bytes that data says, announced": (
        kernel("if t == 0: bars[unsafe_offset=0].expect_bytes(Int32(src[unsafe_offset=0]))"),
        "the number of bytes depends on data",
    ),
    "bytes that data says, copied": (
        kernel("""
            if t == 0:
                var bytes = Int32(src[unsafe_offset=0])
                cp_async_bulk_shared_cta_global(buf, src.unsafe_origin_cast[MutAnyOrigin](), bytes, bars)
            """),
        "the number of bytes depends on data",
    ),
    "a barrier of the block that data decides about": (
        block("if res[unsafe_offset=0] > 0:", "    barrier()"),
        "a condition depends on data",
    ),
    "a barrier that another lane's value decides about": (
        block("var m: Int32 = 0", "if t % 32 == 0:", "    m = n", "if shuffle_idx(m, 0) != 5:", "    barrier()"),
        "a condition depends on data, or differs between threads",
    ),
    "arrivals that lower the count": (
        kernel("_ = bars[unsafe_offset=0].arrive_drop()"),
        "`arrive_drop` changes the count",
    ),
    "more ways than roles": (
        kernel("bars[unsafe_offset=t % 16].wait(UInt32(t // 16 % 4))", threads=512),
        "threads go more than 40 different ways",
    ),
    "a cluster of unknown size": (block("cluster_sync()"), "the size of the cluster is not known"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_that_are_easily_overlooked(name: str) -> None:
    text, kind, line = FAULTS[name]
    found = verdict(text)
    assert (found.verdict, found.kinds) == ("fault", (kind,))
    assert line in lines(found)


def test_inline_assembly_that_computes_is_no_protocol() -> None:
    computes = READING.replace("ld.shared.b32 $0, [$1];", "{ .reg .b32 q; add.u32 q, $1, 1; mov.b32 $0, q; }")
    assert verdict(block("var at = UInt32(t)", "buf[unsafe_offset=t] = 1", computes)).verdict == "proved"


@pytest.mark.parametrize("name", OUT_OF_REACH)
def test_what_is_not_modelled_is_not_proved(name: str) -> None:
    text, why = OUT_OF_REACH[name]
    found = verdict(text)
    assert (found.verdict, found.kinds) == ("not provable here", ())
    assert why in found.diagnostics[0].message and found.diagnostics[0].span is not None


def test_lanes_of_a_warp_meet_across_roles() -> None:
    """Thread 0 waits for itself alone and comes to ``syncwarp`` with the others later."""
    text = kernel(
        """
        if t == 0:
            _ = bars[unsafe_offset=0].arrive()
            bars[unsafe_offset=0].wait(0)
            buf[unsafe_offset=0] = 1
        if t < 32:
            syncwarp()
            res[unsafe_offset=lane] = buf[unsafe_offset=0]
        """,
        count="1",
    )
    assert verdict(text).verdict == "proved"
    found = verdict(text.replace("        syncwarp()\n", ""))
    assert (found.verdict, found.kinds) == ("fault", ("data race",))


def test_blocks_of_a_cluster_that_do_different_things_alone() -> None:
    wait = kernel("if block_rank_in_cluster() == 1:\n    bars[unsafe_offset=0].wait(0)")
    found = verdict(wait.replace("threads=64", "threads=64, cluster=2"))
    assert (found.verdict, found.kinds) == ("fault", ("missing arrive",))
    assert verdict(wait.replace("threads=64", "threads=64, cluster=2").replace("== 1", "== 2")).verdict == "proved"


def test_warps_of_a_role_that_do_different_things() -> None:
    both = ("c.wait()", "if t < 64:", "    c.release_no_step[0]()", "else:", "    c.release_no_step[1]()", "c.step()")
    text = ring(producer=("p.acquire[0]()", "p.acquire[1]()", "p.commit()"), consumer=both, threads=96)
    text = text.replace("RolePipeline[2, True]", "RolePipeline[2, True, 1, 2]")
    text = text.replace("RolePipeline[2, False]", "RolePipeline[2, False, 1, 2]")
    assert verdict(text).verdict == "proved"


def test_loops_that_end_early_or_start_late() -> None:
    for trips in ("n // 3, n", "n, n * 2"):
        assert verdict(ring(trips=trips, consumer_trips=trips)).verdict == "proved"
    found = verdict(ring(trips="n // 3, n", consumer_trips="n // 3, n + 1"))
    assert (found.verdict, found.kinds) == ("fault", ("missing arrive",))


def test_bytes_that_come_and_that_nobody_announced() -> None:
    copy = "cp_async_bulk_shared_cta_global(to.unsafe_offset({}), src, 128, full)"
    twice = ("var to = buf.unsafe_offset(Int32(p.state.index()) * 32)", copy.format(0), copy.format(2048))
    found = verdict(copies(copy=twice))
    assert (found.verdict, found.kinds) == ("fault", ("byte mismatch",))


# A pair of blocks: each gives its value to the other, which reads it after its barrier.
ARRIVAL, WAIT = "bars[].arrive_cluster(UInt32(1 - rank))", "    bars[].wait_cluster(0)\n"
PAIR = GIVES.format(count=2, to="1 - rank", tell="1 - rank")
UNREAD = PAIR[: PAIR.index("    store_cluster")] + f"    {ARRIVAL}\n"
READ_EARLY = "slot read before full"

PAIRS = {
    "right": (PAIR, None, 0),
    "no meeting before the first arrival": (
        PAIR.replace("cluster_sync()", "barrier()", 1),
        "use before init is visible",
        11,
    ),
    "a wait of the own block's scope": (PAIR.replace("wait_cluster", "wait"), READ_EARLY, 12),
    "an arrival that orders nothing": (PAIR.replace("arrive_cluster", "arrive_cluster_unordered"), READ_EARLY, 13),
    "an arrival at the own barrier": (PAIR.replace(ARRIVAL, "_ = bars[].arrive()"), READ_EARLY, 13),
    "nobody waits": (PAIR.replace(WAIT, ""), READ_EARLY, 12),
    "a peer that has gone": (UNREAD, "exit with work in flight", 10),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_blocks(name: str) -> None:
    text, kind, line = PAIRS[name]
    found = verdict(text)
    assert found.kinds == (() if kind is None else (kind,))
    assert found.verdict == ("proved" if kind is None else "fault")
    assert kind is None or line in lines(found)


# Tensor memory, taken and given back by warps, written by the tensor cores, read by all.
TENSOR = """\
from layout import SharedTile
from tcgen05 import TensorAccumulator, TensorMemory, mma_arrive, tcgen05_fence_after, tcgen05_fence_before
from tcgen05 import tcgen05_load_wait, tcgen05_mma


@kernel(threads=128)
def kernel(res: Pointer[Float32, MutAnyOrigin]):
    comptime Tile = SharedTile[DType.bfloat16, 128, 64]
    comptime Result = TensorAccumulator[DType.float32, 128, 128]
    var data = unsafe_stack_allocation[8192, BFloat16, address_space=.SHARED, alignment=1024]()
    data[unsafe_offset=thread_idx.x] = 0
    fence_proxy_async()
    var tile = Tile(data)
    var bar = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
    var slot = unsafe_stack_allocation[1, UInt32, address_space=.SHARED]()
    if thread_idx.x == 0:
        bar[].init(1)
        fence_mbarrier_init()
    if warp_id() == 0:
        TensorMemory[128].allocate(slot)
    barrier()
    var tensor = TensorMemory[128](slot)
    var result = Result(tensor.columns_from[0, 128]())
    if thread_idx.x == 0:
        tcgen05_mma(result, tile, tile, adds=False)
        mma_arrive(bar)
    bar[].wait(0)
    tcgen05_fence_after()
    var sums = tcgen05_load_wait(result.load[0, 8]())
    res[unsafe_offset=thread_idx.x] = sums[0][0]
    tcgen05_fence_before()
    barrier()
    if warp_id() == 0:
        tensor.free()
"""
FREE = "    if warp_id() == 0:\n        tensor.free()\n"

TENSORS = {
    "right": (FREE, FREE, None),
    "given back by another warp": (FREE, FREE.replace("0", "1"), None),
    "no fence behind the wait": ("    tcgen05_fence_after()\n    var", "    var", "missing proxy fence"),
    "no wait for the commit": ("    bar[].wait(0)\n", "", "slot read before full"),
    "never given back": (FREE, "", "exit with work in flight"),
    "no barrier before it is used": ("    barrier()\n    var tensor", "    var tensor", "use before init is visible"),
    "a part of it given back": ("tensor.free()", "TensorMemory[64](slot).free()", "exit with work in flight"),
    "given back by two warps": (
        "== 0:\n        tensor.free",
        "< 2:\n        tensor.free",
        "slot overwritten before release",
    ),
    "allocated by three warps": (
        "== 0:\n        TensorMemory[128].allocate",
        "> 0:\n        TensorMemory[128].allocate",
        "re-init or inval while live",
    ),
    "more columns than allocated": ("[128].allocate(slot)", "[64].allocate(slot)", "stale stage index"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensor_memory(name: str) -> None:
    old, new, kind = TENSORS[name]
    assert TENSOR.count(old) == 1
    found = verdict(TENSOR.replace(old, new), arch="sm_100a")
    assert found.kinds == (() if kind is None else (kind,))
    assert found.verdict == ("proved" if kind is None else "fault")


def test_loops_of_constant_length_are_followed_no_longer_than_others() -> None:
    body = """
        if t < 32:
            var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))
            for i in range(40):
                for j in range(40):
                    p.acquire()
                    buf[unsafe_offset=Int32(p.state.index()) * 32 + lane] = 1
                    p.commit()
        else:
            var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))
            for i in range(40):
                for j in range(40):
                    c.wait()
                    res[unsafe_offset=lane] = buf[unsafe_offset=Int32(c.state.index()) * 32 + lane]
                    c.release()
    """
    job = driver.Job(Source("kernel.pdsl", kernel(body)), None, options=Options("sm_90a", check="off"))
    model = kernel_model(driver.run(job, "tir").kernels[0])
    found = prove(model, (64, 1, 1), max_steps=800)
    assert (found.verdict, found.steps <= 801) == ("not provable here", True)
    assert found.reasons[0].why == "following its roles takes more than 800 steps"
    assert prove(model, (64, 1, 1)).verdict == "proved"
