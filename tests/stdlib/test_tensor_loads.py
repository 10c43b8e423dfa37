"""What tcgen05.ld reads is in its registers after tcgen05.wait::ld, and no PTX of ours touches them before."""

from pathlib import Path

import pytest

from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.ptx.liveness import all_registers, register_names
from ptxdsl.ptx.module import Instruction
from ptxdsl.ptx.reader import read
from ptxdsl.source import Source
from ptxdsl.syntax.parse import read_source

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "10_gemm_blackwell.pdsl"
USES = ROOT / "tests" / "stdlib" / "use" / "tensor_core_products.pdsl"
HASTY = """
from tcgen05 import TensorAccumulator, TensorMemory, tcgen05_load_wait

@kernel(threads=128)
def kernel(res: Pointer[Float32, MutAnyOrigin]):
    def body(tensor: TensorMemory[32]):
        var x = tensor.matrix[TensorAccumulator[DType.float32, 128, 32], 0]().load[0, 32]()
        res[unsafe_offset=thread_idx.x] = x._value[0][0]
        var y = tcgen05_load_wait(x)
        res[unsafe_offset=thread_idx.x] = y[0]
    TensorMemory[32].scope[body]()
"""


def touched_early(source: Source, kernel: str | None = None, **constants: str) -> list[str]:
    """Instructions, in the order of the text, that name a register between the load that writes it and the wait."""
    found, loads = [], 0
    compiled = compile_source(source, kernel=kernel, constants=constants, options=Options("sm_100a", check="off"))
    for body in (kernel.body for kernel in read(compiled.ptx).kernels.values()):
        under_way: set[str] = set()
        for item in body:
            if not isinstance(item, Instruction):
                continue
            if item.opcode.startswith("tcgen05.wait::ld"):
                under_way.clear()
            elif not under_way.isdisjoint(all_registers(item)):
                found.append(item.opcode)
            if item.opcode.startswith("tcgen05.ld"):
                loads += 1
                under_way.update(register_names(item.operands[0]))
        assert not under_way, "a wait comes after every load"
    assert loads > 0
    return found


@pytest.mark.parametrize(("kernel", "ctas"), [("gemm", "1"), ("gemm_scaled", "2")])
def test_the_sample(kernel, ctas):
    assert touched_early(read_source(SAMPLE, SAMPLE.name), kernel, CTAS=ctas) == []


def test_the_library():
    assert touched_early(read_source(USES, USES.name)) == []


def test_a_hasty_kernel():
    assert touched_early(Source("hasty.pdsl", HASTY)) != []
