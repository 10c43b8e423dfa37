"""Mojo's spellings compile, older ones that it still takes too. What it refuses: rejected/mojo_subset.pdsl."""

from __future__ import annotations

import pytest
from elaborate_support import diagnostics

HEAD = """
from max.gpu import barrier, thread_idx
from max.gpu.sync import named_barrier
from max.gpu.memory import AddressSpace
from max.gpu.primitives.warp import shuffle_down
from std.memory import unsafe_stack_allocation, stack_allocation
from std.math import ceildiv
from layout.tma_async import SharedMemBarrier
from nn.attention.gpu.nvidia.sm100.attention_utils import RolePipeline

struct WithOrigin[o: MutOrigin](TrivialRegisterPassable):
    var p: Pointer[Int32, Self.o]

    def __init__(out self, p: Pointer[Int32, Self.o]):
        self.p = p

struct Untracked(TrivialRegisterPassable):
    var p: Pointer[Int32, MutUntrackedOrigin]
    var q: Pointer[Int32, MutAnyOrigin]

    def __init__(out self, p: Pointer[Int32, MutUntrackedOrigin], q: Pointer[Int32, MutAnyOrigin]):
        self.p = p
        self.q = q

comptime P3 = RolePipeline[3, True]

def step_it[S: Int, //](mut p: RolePipeline[S, True]):
    p.step()

def all_five[s: Int, r: Bool, a: Int, b: Int, g: Int, //](mut p: RolePipeline[s, r, a, b, g]) -> Int:
    p.step()
    return s + a + b + g

def any_space[space: AddressSpace, //](p: Pointer[Int32, MutAnyOrigin, address_space=space]) -> Int32:
    return p[]

@kernel
def k(p: Pointer[Int32, MutAnyOrigin], f: Pointer[Float32, MutAnyOrigin], n: Int32):
    var m = unsafe_stack_allocation[8, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    var s = unsafe_stack_allocation[8, Int32, address_space=AddressSpace.SHARED]()
    var pipe = P3(m.unsafe_origin_cast[MutAnyOrigin](), m.unsafe_offset(3).unsafe_origin_cast[MutAnyOrigin]())
"""

COMPILES = [
    "p[unsafe_offset=n] = p.unsafe_offset(2)[]",
    "var v = f.unsafe_load[width=8, alignment=16](8)\nf.unsafe_store[alignment=16](16, v)",
    "p[3] = (p + 1)[]",
    "f.store(0, f.load[width=4](4))",
    "var a = stack_allocation[4, Int32, address_space=AddressSpace.SHARED]()\na[0] = 1",
    "var a = Array[Int32, 4](fill=n)\np[] = a[2]",
    "var w = WithOrigin(p)\nw.p[] = 3",
    "var u = Untracked(p.unsafe_origin_cast[MutUntrackedOrigin](), p)\nu.q[] = 1",
    "step_it(pipe)\np[] = Int32(all_five(pipe))",
    "p[] = any_space(p) + any_space(s.unsafe_origin_cast[MutAnyOrigin]())",
    "barrier()\nnamed_barrier[64](2)\nnamed_barrier_arrive[64](Int32(3))",
    "m[].init(1)\nm[].init(Int32(32 if n > 3 else 1))\nm[unsafe_offset=1].expect_bytes(64)",
    "_ = m[].arrive()\nm[].wait(UInt32(0))",
    "p[] = Int32(thread_idx.x) + Int32(lane_id()) + Int32(warp_id())",
    "var x: Int = thread_idx.x + lane_id() + warp_id() + block_idx.x",
    "var x: UInt32 = pipe.state.index() + pipe.state.phase()",
    "f[] = f[unsafe_offset=1] * f[unsafe_offset=2] + 1.5",
    "def add(x: Int32) -> Int32:\n    return x + n\np[] = add(3)",
    "p[] = ceildiv(n, 32)",
    "p[] = shuffle_down(n, 16)",
    "for i in range(n):\n    p[i] = 0\nelse:\n    p[] = 1",
    "var ptr = rebind[Pointer[Int32, MutAnyOrigin]](p)\nptr[] = 2",
    "var x = n^\np[] = x",
]


@pytest.mark.parametrize("body", COMPILES)
def test_compiles(body: str) -> None:
    assert diagnostics(HEAD + "".join(f"    {line}\n" for line in body.splitlines())) == []
