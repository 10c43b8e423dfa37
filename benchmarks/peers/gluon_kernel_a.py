"""Kernel A in Triton's Gluon: from Python to PTX without a GPU. compile_time.py runs it where Triton is installed.

python benchmarks/peers/gluon_kernel_a.py OUT.ptx [REPEATS]     REPEATS: recompile in the process, print seconds
"""

import os
import sys
import tempfile
import time

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="gluon-cache-"))

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

STAGES = gl.constexpr(3)


@gluon.jit
def consumer(src, res, n, buf, full, empty):
    lanes: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    lane = gl.arange(0, 32, layout=lanes)
    index = 0
    phase = 0
    for i in range(n):
        mbarrier.wait(full.index(index), phase)
        gl.store(res + i * 32 + lane, buf.index(index).load(lanes))
        mbarrier.arrive(empty.index(index), count=1)
        index += 1
        wrapped = index == STAGES
        index = gl.where(wrapped, 0, index)
        phase = gl.where(wrapped, phase ^ 1, phase)


@gluon.jit
def producer(src, res, n, buf, full, empty):
    lanes: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    lane = gl.arange(0, 32, layout=lanes)
    index = 0
    phase = 1
    for i in range(n):
        mbarrier.wait(empty.index(index), phase)
        buf.index(index).store(gl.load(src + i * 32 + lane))
        mbarrier.arrive(full.index(index), count=1)
        index += 1
        wrapped = index == STAGES
        index = gl.where(wrapped, 0, index)
        phase = gl.where(wrapped, phase ^ 1, phase)


@gluon.jit
def kernel_a(src, res, n):
    tile: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, order=[0])
    buf = gl.allocate_shared_memory(gl.float32, [STAGES, 32], tile)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    gl.warp_specialize(
        [(consumer, (src, res, n, buf, full, empty)), (producer, (src, res, n, buf, full, empty))], [4], [24]
    )


def compile_once() -> str:
    source = GluonASTSource(kernel_a, {"src": "*fp32", "res": "*fp32", "n": "i32"})
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    return str(made.asm["ptx"])


if __name__ == "__main__":
    text = compile_once()
    with open(sys.argv[1], "w") as out:
        out.write(text)
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 0):
        os.environ["TRITON_ALWAYS_COMPILE"] = "1"
        start = time.perf_counter()
        compile_once()
        print(time.perf_counter() - start)
