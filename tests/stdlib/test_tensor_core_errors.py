"""Tensor memory and products of tcgen05 that cannot be: errors at the call, with the numbers that are wrong."""

from __future__ import annotations

import pytest

from ptxdsl.diagnostics import CompileError
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.source import Source

HEAD = """
from layout import SharedTile, TensorMapSwizzle
from tcgen05 import MatrixDescriptor, NarrowFloat, TensorAccumulator, TensorMemory, TensorOperand, TensorScales
from tcgen05_sparse import TensorSparsity, tcgen05_mma_sparse, tcgen05_mma_sparse_scaled
from tcgen05_stationary import tcgen05_mma_stationary, tcgen05_mma_stationary_sparse, zero_columns
from tcgen05 import mma_arrive, tcgen05_cp, tcgen05_ld, tcgen05_ld_reduced, tcgen05_mma, tcgen05_mma_scaled
from tcgen05 import tcgen05_shift, tcgen05_st

comptime BF16 = DType.bfloat16
comptime F32 = DType.float32
comptime E4M3 = DType.float8_e4m3fn
comptime U8 = DType.uint8
comptime NONE = TensorMapSwizzle.SWIZZLE_NONE

@kernel(threads=128)
def k(n: Int32):
    var memory = external_memory[UInt8, address_space=.SHARED, alignment=1024]()
    var slot = unsafe_stack_allocation[1, UInt32, address_space=.SHARED]()
    var tensor = TensorMemory[256](slot)
    var a = SharedTile[BF16, 128, 64](memory)
    var b = SharedTile[BF16, 64, 64](memory)
    var d = TensorAccumulator[F32, 128, 64](tensor.address)
    var fp8 = SharedTile[E4M3, 128, 128](memory)
    var fp4 = SharedTile[U8, 128, 128](memory)
    var square = TensorAccumulator[F32, 128, 128](tensor.address)
    var scales = TensorScales[U8, 128, 4](tensor.address)
    var whole = SharedTile[BF16, 64, 128](memory)
    var places = TensorSparsity[BF16, 128](0)
    var kept = TensorAccumulator[F32, 64, 64, stationary=True](0)
"""

