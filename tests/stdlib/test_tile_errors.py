"""Tiles, tensor copies and warpgroup products that cannot be: errors at the call, with the numbers that are wrong."""

from __future__ import annotations

import pytest

from ptxdsl.diagnostics import CompileError
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.source import Source

HEAD = """
from layout import SharedTile, TensorMapSwizzle, TileRing, dynamic_shared
from cluster import load_cluster
from matrix_memory import ld_matrix, st_matrix
from mma import mma
from pending import Pending
from scheduler import GroupedOrder
from split_k import ClusterSums
from tma import tma_gather4, tma_load, tma_reduce, tma_scatter4, tma_store, cp_async_bulk_tensor_prefetch
from tensormap import SharedTensorMap
from wgmma import WGMMAAccumulator, load_operand, store_accumulator, wgmma_async, wgmma_wait_group_sync
from wgmma_rare import wgmma_bits_async, wgmma_sparse_async

comptime BF16 = DType.bfloat16
comptime F32 = DType.float32

@kernel(threads=128)
def k(map: TensorMap, bar: Int32):
    var memory = external_memory[UInt8, address_space=.SHARED, alignment=1024]()
    var bars = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
    var a = SharedTile[BF16, 64, 64](memory)
    var b = SharedTile[BF16, 128, 64](memory)
    var acc = Pending(WGMMAAccumulator[F32, 64, 128]())
    var sums = SIMD[F32, 4](0)
    var counts = SIMD[DType.int32, 4](0)
"""

