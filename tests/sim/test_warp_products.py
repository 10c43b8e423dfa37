"""Products of a warp through the library, of every type, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_tensor_core_library import DTYPES

import ptxdsl
from ptxdsl.sim import numbers

KERNELS = ptxdsl.load(Path(__file__).with_name("warp_products.pdsl"))


def operand(rng, type, rows, bytes):
    """Small whole numbers of a type, their bytes, and their values."""
    size = {"tf32": 4, "f16": 2, "bf16": 2}.get(type, 1)
    values = rng.integers(0 if type == "u8" else -3, 4, (rows, bytes // size)).astype(np.float32)
    codes = values.astype({"u8": np.uint8, "s8": np.int8}[type]) if type[1:] == "8" else numbers.encode(values, type)
    return np.ascontiguousarray(codes).view(np.uint32), values.astype(np.float64)


@pytest.mark.parametrize(
    ("a", "b", "d", "bytes"),
    [
        ("bf16", "bf16", "float32", 32), ("f16", "f16", "float32", 32), ("f16", "f16", "float16", 32),
        ("bf16", "bf16", "float32", 16), ("f16", "f16", "float16", 16), ("tf32", "tf32", "float32", 32),
        ("tf32", "tf32", "float32", 16), ("e4m3", "e5m2", "float32", 32), ("e5m2", "e5m2", "float32", 32),
        ("s8", "s8", "int32", 32), ("u8", "s8", "int32", 32), ("s8", "u8", "int32", 16), ("u8", "u8", "int32", 16),
    ],
)  # fmt: skip
def test_products(a, b, d, bytes):
    rng = np.random.default_rng(bytes)
    (left, a_values), (right, b_values) = operand(rng, a, 16, bytes), operand(rng, b, 8, bytes)
    sums = rng.integers(-9, 10, (16, 8)).astype(d)
    expected = a_values @ b_values.T + sums
    constants = {"A": f"DType.{DTYPES[a]}", "B": f"DType.{DTYPES[b]}", "D": f"DType.{d}", "WORDS": bytes // 4}
    kernel = KERNELS["product"].specialize(**constants)
    report = kernel.simulate(left, right, sums, grid=1, block=32, arch="sm_89" if a[0] == "e" else "sm_80")
    assert report.finished, report.render()
    np.testing.assert_array_equal(sums.astype(float), expected)


@pytest.mark.parametrize("saturate", [False, True])
def test_sums_that_saturate(saturate):
    left, right = np.full((16, 32), 127, np.int8).view(np.uint32), np.full((8, 32), 127, np.int8).view(np.uint32)
    sums = np.full((16, 8), 2**31 - 5, np.int32)
    constants = {"A": "DType.int8", "B": "DType.int8", "D": "DType.int32", "WORDS": 8, "SATURATE": saturate}
    report = KERNELS["product"].specialize(**constants).simulate(left, right, sums, grid=1, block=32, arch="sm_80")
    assert report.finished, report.render()
    assert (sums == (2**31 - 1 if saturate else 2**31 - 5 + 32 * 127**2 - 2**32)).all()


def test_products_of_doubles():
    rng = np.random.default_rng(8)
    a, b, d = rng.standard_normal((8, 4)), rng.standard_normal((8, 4)), rng.standard_normal((8, 8))
    expected = a @ b.T + d
    report = KERNELS["doubles"].simulate(a, b, d, grid=1, block=32, arch="sm_80")
    assert report.finished, report.render()
    np.testing.assert_allclose(d, expected, rtol=1e-14, atol=1e-14)
