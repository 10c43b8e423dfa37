"""What makes machine code of PTX: ptxas and the driver's own compiler give kernels that do the same."""

import weakref

import numpy as np
import pytest

import ptxdsl
from ptxdsl.backend import cubin_cache

# The second warpgroup can have its registers only when the first has given some away: what it does before that shows
# whether setmaxnreg has been dropped.
REGISTERS = """
from intrinsics import nanosleep, warpgroup_reg_alloc, warpgroup_reg_dealloc

@kernel(threads=256, max_registers=128)
def share(res: Pointer[Int32, MutAnyOrigin]):
    var flag = unsafe_stack_allocation[1, Int32, address_space=.SHARED, alignment=4]()
    if thread_idx.x == 0:
        flag[] = 0
    barrier()
    if thread_idx.x < 128:
        for _ in range(3000):
            nanosleep(1000)
        if thread_idx.x == 0:
            res[unsafe_offset=0] = inlined_assembly[
                "ld.volatile.shared.b32 $0, [$1];", Int32, constraints="=r,r", has_side_effect=True
            ](flag)
        warpgroup_reg_dealloc[24]()
    else:
        warpgroup_reg_alloc[232]()
        if thread_idx.x == 128:
            inlined_assembly["st.volatile.shared.b32 [$0], $1;", NoneType, constraints="r,r", has_side_effect=True](
                flag, Int32(1)
            )
    barrier()
    if thread_idx.x == 0:
        res[unsafe_offset=1] = flag[]
"""


def test_ptxas_keeps_setmaxnreg():
    compiled = ptxdsl.loads(REGISTERS)["share"].compile()
    assert "setmaxnreg" in compiled.ptx
    assert compiled.sass().count("USETMAXREG") == 2


@pytest.mark.device
@pytest.mark.parametrize("assembler", ["driver", "ptxas"])
def test_setmaxnreg_survives_loading(gpu, assembler, monkeypatch):
    monkeypatch.setenv("PTXDSL_ASSEMBLER", assembler)
    res = gpu.full((2,), -1, dtype=gpu.int32, device="cuda")
    ptxdsl.loads(REGISTERS, f"{assembler}.pdsl")["share"][1, 256](res, timeout=20)
    assert res.tolist() == [0, 1]


@pytest.mark.device
@pytest.mark.parametrize("assembler", ["driver", "ptxas", ""])
def test_both_give_kernels_that_do_the_same(gpu, assembler, monkeypatch, rng):
    monkeypatch.setenv("PTXDSL_ASSEMBLER", assembler)
    text = """
@kernel
def smooth(a: Pointer[Float32, ImmutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var i = Int32(global_idx.x)
    if i > 0 and i < n - 1:
        res[unsafe_offset=i] = (a[unsafe_offset=i - 1] + a[unsafe_offset=i] + a[unsafe_offset=i + 1]) / 3
"""
    values = rng.random(1000, np.float32)
    a, res = gpu.from_numpy(values).cuda(), gpu.zeros(1000, device="cuda")
    ptxdsl.loads(text, f"smooth_{assembler or 'auto'}.pdsl")["smooth"][8, 128](a, res, 1000)
    expected = (values[:-2] + values[1:-1] + values[2:]) / np.float32(3)
    assert np.allclose(res.cpu().numpy()[1:-1], expected, rtol=1e-6)


@pytest.mark.device
def test_the_second_process_assembles_nothing(gpu, monkeypatch, tmp_path):
    """Here: the second module, with an empty memory of the first."""
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PTXDSL_ASSEMBLER", "ptxas")
    real, made = cubin_cache.run_ptxas, []
    monkeypatch.setattr(cubin_cache, "run_ptxas", lambda *given: made.append(1) or real(*given))
    text = "@kernel\ndef one(res: Pointer[Int32, MutAnyOrigin]):\n    res[] = 1\n"
    for _ in range(2):
        res = gpu.zeros(1, dtype=gpu.int32, device="cuda")
        ptxdsl.loads(text, "one.pdsl")["one"][1, 1](res)
        assert res.item() == 1
    assert made == [1]


@pytest.mark.device
def test_a_kernel_is_unloaded_while_it_runs(gpu):
    """The call waits for it; the kernel's result is whole, and its next launch loads it again."""
    text = """
from intrinsics import nanosleep

@kernel
def slow(res: Pointer[Int32, MutAnyOrigin], times: Int32):
    var done = Int32(0)
    for _ in range(times):
        nanosleep(1000)
        done += 1
    res[unsafe_offset=block_idx.x] = done
"""
    module = ptxdsl.loads(text)
    for _ in range(3):
        res = gpu.zeros(64, dtype=gpu.int32, device="cuda")
        module.slow[64, 1](res, 20000)
        code = module.slow.load().function.code
        gone = weakref.ref(code)
        del code
        module.unload()
        assert gone() is None
        assert res.tolist() == [20000] * 64