CASES = {
    # tensor memory
    "TensorMemory[1024].allocate(slot)": "the kernel uses 1024 columns of tensor memory, there are 512",
    "TensorMemory[96].allocate(slot)": "columns are allocated by powers of two from 32 to 512, not 96: allocate 128",
    "TensorMemory[16].allocate(slot)": "columns are allocated by powers of two from 32 to 512, not 16: allocate 32",
    "TensorMemory[64, cta_group=3].allocate(slot)": "cta_group is 1 or 2, not 3",
    "_ = tensor.columns_from[192, 128]()": "the 128 columns from 192 on are beyond the 256 allocated ones",
    "_ = tensor.columns_from[0, -32]()": "the -32 columns from 0 on are beyond the 256 allocated ones",
    "_ = tensor.columns_from[1 << 62, 1 << 62]()":
        f"the {2**62} columns from {2**62} on are beyond the 256 allocated ones",
    "_ = TensorMemory[1024](slot)": "the kernel uses 1024 columns of tensor memory, there are 512",
    "_ = tensor.matrix[TensorAccumulator[F32, 128, 256], 128]()":
        "the 256 columns from 128 on are beyond the 256 allocated ones",
    "_ = TensorAccumulator[F32, 100, 64](0).load[0, 8]()":
        "a block has 64 or 128 rows of a result, with a stationary B also 32, not 100",
    "_ = TensorAccumulator[BF16, 128, 64](0).load[0, 8]()":
        "products are accumulated in float32, float16 or int32, not in DType.bfloat16",
    "_ = TensorAccumulator[F32, 128, 1024](0).load[0, 8]()":
        "a result of 1024 columns is beyond the 512 of tensor memory",
    "_ = d.load[48, 32]()": "the 32 columns from 48 on are beyond the 64 of a row",
    "_ = TensorAccumulator[DType.float16, 128, 64](0).load[0, 3]()":
        "columns of DType.float16 are loaded by pairs, not 3",
    "_ = tcgen05_ld[F32, 8, datapaths=16, bits=512](tensor.address)":
        "the shapes are 32 lanes by 32 bits, and 16 by 32, 64, 128, 256, not 16 by 512",
    "_ = tcgen05_ld[F32, 256](tensor.address)":
        "a shape of 1 registers is repeated 1, 2, 4, … times to 128 registers at most, not to 256",
    "_ = tcgen05_ld[F32, 6](tensor.address)":
        "a shape of 1 registers is repeated 1, 2, 4, … times to 128 registers at most, not to 6",
    "_ = tcgen05_ld[F32, 8, datapaths=16, bits=32](tensor.address)":
        "16 lanes by 32 bits, and these alone, have a split: where the columns of threads 16 to 31 begin",
    "_ = tcgen05_ld[F32, 8, datapaths=16, bits=32, split=512](tensor.address)":
        "columns of threads 16 to 31 begin at most 511 further on, not 512",
    "_ = tcgen05_ld[F32, -4](tensor.address)":
        "a shape of 1 registers is repeated 1, 2, 4, … times to 128 registers at most, not to -4",
    "_ = tcgen05_ld[F32, 4, pack=True](tensor.address)":
        "lower halves are packed of types of 16 bits, not of DType.float32",
    "tcgen05_st[unpack=True](tensor.address, Array[SIMD[F32, 1], 16](fill=0))":
        "halves are unpacked of types of 16 bits, not of DType.float32",
    "_ = tcgen05_ld[DType.float64, 8](tensor.address)":
        "registers hold types of 16 and 32 bits, not DType.float64",
    "_ = tcgen05_ld[DType.int8, 8](tensor.address)": "registers hold types of 16 and 32 bits, not DType.int8",
    "tcgen05_st(tensor.address, Array[SIMD[BF16, 4], 8](fill=0))":
        "a register has 4 bytes, not the 8 of SIMD[DType.bfloat16, 4]",
    "_ = d.load[0, 8]()[0]": "this result is still being written: wait for it, and use what the wait returns",
    "TensorOperand[BF16, 128, 64](tensor.address).store[32](Array[SIMD[BF16, 2], 32](fill=0))":
        "the 64 elements from 32 on are beyond the 64 of a row",
    "TensorOperand[BF16, 128, 64](tensor.address).store[-2](Array[SIMD[BF16, 2], 4](fill=0))":
        "the 8 elements from -2 on are beyond the 64 of a row",
    "tcgen05_cp[datapaths=64, bits=128](tensor.address, MatrixDescriptor[SharedTile[U8, 64, 16, swizzle=NONE]](0))":
        "tcgen05.cp does not copy 64 lanes by 128 bits",
    "tcgen05_cp[datapaths=128, bits=256](tensor.address, MatrixDescriptor[SharedTile[U8, 64, 16, swizzle=NONE]](0))":
        "a copy of 128 lanes by 256 bits takes a tile of 128 rows of 32 bytes, not of 64 rows of 16",
    "TensorScales[U8, 96, 4](tensor.address).copy(TensorScales[U8, 96, 4].Tile(memory))":
        "factors of a multiple of 128 rows are copied, not of 96",
    "TensorScales[U8, 128, 6](tensor.address).copy(TensorScales[U8, 128, 6].Tile(memory))":
        "factors are copied by four, not 6",
    # shapes
    "tcgen05_mma(TensorAccumulator[F32, 96, 64](0), a, b)": "a product of one block has 64 or 128 rows, not 96",
    "tcgen05_mma(TensorAccumulator[F32, 128, 260](0), a, b)":
        "a product of one block has 8, 16, … 256 columns, not 260",
    "tcgen05_mma(TensorAccumulator[F32, 64, 64, cta_group=2](0), a, b)":
        "a product of a pair has 128 or 256 rows, not 64",
    "tcgen05_mma(TensorAccumulator[F32, 256, 72, cta_group=2](0), a, b)":
        "a product of a pair has a multiple of 16 columns up to 256, not 72",
    "tcgen05_mma(TensorAccumulator[DType.int32, 128, 40](0), SharedTile[DType.int8, 128, 128](memory), fp4)":
        "a product of bytes has 8, 16, 24, 32 or a multiple of 16 columns, not 40",
    "tcgen05_mma(d, b, b)": "A has 64 rows, the result 128",
    "tcgen05_mma(d, a, a)": "B has 128 columns, the result 64",
    "tcgen05_mma(TensorAccumulator[F32, 256, 64, cta_group=2](0), a, b)": "B has 64 columns, the result 32",
    "tcgen05_mma(d, a, SharedTile[BF16, 64, 128](memory))": "A has a K of 64, B one of 128",
    "tcgen05_mma(d, SharedTile[BF16, 128, 8, swizzle=NONE](memory), SharedTile[BF16, 64, 8, swizzle=NONE](memory))":
        "K is a multiple of 16 for DType.bfloat16, not 8",
    "tcgen05_mma(d, TensorOperand[BF16, 64, 64](0), b)": "A has 64 rows, the result 128",
    # types
    "tcgen05_mma(d, a, SharedTile[DType.float16, 64, 64](memory))":
        "tcgen05 does not multiply DType.bfloat16 by DType.float16",
    "tcgen05_mma(TensorAccumulator[DType.float16, 128, 64](0), a, b)":
        "products of DType.bfloat16 are accumulated in float32, not DType.float16",
    "tcgen05_mma(d, SharedTile[DType.int8, 128, 128](memory), SharedTile[DType.int8, 64, 128](memory))":
        "products of DType.int8 are accumulated in int32, not DType.float32",
    "tcgen05_mma[a_narrow=NarrowFloat.E2M1](square, fp8, fp8)":
        "A of e2m1 is a tile of uint8, not of DType.float8_e4m3fn",
    "tcgen05_mma[a_narrow=NarrowFloat.E2M1](square, fp4, fp4)": "tcgen05 does not multiply e2m1 by DType.uint8",
    'tcgen05_mma[a_narrow=NarrowFloat("e1m2", 9), b_narrow=NarrowFloat.E2M1](square, fp4, fp4)':
        "a NarrowFloat is E2M3, E3M2 or E2M1, which have the codes 3 to 5, not 9",
    "tcgen05_mma_scaled[b_narrow=NarrowFloat.E2M1](square, fp8, fp8, scales, scales)":
        "B of e2m1 is a tile of uint8, not of DType.float8_e4m3fn",
    "tcgen05_mma[saturate=True](d, a, b)": "only sums of integers saturate",
    "tcgen05_mma[scale_d=4](square, fp8, fp8)":
        "D is divided by 2 to the 0 to 15 in products of 16-bit types and of float32, not to the 4 in one of "
        "kind f8f6f4",
    "tcgen05_mma_scaled(square, fp8, fp4, scales, scales)":
        "tcgen05 does not multiply DType.float8_e4m3fn by DType.uint8 with scale factors",
    "tcgen05_mma_scaled(square, fp4, fp4, scales, scales)": "a factor is for 16 or 32 elements of e2m1, not for 64",
    "tcgen05_mma_scaled(square, fp8, fp8, TensorScales[U8, 128, 8](0), TensorScales[U8, 128, 8](0))":
        "a factor is for 32 elements of DType.float8_e4m3fn, not for 16",
    "tcgen05_mma_scaled(square, fp8, fp8, TensorScales[E4M3, 128, 4](0), TensorScales[E4M3, 128, 4](0))":
        "factors for DType.float8_e4m3fn are uint8 (ue8m0), not DType.float8_e4m3fn",
    "tcgen05_mma_scaled(square, fp8, fp8, scales, TensorScales[U8, 256, 4](0))":
        "factors of A are of 128 rows and of B of 256, the product has 128 and 128",
    # sparse A, stationary B
    "tcgen05_mma_sparse(d, a, TensorSparsity[BF16, 64](0), b)":
        "half of A has a K of 64 and metadata one of 64, so B one of 128 and not of 64",
    "tcgen05_mma_sparse(d, a, TensorSparsity[BF16, 256](0), whole)":
        "half of A has a K of 64 and metadata one of 256, so B one of 128 and not of 128",
    "tcgen05_mma_sparse(TensorAccumulator[F32, 64, 64](0), b, places, whole)":
        "metadata is of 128 rows, a block of the result has 64",
    "tcgen05_mma_sparse_scaled(square, fp8, TensorSparsity[E4M3, 256](0), SharedTile[E4M3, 128, 256](memory), "
    "TensorScales[U8, 128, 8](0), TensorScales[U8, 128, 8](0))":
        "a factor is for 64 elements of DType.float8_e4m3fn, not for 32",
    "tcgen05_mma_sparse_scaled(square, fp4, TensorSparsity[U8, 512](0), SharedTile[U8, 128, 256](memory), "
    "TensorScales[U8, 128, 8](0), TensorScales[U8, 128, 8](0))":
        "with scale factors a sparse A of uint8, and no other, has two e2m1 in a byte, and metadata with packed=True; "
        "this is DType.uint8",
    "tcgen05_mma_sparse_scaled(square, fp4, TensorSparsity[U8, 512, packed=True](0), "
    "SharedTile[U8, 128, 256](memory), TensorScales[E4M3, 128, 8](0), TensorScales[E4M3, 128, 8](0))":
        "factors for 64 elements are uint8 (ue8m0), not DType.float8_e4m3fn",
    "TensorSparsity[U8, 128, packed=True](0).copy(TensorSparsity[U8, 128, packed=True].Tile(memory))":
        "metadata is copied for 256 elements of K each, not for 128",
    "TensorSparsity[BF16, 64](0).copy(TensorSparsity[BF16, 64].Tile(memory))":
        "metadata is copied for 128 elements of K each, not for 64",
    "tcgen05_mma_stationary(TensorAccumulator[F32, 64, 96, stationary=True](0), b, b)":
        "a product with a stationary B has 32, 64 or 128 rows and 64, 128 or 256 columns, not 64 and 96",
    "tcgen05_mma_stationary(kept, TensorOperand[BF16, 64, 64](0), b)":
        "with a stationary B an A in tensor memory of fewer than 128 rows, here 64, is a "
        "TensorOperand[…, stationary=True]",
    "_ = zero_columns[64, used=0, zeros=3]()": "runs have 1 to 256 columns, not 0 and 3",
    "_ = zero_columns[32, used=4, zeros=3, shift=17]()": "with 32 rows B is shifted by 0 to 16 columns, not by 17",
    "tcgen05_mma_stationary[buffer=4](kept, b, b)": "the buffers of B are 0 to 3, not 4",
    'tcgen05_mma_stationary[use="keep"](kept, b, b)': "a buffer is of use fill, use, lastuse or discard, not keep",
    'tcgen05_mma_stationary[use="fill"](kept, b, b)':
        "a buffer holds a K of 16 of DType.bfloat16, not of 64",
    'tcgen05_mma_stationary_sparse(TensorAccumulator[F32, 64, 256, stationary=True](0), b, '
    'TensorSparsity[BF16, 128, rows=64, stationary=True](0), SharedTile[BF16, 256, 128](memory))':
        "a sparse product with a stationary B has 64 or 128 columns, not 256",
    "tcgen05_mma_sparse(TensorAccumulator[F32, 128, 64, cta_group=2](0), b, "
    "TensorSparsity[BF16, 128, rows=64, cta_group=2](0), SharedTile[BF16, 32, 128](memory))":
        "the result of a sparse product of a pair with 128 rows is a TensorAccumulator[…, sparse=True]",
    "tcgen05_mma_sparse[part=2, parts=2](d, a, places, b)": "of 2 parts of K there is none of number 2",
    "TensorSparsity[BF16, 128, rows=96](0).copy(TensorSparsity[BF16, 128, rows=96].Tile(memory))":
        "metadata is of 64 or 128 rows of a block, with a stationary B also of 32, not of 96",
    # buffers, parts, shifts
    'tcgen05_mma[use="fill"](d, a, b)': "a buffer holds a K of 16 of DType.bfloat16, not of 64",
    'tcgen05_mma[use="keep"](d, a, b)': "a buffer is of use fill, use, lastuse or discard, not keep",
    "tcgen05_mma[shifts=True](d, a, b)":
        "only an A in tensor memory of 128 rows is shifted, with the use lastuse or discard, not a descriptor of 128 "
        "rows with the use discard",
    'tcgen05_mma[shifts=True, use="fill"](d, TensorOperand[BF16, 128, 16](0), SharedTile[BF16, 64, 16, '
    'swizzle=TensorMapSwizzle.SWIZZLE_32B](memory))':
        "only an A in tensor memory of 128 rows is shifted, with the use lastuse or discard, not a tensor of 128 rows "
        "with the use fill",
    "_ = MatrixDescriptor[SharedTile[BF16, 128, 64]](0).k_block[16, 4]()": "a K of 64 has no block of number 4 of 16",
    "_ = MatrixDescriptor[SharedTile[BF16, 128, 192]](0).k_block[96, 0]()":
        "a block of K is a part of a box of 64, or several, not 96",
    "_ = TensorOperand[BF16, 128, 64](0).k_block[48, 0]()": "a K of 64 has no block of number 0 of 48",
    "tcgen05_mma_scaled[part=4, parts=4](square, fp8, fp8, scales, scales)":
        "of 4 parts of K there is none of number 4",
    # loads that find
    '_ = tcgen05_ld_reduced[F32, "max", 1](tensor.address)':
        "the least and greatest are found of 2 columns at least, not of 1",
    '_ = tcgen05_ld_reduced[F32, "sum", 4](tensor.address)': "what is found is the min or the max, not sum",
    '_ = tcgen05_ld_reduced[BF16, "max", 4](tensor.address)':
        "the least and greatest are found of float32, int32 and uint32, not of DType.bfloat16",
    '_ = tcgen05_ld_reduced[DType.int32, "max", 4, nan=True](tensor.address)':
        "only float32 has signs to leave out and NaN, not DType.int32",
    # layouts
    "tcgen05_mma(d, SharedTile[BF16, 128, 64, swizzle=NONE](memory), b)":
        "A without a swizzle lies in boxes of 16 bytes, not 128: give the tile box_cols=8 or a swizzle",
    "tcgen05_mma(d, MatrixDescriptor[SharedTile[F32, 32, 128], True](0), SharedTile[F32, 64, 32](memory))":
        "A of DType.float32 is MN-major with SWIZZLE_128B_ATOM_32B alone",
    "tcgen05_mma(d, SharedTile[BF16, 128, 64, swizzle=TensorMapSwizzle.SWIZZLE_128B_ATOM_32B](memory), b)":
        "A is swizzled by chunks of 32 bytes, as only an MN-major matrix of float32 can be",
    "tcgen05_mma[a_narrow=NarrowFloat.E2M1, b_narrow=NarrowFloat.E2M1](square, "
    "MatrixDescriptor[SharedTile[U8, 128, 128], True](0), fp4)":
        "A of e2m1 is K-major; only types of 8, 16 and 32 bits can be MN-major",
    "tcgen05_mma_scaled(square, MatrixDescriptor[SharedTile[U8, 128, 128], True](0), fp4, "
    "TensorScales[U8, 128, 8](0), TensorScales[U8, 128, 8](0))":
        "A and B of two e2m1 in a byte are K-major; only types of 8, 16 and 32 bits can be MN-major",
    "_ = MatrixDescriptor[SharedTile[BF16, 128, 64]](0).at[4]()": "element 4 of a K of 64 begins no 16 bytes",
    "_ = MatrixDescriptor[SharedTile[BF16, 128, 64]](0).at[64]()": "element 64 of a K of 64 begins no 16 bytes",
    "_ = MatrixDescriptor[SharedTile[BF16, 128, 64]](0).row_block[8, 16]()": "128 rows have no block of number 16 of 8",
    "_ = MatrixDescriptor[SharedTile[BF16, 128, 64]](0).row_block[8, -1]()": "128 rows have no block of number -1 of 8",
    "_ = MatrixDescriptor[SharedTile[BF16, 128, 64]](0).row_block[0, 0]()":
        "128 rows are divided into blocks of a multiple of 8, not of 0",
    "_ = MatrixDescriptor[SharedTile[BF16, 8, 128, box_rows=2048]].of(SharedTile[BF16, 8, 128, box_rows=2048](memory))":
        "boxes 262144 bytes apart do not fit a matrix descriptor, which has 14 bits for units of 16",
    "mma_arrive[4](memory.bitcast[SharedMemBarrier]())": "cta_group is 1 or 2, not 4",
}  # fmt: skip


