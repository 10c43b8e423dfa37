"""C = A · Bᵀ in Triton, by tensor descriptors, tuned over four configurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def _boxes(arguments: dict[str, Any]) -> None:
    """The descriptors' boxes, which are the tuned configuration's."""
    for name, rows in (("a", "BM"), ("b", "BN")):
        arguments[name].block_shape = [arguments[rows], arguments["BK"]]
    arguments["c"].block_shape = [arguments["BM"], arguments["BN"]]


_CONFIGURATIONS = [
    triton.Config(
        {"BM": bm, "BN": bn, "BK": 64, "GROUP": 8}, num_warps=warps, num_stages=stages, pre_hook=_boxes
    )
    for bm, bn, warps, stages in ((128, 256, 8, 3), (128, 256, 8, 4), (128, 128, 4, 4), (64, 256, 4, 4))
]  # fmt: skip


@triton.autotune(configs=_CONFIGURATIONS, key=["m", "n", "k"])
@triton.jit
def _product(
    a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):  # fmt: skip
    rows, cols = tl.cdiv(m, BM), tl.cdiv(n, BN)
    tile = tl.program_id(0)
    above = tile // (GROUP * cols) * GROUP
    height = min(rows - above, GROUP)
    m0 = (above + tile % (GROUP * cols) % height) * BM
    n0 = tile % (GROUP * cols) // height * BN
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, k, BK):
        sums = tl.dot(a.load([m0, k0]), b.load([n0, k0]).T, sums)
    c.store([m0, n0], sums.to(tl.bfloat16))


def prepared(a: Any, b: Any, c: Any) -> Callable[[], None]:
    """A launch of C = A · Bᵀ, tuned by the first call."""
    (m, k), n = a.shape, b.shape[0]
    given = [TensorDescriptor.from_tensor(array, [1, 64]) for array in (a, b, c)]

    def run() -> None:
        _product[lambda chosen: (triton.cdiv(m, chosen["BM"]) * triton.cdiv(n, chosen["BN"]),)](*given, m, n, k)

    return run
