"""Prepared launches, clusters, cooperative and dependent launches, occupancy, the edges of shared memory and blocks."""

import numpy as np
import pytest

import ptxdsl

SCALE = """
@kernel
def scale(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32, factor: Float32):
    var i = Int32(block_idx.x) * Int32(block_dim.x) + Int32(thread_idx.x)
    if i < n:
        res[unsafe_offset=i] = src[unsafe_offset=i] * factor
"""


@pytest.mark.device
def test_a_prepared_launch_is_made_again_and_again(gpu, rng):
    kernel = ptxdsl.loads(SCALE)["scale"]
    values = rng.random(1000, np.float32)
    src, res = gpu.from_numpy(values).cuda(), gpu.zeros(1000, device="cuda")
    go = kernel.prepare(8, 128, src, res, 1000, 2.0)
    go()
    assert np.array_equal(res.cpu().numpy(), values * 2)
    src.mul_(3)
    go()
    assert np.array_equal(res.cpu().numpy(), values * 3 * 2)
    other = gpu.zeros(1000, device="cuda")
    go.bind(src, other, 500, 1.0)()
    assert np.array_equal(other.cpu().numpy()[:500], values[:500] * 3)
    assert not other[500:].any()


@pytest.mark.device
def test_quick_launches_give_what_the_first_one_gives(gpu, rng):
    """The first launch goes the general way, the later ones through generated code."""
    kernel = ptxdsl.loads(SCALE)["scale"]
    values = rng.random(1000, np.float32)
    src = gpu.from_numpy(values).cuda()
    for factor in (0.5, 2, 1e-3, 7.25):
        res = gpu.zeros(1000, device="cuda")
        kernel[8, 128](src, res, 1000, factor)
        assert np.array_equal(res.cpu().numpy(), values * np.float32(factor))
    with pytest.raises(ptxdsl.LaunchError, match="E0904"):
        kernel[8, 128](src, res.int(), 1000, 1.0)


@pytest.mark.device
@pytest.mark.parametrize("how", ["checked", "prepared"])
def test_launches_are_captured_into_a_graph(gpu, how):
    """Even the first one, which compiles and loads."""
    kernel = ptxdsl.loads(SCALE, f"{how}.pdsl")["scale"]
    src, res = gpu.ones(256, device="cuda"), gpu.zeros(256, device="cuda")
    go = kernel.prepare(2, 128, src, res, 256, 3.0) if how == "prepared" else None
    graph = gpu.cuda.CUDAGraph()
    with gpu.cuda.graph(graph):
        if go is None:
            kernel[2, 128](src, res, 256, 3.0)
        else:
            go()
    gpu.cuda.synchronize()
    assert not res.any()  # captured, not run
    graph.replay()
    gpu.cuda.synchronize()
    assert (res == 3).all()
    src.fill_(5)
    graph.replay()
    gpu.cuda.synchronize()
    assert (res == 15).all()


RANKS = """
from cluster import block_rank_in_cluster, cluster_size

@kernel
def ranks(res: Pointer[Int32, MutAnyOrigin]):
    if thread_idx.x == 0:
        res[unsafe_offset=Int32(block_idx.x)] = Int32(block_rank_in_cluster()) + 100 * Int32(cluster_size())
"""


@pytest.mark.device
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_the_cluster_of_a_launch(gpu, size):
    """16 is not portable: the kernel is allowed it by the launch."""
    kernel = ptxdsl.loads(RANKS)["ranks"]
    res = gpu.zeros(32, dtype=gpu.int32, device="cuda")
    kernel[32, 64](res, cluster=size)
    assert res.tolist() == [i % size + 100 * size for i in range(32)]


@pytest.mark.device
def test_clusters_that_cannot_be(gpu):
    kernel = ptxdsl.loads(RANKS)["ranks"]
    res = gpu.zeros(34, dtype=gpu.int32, device="cuda")
    for cluster, grid, words in (
        (17, 34, "cluster (17, 1, 1) has 17 blocks; at most 16 are possible"),
        (4, 34, "grid.x is 34, not a multiple of the cluster's 4"),
    ):
        with pytest.raises(ptxdsl.LaunchError) as caught:
            kernel[grid, 64](res, cluster=cluster)
        assert words in str(caught.value)
    assert not res.any()


@pytest.mark.device
def test_a_kernel_with_a_cluster_of_16(gpu):
    text = RANKS.replace("@kernel", "@kernel(cluster=(16, 1, 1))")
    res = gpu.zeros(32, dtype=gpu.int32, device="cuda")
    ptxdsl.loads(text)["ranks"][32, 64](res)
    assert res.tolist() == [i % 16 + 1600 for i in range(32)]