CASES = {
    # tiles
    "_ = SharedTile[BF16, 64, 100](memory)": "100 columns of DType.bfloat16 are not made of boxes of 64",
    "_ = SharedTile[BF16, 64, 32](memory)":
        "a row of a swizzled box has the swizzle's 128 bytes, this one 64: give the tile a swizzle of as many",
    "_ = SharedTile[BF16, 64, 128, box_cols=128](memory)":
        "a row of a swizzled box has the swizzle's 128 bytes, this one 256",
    "_ = SharedTile[BF16, 64, 64, box_cols=32](memory)":
        "a row of a swizzled box has the swizzle's 128 bytes, this one 64: give the tile a swizzle of as many",
    "_ = SharedTile[DType.uint8, 8, 8](memory)": "a row of a box has a multiple of 16 bytes, not 8",
    "_ = b.row_block[48](0)": "128 rows are not divided into blocks of 48",
    "_ = b.row_block[4](0)": "a part of a swizzled tile has a multiple of 8 rows, not 4",
    "_ = b.col_block[32](0)": "a part of a tile has whole boxes of 64 columns, not 32",
    "_ = b.load[16](0, 0)": "16 bytes at most lie together, not 32",
    "a[bar, 1.5] = 3": "an index is an integer, not DType.float64",
    "_ = a[bar > 0, 0]": "an index is an integer, not DType.bool",
    "_ = a.at(sums[0], bar)": "an index is an integer, not DType.float32",
    "_ = a.load[2](bar, sums[0])": "an index is an integer, not DType.float32",
    "a.store(bar < 3, 0, SIMD[BF16, 2](0))": "an index is an integer, not DType.bool",
    "_ = a.row_block[8](0.7)": "an index is an integer, not DType.float64",
    "_ = a.col_block[64](True)": "an index is an integer, not DType.bool",
    "_ = TileRing[SharedTile[BF16, 8, 64], 2](memory)[sums[0]]": "an index is an integer, not DType.float32",
    "_ = TileRing[SharedTile[BF16, 4, 64], 300](memory)":  # of 512 bytes each, aligned to 1024
        "300 tiles of 1024 bytes are 307200, a block has 232448 bytes of shared memory",
    "_ = SharedTile[BF16, 0, 64](memory)": "a tile has rows and columns, not 0 by 64",
    "_ = SharedTile[BF16, 128, 64, box_rows=64](memory)":
        "a tile of 128 rows has no boxes of 64 rows and 64 columns",
    "_ = SharedTile[BF16, 4, 128](memory)":
        "boxes of a swizzled tile are multiples of 1024 bytes, not 512: give it a multiple of 8 rows",
    "_ = SharedTile[BF16, 64, 24, swizzle=TensorMapSwizzle(48)](memory)":
        "a swizzle has rows of 32, 64 or 128 bytes, or of 16 that it leaves alone, not 48",
    "_ = SharedTile[BF16, 64, 32, swizzle=TensorMapSwizzle(64, 32)](memory)":
        "chunks have 16 bytes, or 32 in rows of 128, not 32 in rows of 64",
    "_ = SharedTile[BF16, 64, 8, swizzle=TensorMapSwizzle(0)](memory)":
        "a swizzle has rows of 32, 64 or 128 bytes, or of 16 that it leaves alone, not 0",
    "_ = SharedTile[BF16, 2048, 64](memory)":
        "a tile of 2048 by 64 DType.bfloat16 is larger than the 232448 bytes of shared memory of a block",
    "_ = SharedTile[BF16, 1 << 62, 64](memory)":
        f"a tile of {2**62} by 64 DType.bfloat16 is larger than the 232448 bytes of shared memory of a block",
    "_ = TileRing[SharedTile[BF16, 8, 64], 0](memory)": "a ring has one stage or more, not 0",
    "_ = TileRing[SharedTile[BF16, 64, 64], 100](memory)":
        "100 tiles of 8192 bytes are 819200, a block has 232448 bytes of shared memory",
    "_ = dynamic_shared[-16]()": "the kernel uses -16 bytes of shared memory",
    # products of a warp
    "mma(sums, SIMD[BF16, 8](0), SIMD[DType.float16, 4](0), sums)":
        "mma does not multiply DType.bfloat16 by DType.float16",
    "mma(sums, SIMD[DType.int8, 16](0), SIMD[DType.uint8, 8](0), sums)":
        "products of DType.int8 are accumulated in int32, not DType.float32",
    "mma(counts, SIMD[BF16, 8](0), SIMD[BF16, 4](0), counts)":
        "products of DType.bfloat16 are accumulated in float32, not DType.int32",
    "mma(sums, SIMD[BF16, 16](0), SIMD[BF16, 8](0), sums)":
        "a thread has 16 or 8 bytes of A, half as many of B and 4 elements of D, not 32, 16 and 4",
    "mma(sums, SIMD[DType.float8_e4m3fn, 8](0), SIMD[DType.float8_e4m3fn, 4](0), sums)":
        "a thread has 16 bytes of A, half as many of B and 4 elements of D, not 8, 4 and 4",
    "mma[saturate=True](sums, SIMD[BF16, 8](0), SIMD[BF16, 4](0), sums)": "only sums of integers saturate",
    # copies
    "tma_load(b.row_block[64](0), map, bars, [0, 0])":
        "a copy moves whole boxes of 128 rows, this part of a tile has 64",
    "tma_load(SharedTile[BF16, 512, 64](memory), map, bars, [0, 0])": "a box has at most 256 rows, not 512",
    "tma_store(map, [0], a)": "a box of a tensor of one dimension has one row, this tile has 64",
    "tma_gather4(SharedTile[BF16, 8, 16, swizzle=TensorMapSwizzle.SWIZZLE_NONE, box_cols=8](memory), map, bars, 0, "
    "[0, 1, 2, 3])":
        "four rows of a box are a multiple of 128 bytes, not 64",
    "tma_scatter4(map, 0, [0, 1, 2, 3], SharedTile[BF16, 6, 64](memory))":
        "four rows at a time fill a tile of a multiple of 4 rows, not of 6",
    'tma_reduce["mul"](map, [0, 0], a)':
        "tensor copies combine by add, min, max, inc, dec, and, or, xor, not by mul",
    'tma_reduce["inc"](map, [0, 0], a)': "tensor copies do not combine DType.bfloat16 by inc",
    'tma_reduce["xor"](map, [0, 0], a)': "tensor copies do not combine DType.bfloat16 by xor",
    'tma_reduce["min"](map, [0, 0], SharedTile[F32, 64, 32](memory))':
        "tensor copies do not combine DType.float32 by min",
    "_ = load_cluster(memory, 0)": "load_cluster takes types of 4 and 8 bytes, not DType.uint8",
    "_ = ClusterSums[64, 0](memory, bars)": "64 columns are not divided into 0 parts of 8, 16, …",
    "_ = GroupedOrder[1 << 32](1, 1).tile(0)": "a group has 1 to 4096 rows of tiles, not 4294967296",
    'cp_reduce_async_bulk_global_shared_cta["mul"](memory.address_space_cast[AddressSpace.GENERIC](), memory, 64)':
        "bulk copies combine by add, min, max, inc, dec, and, or, xor, not by mul",
    'cp_reduce_async_bulk_global_shared_cta["add"](memory.address_space_cast[AddressSpace.GENERIC](), memory, 64)':
        "bulk copies do not combine DType.uint8 by add",
    "cp_async_bulk_tensor_prefetch(map, [0, 0, 0, 0, 0, 0])": "a tensor has 1 to 5 dimensions, not 6",
    # products
    "_ = WGMMAAccumulator[F32, 32, 64]()": "an accumulator has a multiple of 64 rows, not 32",
    "_ = WGMMAAccumulator[F32, 64, 260]()": "an accumulator has 8, 16, … 256 columns, not 260",
    "_ = WGMMAAccumulator[DType.int8, 64, 64]()": "products accumulate in float32, float16 or int32, not DType.int8",
    "_ = wgmma_async(b, b, acc)": "A has 128 rows, the accumulator 64",
    "_ = wgmma_async(a, a, acc)": "B has 64 columns, the accumulator 128",
    "_ = wgmma_async(a, SharedTile[BF16, 128, 128](memory), acc)": "A has a K of 64, B one of 128",
    "_ = wgmma_async(a, SharedTile[DType.float16, 128, 64](memory), acc)":
        "wgmma does not multiply DType.bfloat16 by DType.float16",
    "_ = wgmma_async(a, b, Pending(WGMMAAccumulator[DType.float16, 64, 128]()))":
        "products of DType.bfloat16 are accumulated in float32, not DType.float16",
    "_ = wgmma_async(SharedTile[BF16, 64, 64, swizzle=TensorMapSwizzle.SWIZZLE_NONE](memory), b, acc)":
        "A without a swizzle lies in boxes of 16 bytes, not 128: give the tile box_cols=8 or a swizzle",
    "_ = wgmma_async[b_mn_major=True](SharedTile[F32, 64, 32](memory), SharedTile[F32, 32, 128](memory), acc)":
        "B of DType.float32 is K-major; only 16-bit types can be MN-major",
    "_ = wgmma_async[saturate=True](a, b, acc)": "only sums of integers saturate",
    "_ = wgmma_async(a, load_operand(b), acc)": "B lies in shared memory",
    "_ = wgmma_async[a_mn_major=True](load_operand(a), b, acc)": "an A in registers has no majorness",
    "_ = wgmma_wait_group_sync[8](acc)": "a wait leaves 0 to 7 groups under way, not 8",
    "_ = acc[0]": "this result is still being written: wait for it, and use what the wait returns",
    "store_accumulator(a, wgmma_wait_group_sync(acc), )": None,
    "store_accumulator[first_col=96](a, wgmma_wait_group_sync(acc))":
        "columns 96 to 160 of a result of 128 are stored; they are counted by 16",
    "store_accumulator(SharedTile[BF16, 64, 8, swizzle=TensorMapSwizzle(16)](memory), wgmma_wait_group_sync(acc))":
        "columns 0 to 8 of a result of 128 are stored; they are counted by 16",
    "store_accumulator(b, wgmma_wait_group_sync(acc))": "the tile has 128 rows, the result 64",
    "_ = wgmma_wait_group_sync(acc).as_operand[DType.int8]()": "a result becomes an operand of 16 bits, not DType.int8",
    "_ = wgmma_sparse_async(a, Array[UInt32, 4](fill=0), SharedTile[BF16, 128, 64](memory), acc)":
        "half of A has a K of 64, so B one of 128 and not of 64",
    "_ = wgmma_sparse_async[saturate=True](a, Array[UInt32, 4](fill=0), SharedTile[BF16, 128, 128](memory), acc)":
        "only sums of integers saturate",
    "_ = wgmma_sparse_async(a, Array[UInt32, 3](fill=0), SharedTile[BF16, 128, 128](memory), acc)":
        "4 steps of K have as many words of metadata, not 3",
    # tensor maps in shared memory
    "SharedTensorMap(memory).set_rank[6]()": "a tensor has 1 to 5 dimensions, not 6",
    "SharedTensorMap(memory).set_size[5](1)": "dimensions are numbered 0 to 4, not 5",
    "SharedTensorMap(memory).set_box[-1](1)": "dimensions are numbered 0 to 4, not -1",
    "SharedTensorMap(memory).set_stride[4](16)": "strides are numbered 0 to 3, not 4",
    "SharedTensorMap(memory).set_swizzle[TensorMapSwizzle.SWIZZLE_128B_ATOM_32B]()":
        "the swizzle's chunks of 32 bytes are those of a map that has them",
    # matrices of 8 by 8
    "_ = ld_matrix[8](a.ptr)": "ldmatrix loads 1, 2 or 4 matrices, not 8",
    "_ = ld_matrix[4, transpose=True](a.ptr.bitcast[Int8]())": "ldmatrix transposes 1 or 2 matrices of bytes, not 4",
    "_ = ld_matrix[1](a.ptr.bitcast[Float32]())": "ldmatrix loads types of 8 or 16 bits, not DType.float32",
    "st_matrix[transpose=True](a.ptr.bitcast[Int8](), SIMD[DType.int8, 4](0))":
        "stmatrix transposes types of 16 bits, not DType.int8",
    "st_matrix(a.ptr.bitcast[Int8](), SIMD[DType.int8, 2](0))":
        "stmatrix stores 4, 8 or 16 elements of each thread, not 2",
    "st_matrix(a.ptr, SIMD[BF16, 16](0))": "stmatrix stores 2, 4 or 8 elements of each thread, not 16",
}  # fmt: skip


