"""Divisors, multiples, products and closeness: what Mojo 1.2's `math` gives for the same calls."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ptxdsl

KERNEL = """
from math import factorial, gcd, isclose, lcm

@kernel(threads=1)
def k(
    m: Int32, n: Int32, x: Float32, y: Float32, ints: Pointer[Int32, MutAnyOrigin], close: Pointer[Bool, MutAnyOrigin]
):
    ints[unsafe_offset=0] = gcd(m, n)
    ints[unsafe_offset=1] = lcm(m, n)
    ints[unsafe_offset=2] = Int32(gcd(Int(m), Int(n)))
    ints[unsafe_offset=3] = Int32(lcm(Int(m), Int(n)))
    ints[unsafe_offset=4] = Int32(factorial(Int(m)))
    close[unsafe_offset=0] = isclose(x, y)
    close[unsafe_offset=1] = isclose(x, y, atol=0, rtol=0.14)
    close[unsafe_offset=2] = isclose[symmetrical=False](x, y, atol=0, rtol=0.14)
    close[unsafe_offset=3] = isclose(x, y, equal_nan=True)
"""


@pytest.fixture(scope="module")
def run():
    kernel = ptxdsl.loads(KERNEL, "integers.pdsl").k

    def of(m=0, n=0, x=0.0, y=0.0):
        ints, close = np.zeros(5, np.int32), np.zeros(4, bool)
        kernel[1, 1](m, n, x, y, ints, close, target="sim")
        return ints.tolist(), close.tolist()

    return of


@pytest.mark.parametrize(("m", "n"), [(0, 0), (0, -5), (12, 18), (-12, 18), (-4, -6), (7, 13), (2**20, 768), (9, 0)])
def test_divisors_and_multiples(m, n, run):
    ints, _ = run(m, n)
    assert ints[:2] == ints[2:4] == [math.gcd(m, n), math.lcm(m, n)]


def test_factorials(run):
    assert [run(m)[0][4] for m in range(13)] == [math.factorial(m) for m in range(13)]


NAN, INF = math.nan, math.inf
CLOSE = [
    (1, 1, [True, True, True, True]),
    (1, 1.15, [False, True, True, False]),
    (1.15, 1, [False, True, False, False]),
    (0, 1e-9, [True, False, False, True]),
    (1, 1.000005, [True, True, True, True]),
    (NAN, NAN, [False, False, False, True]),
    (1, NAN, [False, False, False, False]),
    (INF, INF, [True, True, True, True]),
    (INF, -INF, [False, False, False, False]),
    (INF, 1, [False, False, False, False]),
]


@pytest.mark.parametrize(("x", "y", "expected"), CLOSE)
def test_what_is_close(x, y, expected, run):
    assert run(x=x, y=y)[1] == expected
