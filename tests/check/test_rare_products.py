"""Products of tcgen05 with a K of 96, with masks of columns, of a sparse and a shifted A: proved, and faulty twins."""

import pytest
from proofs import verdict

HEAD = """
from layout import SharedTile
from tcgen05 import MatrixDescriptor, TensorAccumulator, TensorMemory, TensorOperand, TensorScales, mma_arrive
from tcgen05 import tcgen05_fence_after, tcgen05_fence_before, tcgen05_load_wait, tcgen05_mma, tcgen05_mma_scaled
from tcgen05 import tcgen05_store_wait
from tcgen05_sparse import TensorSparsity, tcgen05_mma_sparse
from tcgen05_stationary import tcgen05_mma_stationary, zero_columns
from tma import tma_load

comptime BF16 = DType.bfloat16
comptime U8 = DType.uint8
"""

# Tiles of each stage are read by products of 48 bytes of K each, of which every third lies in two boxes of 128.
K96 = (
    HEAD
    + """
comptime Tile = SharedTile[U8, 128, 384]
comptime Long = MatrixDescriptor[Tile, False, True]
comptime D = TensorAccumulator[DType.float32, 128, 128]
comptime Scales = TensorScales[DType.float8_e4m3fn, 128, 48]


@kernel(threads=64)
def product(a: TensorMap, b: TensorMap, factors: Pointer[UInt8, MutAnyOrigin], n: Int32):
    var memory = external_memory[UInt8, address_space=.SHARED, alignment=1024]()
    var bars = unsafe_stack_allocation[6, SharedMemBarrier, address_space=.SHARED]()
    if thread_idx.x == 0:
        comptime for i in range(6):
            bars[unsafe_offset=i].init(1)
        fence_mbarrier_init()

    def body(tensor: TensorMemory[512]):
        var scales = tensor.matrix[Scales, D.columns]()
        var right = memory.unsafe_offset(2 * Tile.bytes)
        var held = right.unsafe_offset(2 * Tile.bytes)
        if warp_id() == 0:
            var e = elect()
            var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))
            if e != 0:
                bars[unsafe_offset=4].expect_bytes(Int32(Scales.bytes))
                cp_async_bulk_shared_cta_global(held, factors, Int32(Scales.bytes), bars.unsafe_offset(4))
            for i in range(n):
                p.acquire()
                if e != 0:
                    var at = Int32(p.state.index())
                    p.producer_mbar()[].expect_bytes(Int32(2 * Tile.bytes))
                    tma_load(Tile(memory.unsafe_offset(at * Int32(Tile.bytes))), a, p.producer_mbar(), [i * 384, 0])
                    tma_load(Tile(right.unsafe_offset(at * Int32(Tile.bytes))), b, p.producer_mbar(), [i * 384, 0])
                p.step()
            for _ in range(2):
                p.acquire()
                p.step()
        else:
            var e = elect()
            var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))
            bars[unsafe_offset=4].wait(0)
            scales.copy(Scales.Tile(held), e)
            var of_a = Long.of(Tile(memory))
            var of_b = Long.of(Tile(right))
            for i in range(n):
                c.wait()
                tcgen05_fence_after()
                var d = tensor.matrix[D, 0]()
                var left = of_a.tile(c.state.index())
                tcgen05_mma_scaled[k96=True](d, left, of_b.tile(c.state.index()), scales, scales, i > 0, e)
                mma_arrive(c.consumer_mbar(), e)
                c.step()
            mma_arrive(bars.unsafe_offset(5), e)
            bars[unsafe_offset=5].wait(0)

    TensorMemory[512].scope[body]()
"""
)

# Two products with masks of columns of one B, of which the first begins 8 columns later. Others write right behind B.
MASKED = (
    HEAD
    + """
comptime A = SharedTile[BF16, 64, 64]
comptime B = SharedTile[BF16, 136, 64]
comptime D = TensorAccumulator[DType.float32, 64, 128, stationary=True]


@kernel(threads=128)
def product(a: TensorMap, b: TensorMap, res: Pointer[Float32, MutAnyOrigin], skipped: Int32):
    var memory = external_memory[UInt8, address_space=.SHARED, alignment=1024]()
    var bars = unsafe_stack_allocation[2, SharedMemBarrier, address_space=.SHARED]()
    var left = A(memory)
    var right = B(memory.unsafe_offset(A.bytes))
    var after = memory.unsafe_offset(A.bytes + B.bytes).bitcast[Float32]()
    if thread_idx.x == 0:
        bars[unsafe_offset=0].init(1)
        bars[unsafe_offset=1].init(1)
        fence_mbarrier_init()
        bars[].expect_bytes(Int32(A.bytes + B.bytes))
        tma_load(left, a, bars, [0, 0])
        tma_load(right, b, bars, [0, 0])

    def body(tensor: TensorMemory[128]):
        var d = tensor.matrix[D, 0]()
        var second = tensor.matrix[D, D.columns]()
        if warp_id() == 0:
            bars[].wait(0)
            var e = elect()
            var zeros = zero_columns[64, used=4, zeros=4, shift=8]([skipped, 0, 0, 0])
            tcgen05_mma_stationary[masked=True](d, left, right, False, e, zeros)
            tcgen05_mma_stationary[masked=True](second, left, right, False, e, zero_columns[64, used=1, zeros=3]())
            mma_arrive(bars.unsafe_offset(1), e)
        else:
            after[unsafe_offset=thread_idx.x] = 1.0  # right behind B
        bars[unsafe_offset=1].wait(0)
        tcgen05_fence_after()
        var row = tcgen05_load_wait(d.load[0, 32]())
        if warp_id() != 0:
            row[0] += after[unsafe_offset=thread_idx.x]
        res[unsafe_offset=thread_idx.x] = row[0]

    TensorMemory[128].scope[body]()
"""
)

