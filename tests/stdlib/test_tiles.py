"""Elements of tiles by row and column, as tensor copies put them there and take them away; rings of padded tiles."""

import numpy as np
import pytest

import ptxdsl
from ptxdsl.cli import main

HEAD = """
from layout import SharedTile, TileRing, dynamic_shared
from tma import tma_load, tma_store

"""
ELEMENTS = (
    HEAD
    + """
comptime Tile = SharedTile[DType.{dtype}, {rows}, {cols}, swizzle=.SWIZZLE_{swizzle}]


@kernel(threads=64)
def flipped(src: TensorMap, dst: TensorMap, res: Pointer[Scalar[DType.{dtype}], MutAnyOrigin]):
    var tiles = TileRing[Tile, 2](dynamic_shared[TileRing[Tile, 2].bytes]())
    var tile = tiles[0]
    var other = tiles[1]
    var bars = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
    if thread_idx.x == 0:
        bars[].init(1)
        fence_mbarrier_init()
        bars[].expect_bytes(Tile.bytes)
        tma_load(tile, src, bars, [0, 0])
    barrier()
    bars[].wait(0)
    for i in range(thread_idx.x, Tile.rows * Tile.cols, 64):
        var row = i // Tile.cols
        res[unsafe_offset=i] = tile[row, i % Tile.cols]
        other[Int32(Tile.rows - 1 - row), i % Tile.cols] = tile[UInt32(row), Int32(i % Tile.cols)]
    fence_proxy_async()
    barrier()
    if thread_idx.x == 0:
        tma_store(dst, [0, 0], other)
        cp_async_bulk_commit_group()
        cp_async_bulk_wait_group[0, read=False]()
"""
)
TILES = [
    ("float32", 16, 32, "128B", "128B", 32), ("float32", 8, 16, "64B", "64B", 16),
    ("float16", 8, 16, "32B", "32B", 16),
    ("float16", 16, 128, "128B", "128B", 64), ("float32", 10, 36, "NONE", "none", 36),
    ("uint8", 8, 256, "128B", "128B", 128),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "rows", "cols", "swizzle", "map_swizzle", "box_cols"), TILES)
def test_elements_are_where_copies_put_them(dtype, rows, cols, swizzle, map_swizzle, box_cols):
    text = ELEMENTS.format(dtype=dtype, rows=rows, cols=cols, swizzle=swizzle)
    src = np.arange(rows * cols).reshape(rows, cols).astype(dtype)
    dst, res = np.zeros_like(src), np.zeros_like(src)
    maps = (ptxdsl.TensorMap(array, (rows, box_cols), swizzle=map_swizzle) for array in (src, dst))
    assert ptxdsl.loads(text).flipped.simulate(*maps, res).finished
    np.testing.assert_array_equal(res, src)
    np.testing.assert_array_equal(dst, src[::-1])


HALO = (
    HEAD
    + """
comptime Tile = SharedTile[DType.float32, 10, 36, swizzle=.SWIZZLE_NONE]  # 1440 bytes, a stage of 1536
comptime Ring = TileRing[Tile, 3]


@kernel(threads=64)
def halo(src: TensorMap, res: Pointer[Float32, MutAnyOrigin], n: Int):
    comptime assert Ring.stride == 1536 and Ring.bytes == 3 * 1536
    var ring = Ring(dynamic_shared[Ring.bytes]())
    var bars = unsafe_stack_allocation[6, SharedMemBarrier, address_space=.SHARED]()
    if thread_idx.x == 0:
        MBarPipeline[3](bars).init[num_producer=1, num_consumer=32]()
        fence_mbarrier_init()
    barrier()
    if warp_id() == 0:
        if lane_id() == 0:
            var p = RolePipeline[3, True](bars, bars.unsafe_offset(3))
            for i in range(n):
                p.acquire()
                p.producer_mbar()[].expect_bytes(Tile.bytes)
                tma_load(ring[p.state.index()], src, p.producer_mbar(), [0, Int32(i) * 8 - 1])
                p.step()
    else:
        var c = RolePipeline[3, False](bars, bars.unsafe_offset(3))
        for i in range(n):
            c.wait()
            var tile = ring[c.state.index()]
            for row in range(8):
                res[unsafe_offset=(i * 8 + row) * 32 + lane_id()] = tile[row, lane_id()] + tile[row + 2, lane_id()]
            fence_proxy_async()
            c.release()
"""
)


def test_a_ring_of_tiles_that_are_no_multiple_of_their_alignment(tmp_path, capsys):
    src = np.random.default_rng(0).integers(-9, 9, (48, 36)).astype(np.float32)
    res = np.full((48, 32), np.nan, np.float32)
    report = ptxdsl.loads(HALO).halo.simulate(ptxdsl.TensorMap(src, (10, 36)), res, 6, schedule="random:1")
    assert report.finished
    padded = np.pad(src, ((1, 1), (0, 0)))[:, :32]
    np.testing.assert_array_equal(res, padded[:-2] + padded[2:])
    (tmp_path / "halo.pdsl").write_text(HALO)
    assert main(["check", str(tmp_path / "halo.pdsl")]) == 0
    assert "kernel 'halo': proved" in capsys.readouterr().out