@pytest.mark.device
def test_a_cooperative_launch_runs_all_blocks_at_a_time(gpu):
    """Every block waits for all others: that ends only if all of them run."""
    text = """
from atomic import Atomic

@kernel
def meet(count: Pointer[Int32, MutAnyOrigin]):
    if thread_idx.x == 0:
        _ = Atomic.fetch_add(count, 1)
        while inlined_assembly["ld.acquire.gpu.global.b32 $0, [$1];", Int32, constraints="=r,l", has_side_effect=True](
            count
        ) < Int32(grid_dim.x):
            pass
"""
    kernel = ptxdsl.loads(text)["meet"]
    most = kernel.occupancy(128).blocks * gpu.cuda.get_device_properties(0).multi_processor_count
    count = gpu.zeros(1, dtype=gpu.int32, device="cuda")
    kernel[most, 128](count, cooperative=True, timeout=20)
    assert count.item() == most
    with pytest.raises(ptxdsl.LaunchError, match=rf"\({most + 1}, 1, 1\) has {most + 1}, and at most {most} blocks"):
        kernel[most + 1, 128](count, cooperative=True)


@pytest.mark.device
def test_dependent_launches(gpu):
    """The second kernel begins early and waits for what the first wrote."""
    text = """
from grid_controls import launch_dependent_grids, wait_on_dependent_grids

@kernel
def first(a: Pointer[Int32, MutAnyOrigin]):
    launch_dependent_grids()
    nanosleep(100000)
    a[unsafe_offset=Int32(thread_idx.x)] = 7

@kernel
def second(a: Pointer[Int32, MutAnyOrigin], b: Pointer[Int32, MutAnyOrigin]):
    wait_on_dependent_grids()
    b[unsafe_offset=Int32(thread_idx.x)] = a[unsafe_offset=Int32(thread_idx.x)] + 1
"""
    module = ptxdsl.loads("from intrinsics import nanosleep\n" + text)
    for _ in range(20):
        a = gpu.zeros(32, dtype=gpu.int32, device="cuda")
        b = gpu.zeros(32, dtype=gpu.int32, device="cuda")
        module.first[1, 32](a)
        module.second[1, 32](a, b, pdl=True)
        assert (b == 8).all()


STATIC = """
@kernel
def both(res: Pointer[Int32, MutAnyOrigin], n: Int32):
    var own = unsafe_stack_allocation[256, Int32, address_space=.SHARED, alignment=16]()
    var more = external_memory[Int32, address_space=AddressSpace.SHARED, alignment=16]()
    var i = Int32(thread_idx.x)
    own[unsafe_offset=i] = i
    while i < n:
        more[unsafe_offset=i] = i
        i += Int32(block_dim.x)
    barrier()
    i = Int32(thread_idx.x)
    while i < n:
        res[unsafe_offset=i] = more[unsafe_offset=n - 1 - i] + own[unsafe_offset=i % 256]
        i += Int32(block_dim.x)
"""


def test_static_shared_memory_counts(launch, output):
    """1 KiB of the kernel's own: the edges lie 1 KiB lower. A small launch takes no room from a large one after it."""
    kernel = ptxdsl.loads(STATIC)["both"]
    for size in (47 * 1024 - 4, 47 * 1024, 47 * 1024 + 4, 48 * 1024, 226 * 1024, 64, 50 * 1024):
        n = size // 4
        res = output(n, np.int32)
        launch(kernel, 1, 256, res, n, smem=size)
        i = np.arange(n)
        assert np.array_equal(res.read(), n - 1 - i + i % 256), size
    with pytest.raises(ptxdsl.LaunchError, match="1024 bytes of its own"):
        launch(kernel, 1, 256, res, 1, smem=226 * 1024 + 4)


@pytest.mark.device
def test_occupancy(gpu):
    kernel = ptxdsl.loads(STATIC)["both"]
    small = kernel.occupancy(256, smem=64)
    assert (small.blocks, small.warps, small.max_warps, small.fraction) == (8, 64, 64, 1.0)
    assert small.clusters is None and small.shared == 1024 + 64
    assert kernel.occupancy(256, smem=200 * 1024).blocks == 1
    ranks = ptxdsl.loads(RANKS)["ranks"]
    four, sixteen = (ranks.occupancy(1024, cluster=size).clusters for size in (4, 16))
    assert four > sixteen > 0


@pytest.mark.device
def test_registers_bound_the_block(gpu):
    """A kernel that the compiler gives more than 64 registers cannot have 1024 threads."""
    lines = "\n".join(f"    var v{i} = src[unsafe_offset=t + {i}]" for i in range(100))
    uses = "\n".join(f"    res[unsafe_offset=t + {i}] = v{i} - v{(i + 1) % 100}" for i in range(100))
    text = (
        "@kernel\ndef wide(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin]):\n"
        f"    var t = Int32(thread_idx.x)\n{lines}\n    barrier()\n{uses}\n"
    )
    kernel = ptxdsl.loads(text)["wide"]
    found = kernel.occupancy(32)
    assert found.registers > 64 and found.limit < 1024
    a = gpu.zeros(2000, device="cuda")
    with pytest.raises(
        ptxdsl.LaunchError, match=f"needs {found.registers} registers per thread, so at most {found.limit}"
    ):
        kernel[1, 1024](a, a)
