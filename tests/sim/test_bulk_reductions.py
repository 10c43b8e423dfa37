"""Bulk copies that combine: every operation and type, through the standard library, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl.api.module import Module
from ptxdsl.options import Options
from ptxdsl.source import Source

KERNEL = """
@kernel(threads=32)
def combine[T: DType, OP: StaticString](src: Pointer[Scalar[T], MutAnyOrigin], res: Pointer[Scalar[T], MutAnyOrigin]):
    var buf = unsafe_stack_allocation[32, Scalar[T], address_space=.SHARED, alignment=16]()
    buf[unsafe_offset=thread_idx.x] = src[unsafe_offset=thread_idx.x]
    fence_proxy_async[AddressSpace.SHARED]()
    syncwarp()
    if thread_idx.x == 0:
        cp_reduce_async_bulk_global_shared_cta[OP](res, buf, Int32(32 * T.size_of()))
        cp_async_bulk_commit_group()
        cp_async_bulk_wait_group[0, read=False]()
"""
MODULE = Module(Source("combine.pdsl", KERNEL), Options("sm_90a"))

OF_INTEGERS = {"add": np.add, "min": np.minimum, "max": np.maximum}
OF_BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
COUNTERS = {  # of atom: up to a limit and again from 0, down from a limit
    "inc": lambda old, limit: np.where(old >= limit, 0, old + 1),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - 1),
}
TYPES = {
    "int32": OF_INTEGERS | OF_BITS, "uint32": OF_INTEGERS | OF_BITS | COUNTERS, "int64": OF_INTEGERS | OF_BITS,
    "uint64": OF_INTEGERS | OF_BITS, "float16": OF_INTEGERS, "float32": {"add": np.add}, "float64": {"add": np.add},
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "operation"), [(t, op) for t, operations in TYPES.items() for op in operations])
def test_combined(dtype, operation):
    rng = np.random.default_rng(7)
    src, res = (rng.integers(0, 50, 32).astype(dtype) for _ in range(2))
    if np.dtype(dtype).kind == "i":
        src, res = src - 25, res - 25
    want = TYPES[dtype][operation](res, src).astype(dtype)
    report = MODULE.combine.specialize(T=f"DType.{dtype}", OP=f'"{operation}"').simulate(src, res, grid=1, block=32)
    assert report.finished, report.render()
    assert np.array_equal(res, want)


@pytest.mark.parametrize(("operation", "of"), OF_INTEGERS.items())
def test_combined_bfloat16(operation, of):
    numbers = np.arange(-16, 16, dtype=np.float32)  # sums of small integers are exact
    bits = [(n.view(np.uint32) >> 16).astype(np.uint16) for n in (numbers, numbers[::-1].copy())]
    want = of(numbers[::-1], numbers)
    made = MODULE.combine.specialize(T="DType.bfloat16", OP=f'"{operation}"')
    assert made.simulate(*bits, grid=1, block=32).finished
    assert np.array_equal((bits[1].astype(np.uint32) << 16).view(np.float32), want)