@pytest.mark.parametrize("line", CASES, ids=str)
def test_what_is_said(line):
    source = Source("wrong.pdsl", f"{HEAD}    {line}\n")
    if CASES[line] is None:
        compile_source(source, options=Options(arch="sm_90a"))
        return
    with pytest.raises(CompileError) as caught:
        compile_source(source, options=Options(arch="sm_90a"))
    (said,) = caught.value.diagnostics
    assert (said.code, said.message) == ("E0407", CASES[line])
    assert said.span.text in line


BEYOND = {
    # more than the allocation's alignment, and more than the target has
    "_ = b.load[4](0, 2)": ("E0617", "`load` needs an address aligned to 8 bytes, this one is aligned to 4"),
    "b.store(0, 4, SIMD[BF16, 8](0))":
        ("E0617", "`store` needs an address aligned to 16 bytes, this one is aligned to 8"),
    "_ = dynamic_shared[240000]()": (
        "E0618", "kernel `k` uses 240,008 bytes of shared memory, 8 of them static",
    ),
    # a thread has 64 * 128 / 128 elements of the result
    "_ = wgmma_wait_group_sync(acc)[64]": ("E0603", "index 64 is out of range for 64 elements"),
    "var r = wgmma_wait_group_sync(acc); r[64] = 1": ("E0603", "index 64 is out of range for 64 elements"),
    "var r = wgmma_wait_group_sync(acc); r[63] = 1": None,
    "var r = wgmma_wait_group_sync(acc); r[Int(bar)] = 1": None,
    "_ = dynamic_shared[232448 - 8]()": None,
    "_ = b.load[4](bar, 4)": None,
    "tma_load(bar, map, bars, [0, 0])": ("E0330", "`tma_load` does not take this: type Int32 has no `box_cols`"),
}  # fmt: skip


@pytest.mark.parametrize("line", BEYOND, ids=str)
def test_what_is_said_of_the_whole_kernel(line):
    source = Source("wrong.pdsl", f"{HEAD}    {line}\n")
    if BEYOND[line] is None:
        compile_source(source, options=Options(arch="sm_90a"))
        return
    with pytest.raises(CompileError) as caught:
        compile_source(source, options=Options(arch="sm_90a"))
    (said,) = caught.value.diagnostics
    assert (said.code, said.message) == BEYOND[line]
    assert said.span.text in line