# 64 rows of a sparse A in tensor memory; a dense A that its product shifts, multiplied again.
SPARSE = (
    HEAD
    + """
comptime B = SharedTile[BF16, 64, 128]
comptime Half = SharedTile[BF16, 64, 64]
comptime D = TensorAccumulator[DType.float32, 64, 64]
comptime Metadata = TensorSparsity[BF16, 128, rows=64]


@kernel(threads=128)
def product(a: TensorMap, b: TensorMap, said: Pointer[UInt8, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin]):
    var memory = external_memory[UInt8, address_space=.SHARED, alignment=1024]()
    var bars = unsafe_stack_allocation[2, SharedMemBarrier, address_space=.SHARED]()
    var left = Half(memory)
    var right = B(memory.unsafe_offset(Half.bytes))
    var numbers = memory.unsafe_offset(Half.bytes + B.bytes)
    if thread_idx.x == 0:
        bars[unsafe_offset=0].init(1)
        bars[unsafe_offset=1].init(1)
        fence_mbarrier_init()
        bars[].expect_bytes(Int32(Half.bytes + B.bytes + Metadata.Tile.bytes))
        tma_load(left, a, bars, [0, 0])
        tma_load(right, b, bars, [0, 0])
        cp_async_bulk_shared_cta_global(numbers, said, Int32(Metadata.Tile.bytes), bars)

    def body(tensor: TensorMemory[128]):
        var d = tensor.matrix[D, 0]()
        if warp_id() == 0:
            bars[].wait(0)
            var e = elect()
            var metadata = tensor.matrix[Metadata, D.columns]()
            metadata.copy(Metadata.Tile(numbers), e)
            tcgen05_mma_sparse(d, left, metadata, right, False, e)
            mma_arrive(bars.unsafe_offset(1), e)
        bars[unsafe_offset=1].wait(0)
        tcgen05_fence_after()
        var row = tcgen05_load_wait(d.load[0, 32]())
        res[unsafe_offset=D.row()] = row[0]

    TensorMemory[128].scope[body]()
"""
)

SHIFTED = (
    HEAD
    + """
comptime B = SharedTile[BF16, 64, 64]
comptime D = TensorAccumulator[DType.float32, 128, 64]
comptime A = TensorOperand[BF16, 128, 64]


@kernel(threads=128)
def product(b: TensorMap, res: Pointer[Float32, MutAnyOrigin]):
    var memory = external_memory[UInt8, address_space=.SHARED, alignment=1024]()
    var bars = unsafe_stack_allocation[2, SharedMemBarrier, address_space=.SHARED]()
    if thread_idx.x == 0:
        bars[unsafe_offset=0].init(1)
        bars[unsafe_offset=1].init(1)
        fence_mbarrier_init()
        bars[].expect_bytes(Int32(B.bytes))
        tma_load(B(memory), b, bars, [0, 0])

    def body(tensor: TensorMemory[128]):
        var d = tensor.matrix[D, 0]()
        var a = tensor.matrix[A, D.columns]()
        a.store[0](Array[SIMD[BF16, 2], 32](fill=1.0))
        tcgen05_store_wait()
        tcgen05_fence_before()
        barrier()
        tcgen05_fence_after()
        if warp_id() == 0:
            bars[].wait(0)
            var e = elect()
            tcgen05_mma[shifts=True](d, a, B(memory), False, e)
            tcgen05_mma(d, a, B(memory), True, e)
            mma_arrive(bars.unsafe_offset(1), e)
        bars[unsafe_offset=1].wait(0)
        tcgen05_fence_after()
        var row = tcgen05_load_wait(d.load[0, 32]())
        res[unsafe_offset=D.row()] = row[0]

    TensorMemory[128].scope[body]()
"""
)

