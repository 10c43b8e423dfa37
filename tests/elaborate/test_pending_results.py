"""Pending results that nobody takes: errors at the call; others are no errors."""

from __future__ import annotations

import pytest

from ptxdsl.diagnostics import CompileError
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.source import Source

HOPPER = """
from layout import SharedTile
from pending import Pending
from wgmma import WGMMAAccumulator, wgmma_async, wgmma_wait_group_sync

comptime Tile = SharedTile[DType.float16, 64, 64]

@kernel(threads=128)
def k(res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var t = Tile(stack_allocation[Tile.bytes, UInt8, address_space=.SHARED, alignment=1024]())
    var acc = Pending(WGMMAAccumulator[DType.float32, 64, 64]())
{}
    res[] = wgmma_wait_group_sync[0](acc)[0]
"""
BLACKWELL = """
from tcgen05 import TensorAccumulator, TensorMemory, tcgen05_load_wait

@kernel(threads=128)
def k(res: Pointer[Float32, MutAnyOrigin]):
    def body(tensor: TensorMemory[128]):
        var d = tensor.matrix[TensorAccumulator[DType.float32, 128, 128], 0]()
        {}
    TensorMemory[128].scope[body]()
"""
PRODUCT = "wgmma_async(t, t, acc)"


def said(text: str, arch: str) -> list[tuple[str, int, int]]:
    try:
        compile_source(Source("kernel.pdsl", text), options=Options(arch=arch, check="off"), stop="tir")
    except CompileError as problem:
        return [(d.code, d.span.line, d.span.column) for d in problem.diagnostics if d.span is not None]
    return []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (PRODUCT, ("E0352", 12, 5)),
        (f"var other = {PRODUCT}", ("E0352", 12, 17)),
        (f"for _ in range(n):\n        {PRODUCT}", ("E0352", 13, 9)),
        (f"if n > 3:\n        {PRODUCT}", ("E0352", 13, 9)),
        (f"acc = {PRODUCT}\n    var more = {PRODUCT}", ("E0352", 13, 16)),
    ],
    ids=["dropped", "in a variable", "in a loop", "in a branch", "of a product that is used"],
)
def test_a_product_that_nobody_takes(body: str, expected: tuple[str, int, int]) -> None:
    assert said(HOPPER.format("    " + body), "sm_90a") == [expected]


@pytest.mark.parametrize(
    "body",
    [
        f"acc = {PRODUCT}",
        f"for _ in range(n):\n        acc = {PRODUCT}",
        f"if n > 3:\n        acc = {PRODUCT}",
        f"_ = wgmma_wait_group_sync[0]({PRODUCT})",
    ],
)
def test_a_product_that_is_waited_for(body: str) -> None:
    assert said(HOPPER.format("    " + body), "sm_90a") == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [("_ = d.load[0, 32]()", [("E0352", 8, 13)]), ("_ = tcgen05_load_wait(d.load[0, 32]())", [])],
)
def test_loads_from_tensor_memory(body: str, expected: list[tuple[str, int, int]]) -> None:
    assert said(BLACKWELL.format(body), "sm_100a") == expected
