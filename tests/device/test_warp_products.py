"""Products of a warp through the library, of every type, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxdsl
from ptxdsl.sim import numbers

KERNELS = ptxdsl.load(Path(__file__).with_name("warp_products.pdsl"))
# the names of types in the language
DTYPES = {
    "bf16": "bfloat16", "f16": "float16", "tf32": "float32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
    "s8": "int8", "u8": "uint8",
}  # fmt: skip
SIZES = {"tf32": 4, "f16": 2, "bf16": 2}


def operand(rng, type, rows, bytes):
    """Small whole numbers of a type, their words, and their values."""
    shape = rows, bytes // SIZES.get(type, 1)
    values = rng.integers(0 if type == "u8" else -3, 4, shape).astype(np.float32)
    codes = (
        values.astype({"u8": np.uint8, "s8": np.int8}[type]) if type in ("u8", "s8") else numbers.encode(values, type)
    )
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
def test_products(a, b, d, bytes, place, launch, rng):
    (left, a_values), (right, b_values) = operand(rng, a, 16, bytes), operand(rng, b, 8, bytes)
    before = rng.integers(-9, 10, (16, 8)).astype(d)
    sums = place.array(before)
    constants = {"A": f"DType.{DTYPES[a]}", "B": f"DType.{DTYPES[b]}", "D": f"DType.{d}", "WORDS": bytes // 4}
    arch = "sm_89" if a in ("e4m3", "e5m2") else "sm_80"
    launch(KERNELS["product"].specialize(**constants), 1, 32, place.array(left), place.array(right), sums, arch=arch)
    np.testing.assert_array_equal(place.host(sums).astype(float), a_values @ b_values.T + before)


@pytest.mark.parametrize("saturate", [False, True])
def test_sums_that_saturate(saturate, place, launch):
    left, right = (place.array(np.full((rows, 32), 127, np.int8).view(np.uint32)) for rows in (16, 8))
    sums = place.array(np.full((16, 8), 2**31 - 5, np.int32))
    constants = {"A": "DType.int8", "B": "DType.int8", "D": "DType.int32", "WORDS": 8, "SATURATE": saturate}
    launch(KERNELS["product"].specialize(**constants), 1, 32, left, right, sums, arch="sm_80")
    assert (place.host(sums) == (2**31 - 1 if saturate else 2**31 - 5 + 32 * 127**2 - 2**32)).all()


def test_products_of_doubles(place, launch, rng):
    a, b, before = rng.standard_normal((8, 4)), rng.standard_normal((8, 4)), rng.standard_normal((8, 8))
    d = place.array(before)
    launch(KERNELS["doubles"], 1, 32, place.array(a), place.array(b), d, arch="sm_80")
    np.testing.assert_allclose(place.host(d), a @ b.T + before, rtol=1e-14, atol=1e-14)
