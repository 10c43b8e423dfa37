"""A product of a sparse A with scale factors: what it reads of shared and of tensor memory."""

import pytest
from proofs import verdict

KERNEL = """
from layout import SharedTile, TensorMapSwizzle
from tcgen05 import TensorAccumulator, TensorMemory, TensorScales, mma_arrive, tcgen05_fence_after, tcgen05_load_wait
from tcgen05_sparse import TensorSparsity, tcgen05_mma_sparse_scaled
from tma import tma_load

comptime E4M3 = DType.float8_e4m3fn
comptime A = SharedTile[E4M3, 128, 128]
comptime B = SharedTile[E4M3, 128, 256]
comptime D = TensorAccumulator[DType.float32, 128, 128]
comptime Metadata = TensorSparsity[E4M3, 256]
comptime Scales = TensorScales[DType.uint8, 128, 4]


@kernel(threads=128)
def product(a: TensorMap, b: TensorMap, said: Pointer[UInt8, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin]):
    var memory = external_memory[UInt8, address_space=.SHARED, alignment=1024]()
    var numbers = memory.unsafe_offset(A.bytes + B.bytes)
    var factors = numbers.unsafe_offset(Metadata.Tile.bytes)
    var bars = unsafe_stack_allocation[2, SharedMemBarrier, address_space=.SHARED]()
    if thread_idx.x == 0:
        bars[unsafe_offset=0].init(1)
        bars[unsafe_offset=1].init(1)
        fence_mbarrier_init()

    def body(tensor: TensorMemory[256]):
        var d = tensor.matrix[D, 0]()
        if warp_id() == 0:
            if elect_one_sync():
                bars[].expect_bytes(Int32(A.bytes + B.bytes + Metadata.Tile.bytes + Scales.bytes))
                tma_load(A(memory), a, bars, [0, 0])
                tma_load(B(memory.unsafe_offset(A.bytes)), b, bars, [0, 0])
                cp_async_bulk_shared_cta_global(numbers, said, Int32(Metadata.Tile.bytes), bars)
                cp_async_bulk_shared_cta_global(factors, said, Int32(Scales.bytes), bars)
            bars[].wait(0)
            tcgen05_fence_after()
            var e = elect()
            var metadata = tensor.matrix[Metadata, D.columns]()
            var scales = tensor.matrix[Scales, D.columns + Metadata.columns]()
            metadata.copy(Metadata.Tile(numbers), e)
            scales.copy(Scales.Tile(factors), e)
            var right = B(memory.unsafe_offset(A.bytes))
            tcgen05_mma_sparse_scaled(d, A(memory), metadata, right, scales, scales, False, e)
            mma_arrive(bars.unsafe_offset(1), e)
        bars[unsafe_offset=1].wait(0)
        tcgen05_fence_after()
        var row = tcgen05_load_wait(d.load[0, 32]())
        res[unsafe_offset=D.row()] = row[0]

    TensorMemory[256].scope[body]()
"""


def test_the_product_is_proved():
    found = verdict(KERNEL, arch="sm_100a")
    assert (found.verdict, found.diagnostics) == ("proved", ())


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("            bars[].wait(0)\n", "            pass\n", "E1207"),
        ("        bars[unsafe_offset=1].wait(0)\n", "        pass\n", "E1207"),
    ],
    ids=["the product does not wait for its tiles", "the result is read at once"],
)
def test_what_is_wrong(before, after, kind):
    assert before in KERNEL
    found = verdict(KERNEL.replace(before, after, 1), arch="sm_100a")
    assert found.verdict == "fault"
    assert [said.code for said in found.diagnostics] == [kind]