@pytest.mark.parametrize("line", CASES, ids=str)
def test_what_is_said(line):
    with pytest.raises(CompileError) as caught:
        compile_source(Source("wrong.pdsl", f"{HEAD}    {line}\n"), options=Options(arch="sm_100a"))
    (said,) = caught.value.diagnostics
    assert (said.code, said.message) == ("E0407", CASES[line])
    assert said.span.text in line


LONG = "MatrixDescriptor[SharedTile[U8, 128, 384], False, True](0)"
FACTORS = "TensorScales[E4M3, 128, 48](0), TensorScales[E4M3, 128, 48](0)"
OF_K96 = {
    "tcgen05_mma_scaled[k96=True](square, fp4, fp4, TensorScales[E4M3, 128, 16](0), TensorScales[E4M3, 128, 16](0))":
        "K is a multiple of 48 for DType.uint8, not 128",
    f"tcgen05_mma_scaled[k96=True](TensorAccumulator[F32, 128, 72](0), {LONG}, SharedTile[U8, 72, 384](memory), "
    "TensorScales[E4M3, 128, 48](0), TensorScales[E4M3, 72, 48](0))":
        "a product with a K of 96 has 128 rows and a multiple of 16 columns, not 128 and 72",
    f"tcgen05_mma_scaled[k96=True](square, MatrixDescriptor[SharedTile[U8, 128, 384]](0), {LONG}, {FACTORS})":
        "with a K of 96 descriptors are MatrixDescriptor[Tile, False, True]",
    "_ = MatrixDescriptor[SharedTile[U8, 128, 384, swizzle=TensorMapSwizzle.SWIZZLE_64B], False, True].of("
    "SharedTile[U8, 128, 384, swizzle=TensorMapSwizzle.SWIZZLE_64B](memory))":
        "a matrix of a product with a K of 96 is K-major, in boxes of 128 bytes with SWIZZLE_128B, not of 64",
}  # fmt: skip


