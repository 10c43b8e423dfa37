"""Tensor memory that is read before anybody has written it, or before who stores it has waited for its stores."""

from __future__ import annotations

from proofs import ROOT, verdict

SCOPE = (ROOT / "tests" / "check" / "clean" / "tensor_memory_scope.pdsl").read_text(encoding="utf-8")
STORE = "        tcgen05_st(lanes, Array[Int32, 1](fill=thread * n))\n"
WAIT = "        tcgen05_store_wait()\n"
# A in tensor memory is stored by all warps, D is what the product writes.
PRODUCT = """
from layout import SharedTile, TensorMapSwizzle
from tcgen05 import TensorAccumulator, TensorMemory, TensorOperand, mma_arrive, tcgen05_fence_after
from tcgen05 import tcgen05_fence_before, tcgen05_load_wait, tcgen05_mma, tcgen05_store_wait
comptime D = TensorAccumulator[DType.float32, 128, 64]
comptime P = TensorOperand[DType.bfloat16, 128, 16]
comptime B = SharedTile[DType.bfloat16, 64, 16, swizzle=TensorMapSwizzle.SWIZZLE_32B]
@kernel(threads=128)
def kernel(res: Pointer[Float32, MutAnyOrigin]):
    var memory = external_memory[UInt8, address_space=.SHARED, alignment=1024]()
    var done = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
    if thread_idx.x == 0:
        done[].init(1)
        fence_mbarrier_init()
    memory.bitcast[UInt32]()[unsafe_offset=Int32(thread_idx.x)] = 0
    fence_proxy_async()
    def body(tensor: TensorMemory[128]):
        var d = tensor.matrix[D, 0]()
        var p = tensor.matrix[P, 64]()
        p.store[0](Array[SIMD[DType.bfloat16, 2], 8](fill=SIMD[DType.bfloat16, 2](0)))
        tcgen05_store_wait()
        tcgen05_fence_before()
        barrier()
        tcgen05_fence_after()
        if warp_id() == 0:
            var e = elect()
            tcgen05_mma(d, p, B(memory), False, e)
            mma_arrive(done, e)
        done[].wait(0)
        tcgen05_fence_after()
        var row = tcgen05_load_wait(d.load[0, 32]())
        res[unsafe_offset=thread_idx.x] = row[0]
    TensorMemory[128].scope[body]()
"""


def _found(text: str, without: str) -> tuple[tuple[str, ...], str, str]:
    """Kinds, the line that is blamed, and the help."""
    assert without in text
    found = verdict(text.replace(without, ""), arch="sm_100a")
    (said,) = found.diagnostics
    assert said.span is not None
    return found.kinds, said.span.source.line(said.span.line), said.help or ""


def test_what_is_written_is_read() -> None:
    assert verdict(PRODUCT, arch="sm_100a").verdict == "proved"
    moved = PRODUCT.replace("(d, p, B", "(tensor.matrix[D, 0](), p, B").replace("d.load[0, 32]", "d.load[32, 32]")
    assert verdict(moved, arch="sm_100a").verdict == "proved"


def test_nobody_writes_what_a_warp_loads() -> None:
    kinds, line, help = _found(SCOPE, STORE + WAIT)
    assert (kinds, "tcgen05_ld[" in line) == (("slot read before full",), True)
    assert help.startswith("write it before")
    beside = PRODUCT.replace("d.load[0, 32]", "p.k_block[16, 0]().d.load").replace(".k_block[16, 0]().d.load", ".d")
    assert beside != PRODUCT


def test_nobody_writes_what_a_product_reads() -> None:
    store = next(line for line in PRODUCT.splitlines(keepends=True) if "p.store" in line)
    kinds, line, _ = _found(PRODUCT, store + WAIT)
    assert (kinds, "tcgen05_mma(" in line) == (("slot read before full",), True)


def test_what_is_stored_after_the_load_is_not_read() -> None:
    load = "        res[unsafe_offset=thread] = tcgen05_load_wait(tcgen05_ld[DType.int32, 1](lanes))[0][0]\n"
    assert load in SCOPE
    found = verdict(SCOPE.replace(load, "").replace(STORE, load + STORE), arch="sm_100a")
    assert found.kinds == ("slot read before full",)


def test_a_warp_reaches_its_quarter_of_the_lanes() -> None:
    """PTX ISA, "Access restrictions" of tensor memory."""
    own = "UInt32(warp_id() << 21)"
    assert own in SCOPE
    found = verdict(SCOPE.replace(own, "UInt32((warp_id() + 1) % 4 << 21)"), arch="sm_100a")
    assert found.verdict == "not provable here"
    assert "warp 0 goes to lanes 32 to 63 of tensor memory" in found.diagnostics[0].message


def test_a_product_stays_within_the_lanes() -> None:
    """Its 128 rows begin at lane 16."""
    text = PRODUCT.replace("tcgen05_mma(d, p", "tcgen05_mma(D(d.address + (UInt32(16) << 16)), p")
    assert text != PRODUCT
    found = verdict(text, arch="sm_100a")
    assert found.kinds == ("stale stage index",)
    assert "128 lanes, and this goes to others" in found.diagnostics[0].message


def test_allocations_have_room_together() -> None:
    """Where they have not, one waits for another, here for ever; in the simulator it is a deadlock."""
    lines = SCOPE.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if "scope[body]" in line)
    more = """\
    var slot = unsafe_stack_allocation[1, UInt32, address_space=.SHARED]()
    if warp_id() == 0:
        tcgen05_alloc_row[1, 512](slot)
        tcgen05_fence_before()
    barrier()
    var first = TensorMemory[512](slot)
"""
    free = "    if warp_id() == 0:\n        first.free()\n"
    rows = "from tcgen05_instructions import tcgen05_alloc_row, tcgen05_fence_before\n"
    text = "".join([lines[0], rows, *lines[1:at], more, lines[at], free])
    found = verdict(text, arch="sm_100a")
    assert found.verdict == "not provable here"
    assert "the kernel allocates 544 columns of tensor memory, and there are 512" in found.diagnostics[0].message


def test_stores_are_waited_for() -> None:
    kinds, line, help = _found(PRODUCT, WAIT)
    assert (kinds, "tcgen05_mma(" in line) == (("undrained wgmma, bulk or cp.async read",), True)
    assert "tcgen05_store_wait()" in help
