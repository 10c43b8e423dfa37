"""The code in the docstrings of the library: it compiles in a kernel, and the checker has nothing against it."""

import textwrap

import pytest
from blocks import ROOT

from ptxdsl.command.findings import findings
from ptxdsl.driver import Job
from ptxdsl.options import Options
from ptxdsl.source import Source

BARRIER = """
    var bar = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
    if thread_idx.x == 0:
        bar[].init(1)
        fence_mbarrier_init()
    barrier()
"""
# by module: a kernel around its code, and the target
FRAMES = {
    "cluster_launch_control": (
        "sm_100a",
        f"""
from cluster_launch_control import clusterlaunchcontrol_query_cancel, clusterlaunchcontrol_try_cancel

@kernel(threads=64)
def kernel(res: Pointer[UInt32, MutAnyOrigin]):{BARRIER}    var phase = UInt32(0)
{{code}}
        phase ^= 1
""",
    ),
    "scheduler": (
        "sm_90a",
        """
from scheduler import PersistentTiles

@kernel(threads=64)
def kernel(res: Pointer[UInt32, MutAnyOrigin], tiles: UInt32):
    var work = PersistentTiles[1](tiles)
{code}
""",
    ),
    "tensor_memory": (
        "sm_100a",
        """
from tcgen05 import TensorAccumulator, TensorMemory

@kernel(threads=128)
def kernel():
{code}
""",
    ),
    "tcgen05": (
        "sm_100a",
        """
from layout import SharedTile, dynamic_shared
from tcgen05 import TensorAccumulator, TensorMemory, mma_arrive, tcgen05_mma

@kernel(threads=256)
def kernel(bars: Int32):
    var a_tile = SharedTile[DType.bfloat16, 128, 64](dynamic_shared[65536]())
    var b_tile = SharedTile[DType.bfloat16, 256, 64](dynamic_shared[65536]().unsafe_offset(16384))
    var bar = unsafe_stack_allocation[4, SharedMemBarrier, address_space=.SHARED]()
    var pipe = RolePipeline[1, False](bar, bar.unsafe_offset(1))
    var results = RolePipeline[1, True](bar.unsafe_offset(2), bar.unsafe_offset(3))
    def body(tensor: TensorMemory[256]):
        var d = tensor.matrix[TensorAccumulator[DType.float32, 128, 256], 0]()
        if warp_id() == 0:
{code}
    TensorMemory[256].scope[body]()
""",
    ),
    "wgmma": (
        "sm_90a",
        """
from layout import SharedTile, dynamic_shared
from pending import Pending
from wgmma import WGMMAAccumulator, wgmma_async, wgmma_commit_group_sync, wgmma_fence_aligned, wgmma_wait_group_sync

@kernel(threads=128)
def kernel(res: Pointer[Float32, MutAnyOrigin]):
    var a_tile = SharedTile[DType.bfloat16, 64, 64](dynamic_shared[65536]())
    var b_tile = SharedTile[DType.bfloat16, 256, 64](dynamic_shared[65536]().unsafe_offset(8192))
{code}
    res[unsafe_offset=thread_idx.x] = d[0]
""",
    ),
}
# what is said of frames that have one role, and tiles that nobody loads
UNFED = {"tcgen05": ["E1205"], "wgmma": ["E1207"]}


def code_of(module: str) -> str:
    """What is indented in the docstring at the head of a module."""
    docstring = (ROOT / "stdlib" / f"{module}.pdsl").read_text(encoding="utf-8").split('"""')[1]
    paragraphs = [p.strip("\n") for p in docstring.split("\n\n")]
    indented = [p for p in paragraphs if all(line.startswith("    ") for line in p.splitlines())]
    return textwrap.dedent("\n\n".join(indented)).replace("...", "pass")


def test_every_module_with_code_has_a_frame() -> None:
    modules = {path.stem for path in (ROOT / "stdlib").glob("*.pdsl")}
    with_docstring = {m for m in modules if (ROOT / "stdlib" / f"{m}.pdsl").read_text().startswith('"""')}
    assert {m for m in with_docstring if code_of(m)} == set(FRAMES)


@pytest.mark.parametrize("module", FRAMES)
def test_example(module: str) -> None:
    arch, frame = FRAMES[module]
    indent = 12 if module == "tcgen05" else 4
    text = frame.replace("{code}", textwrap.indent(code_of(module), " " * indent))
    found, verdicts = findings(Job(Source("example.pdsl", text), options=Options(arch=arch)))
    assert [d.code for d in found] == UNFED.get(module, []), [d.render(False) for d in found]
    assert module in UNFED or {v.verdict for v in verdicts} <= {"proved"}