# The third 48 bytes of rows begin in the first box of 128 and end in the second. Others write to a box meanwhile.
ONE_OF_K96 = (
    HEAD
    + """
comptime Tile = SharedTile[U8, 128, 384]
comptime D = TensorAccumulator[DType.float32, 128, 128]
comptime Scales = TensorScales[DType.float8_e4m3fn, 128, 48]


@kernel(threads=128)
def product(a: TensorMap, factors: Pointer[UInt8, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin]):
    var memory = external_memory[UInt8, address_space=.SHARED, alignment=1024]()
    var bars = unsafe_stack_allocation[2, SharedMemBarrier, address_space=.SHARED]()
    var held = memory.unsafe_offset(Tile.bytes)
    if thread_idx.x == 0:
        bars[unsafe_offset=0].init(1)
        bars[unsafe_offset=1].init(1)
        fence_mbarrier_init()
        bars[].expect_bytes(Int32(Tile.bytes + Scales.bytes))
        tma_load(Tile(memory), a, bars, [0, 0])
        cp_async_bulk_shared_cta_global(held, factors, Int32(Scales.bytes), bars)

    def body(tensor: TensorMemory[512]):
        var d = tensor.matrix[D, 0]()
        bars[].wait(0)
        if warp_id() == 0:
            var e = elect()
            var scales = tensor.matrix[Scales, D.columns]()
            scales.copy(Scales.Tile(held), e)
            var part = MatrixDescriptor[Tile, False, True].of(Tile(memory)).k_block[48, 2]()
            tcgen05_mma_scaled[k96=True, part=2, parts=8](d, part, part, scales, scales, False, e)
            mma_arrive(bars.unsafe_offset(1), e)
        else:
            memory[unsafe_offset=Int32(2 * 128 * 128) + Int32(thread_idx.x)] = 0
        bars[unsafe_offset=1].wait(0)
        tcgen05_fence_after()
        var row = tcgen05_load_wait(d.load[0, 32]())
        res[unsafe_offset=D.row()] = row[0]

    TensorMemory[512].scope[body]()
"""
)
ARCHS = {K96: "sm_103a", ONE_OF_K96: "sm_103a"}
NAMES = {"ring of K96": K96, "one of K96": ONE_OF_K96, "masked": MASKED, "sparse": SPARSE, "shifted": SHIFTED}


@pytest.mark.parametrize("text", NAMES.values(), ids=NAMES)
def test_what_is_proved(text):
    found = verdict(text, arch=ARCHS.get(text, "sm_100a"))
    assert (found.verdict, found.diagnostics) == ("proved", ())


@pytest.mark.parametrize(
    ("text", "before", "after", "kind"),
    [
        (K96, "                c.wait()\n", "                pass\n", "E1207"),
        (K96, "of_b.tile(c.state.index())", "of_b.tile(1 - c.state.index())", "E1207"),
        (K96, "bars[unsafe_offset=4].wait(0)", "pass", "E1207"),
        (ONE_OF_K96, "Int32(2 * 128 * 128)", "Int32(0)", "E1207"),
        (ONE_OF_K96, "Int32(2 * 128 * 128)", "Int32(128 * 128)", "E1207"),
        (MASKED, "            bars[].wait(0)\n", "            pass\n", "E1207"),
        (MASKED, "A.bytes + B.bytes)", "A.bytes + B.bytes - 1024)", "E1208"),
        (SPARSE, "            bars[].wait(0)\n", "            pass\n", "E1207"),
        (SHIFTED, "        tcgen05_store_wait()\n", "        pass\n", "E1210"),
    ],
    ids=[
        "products do not wait for their tiles", "products read the other stage", "factors are not there",
        "a product's rows begin in what is written", "a product's rows end in what is written",
        "masked products do not wait for B", "the last columns of a shifted B are written",
        "a sparse product does not wait", "an A that is still being stored",
    ],
)  # fmt: skip
def test_what_is_wrong(text, before, after, kind):
    assert before in text
    found = verdict(text.replace(before, after, 1), arch=ARCHS.get(text, "sm_100a"))
    assert found.verdict == "fault"
    assert [said.code for said in found.diagnostics] == [kind]


@pytest.mark.parametrize("left_out", ["mma_arrive(c.consumer_mbar(), e)", "mma_arrive(c.consumer_mbar(), e)|c.step()"])
def test_a_stage_is_given_back_when_the_products_that_read_it_are_done(left_out: str) -> None:
    text = K96
    for line in left_out.split("|"):
        text = text.replace(f"                {line}\n", "")
    help = verdict(text, arch="sm_103a").diagnostics[0].help
    assert help is not None and "`mma_arrive(c.consumer_mbar())`" in help and "`c.step()`" in help
