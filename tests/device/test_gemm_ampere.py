"""The product by mma.sync of the samples: tiles whole and ragged, one tile and many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxdsl

SAMPLE = Path(__file__).parents[2] / "samples" / "09_gemm_ampere.pdsl"


def bfloat16(values):
    """The nearest, as bits."""
    bits = values.astype(np.float32).view(np.uint32)
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)


def wide(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("shape", [(128, 128, 32), (8, 8, 8), (129, 136, 72), (260, 264, 104)], ids=str)
def test_products(shape, dtype, place, launch, rng):
    m, n, k = shape
    a, b = (rng.standard_normal(lines).astype(np.float16) for lines in ((m, k), (n, k)))
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    if dtype == "bfloat16":
        a, b = bfloat16(a), bfloat16(b)
        exact = wide(a).astype(np.float64) @ wide(b).astype(np.float64).T
    whole = place.array(np.full(m * n + 256, 99, a.dtype))
    kernel = ptxdsl.load(SAMPLE)["gemm"].specialize(T=f"DType.{dtype}")
    arrays = [place.array(a), place.array(b), whole]
    if dtype == "bfloat16":
        arrays = [place.typed(array, "BFloat16") for array in arrays]
    launch(kernel, 5, 128, *arrays, m, n, k, smem=3 * 256 * 64, arch=place.arch(["sm_80", "sm_90a"]))
    found = place.host(whole)
    assert (found[m * n :] == 99).all()
    c = found[: m * n].reshape(m, n)
    np.testing.assert_allclose(wide(c) if dtype == "bfloat16" else c.astype(np.float64), exact, rtol=2**-8, atol=2**-8)