@pytest.mark.parametrize("line", OF_K96, ids=str)
def test_what_is_said_of_a_k_of_96(line):
    with pytest.raises(CompileError) as caught:
        compile_source(Source("wrong.pdsl", f"{HEAD}    {line}\n"), options=Options(arch="sm_103a"))
    (said,) = caught.value.diagnostics
    assert (said.code, said.message) == ("E0407", OF_K96[line])


FEATURES = [
    ("sm_100a", f"tcgen05_mma_scaled[k96=True](square, {LONG}, {LONG}, {FACTORS})", "products with a K of 96"),
    ("sm_103a", "tcgen05_mma(TensorAccumulator[DType.int32, 128, 128](0), fp4, fp4)", "products of bytes"),
    ("sm_110a", "tcgen05_mma[scale_d=1](d, a, b)", "products that divide D"),
    ("sm_100f", "tcgen05_shift(tensor.address)", "shifts of tensor memory"),
    ("sm_90a", "tcgen05_mma(d, a, b)", "fifth-generation tensor cores"),
    ("sm_100a", '_ = d.load_reduced["max", 0, 8]()', "loads from tensor memory that find the least or greatest"),
    (
        "sm_103f",
        "tcgen05_mma_sparse_scaled(square, fp4, TensorSparsity[U8, 512, packed=True](0), "
        "SharedTile[U8, 128, 256](memory), TensorScales[E4M3, 128, 16](0), TensorScales[E4M3, 128, 16](0))",
        "products of a sparse A of two e2m1 in a byte",
    ),
]


@pytest.mark.parametrize(("arch", "line", "what"), FEATURES)
def test_what_a_target_lacks(arch, line, what):
    with pytest.raises(CompileError) as caught:
        compile_source(Source("wrong.pdsl", f"{HEAD}    {line}\n"), options=Options(arch=arch))
    assert caught.value.diagnostics[0].code == "E0701"
    assert what in caught.value.diagnostics[0].message
