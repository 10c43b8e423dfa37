"""Exact functions of a float's exponent and digits: the PTX that they become, in the simulator, bit for bit NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl

BLOCK = 256
TYPES = {"Float32": (np.float32, np.uint32), "Float64": (np.float64, np.uint64)}


def evaluate(expression: str, type: str, second: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    kernel = ptxdsl.loads(
        "from math import fmod, ldexp, nextafter\n\n@kernel\n"
        f"def k(a: Pointer[{type}], b: Pointer[{second}], c: Pointer[{type}, MutAnyOrigin]):\n"
        "    var x = a[unsafe_offset=global_idx.x]\n    var y = b[unsafe_offset=global_idx.x]\n"
        f"    c[unsafe_offset=global_idx.x] = {expression}\n"
    ).k
    size = -(-len(x) // BLOCK) * BLOCK
    result = np.empty(size, x.dtype)
    kernel[size // BLOCK, BLOCK](np.resize(x, size), np.resize(y, size), result, target="sim")
    return result[: len(x)]


def numbers(type: str) -> tuple[np.ndarray, np.ndarray]:
    """Pairs: of special ones, of every exponent, and near to one another."""
    dtype, integer = TYPES[type]
    info, rng = np.finfo(dtype), np.random.default_rng(6)
    special = [0, 1, 1.5, 2, 3, info.tiny, info.tiny * 1.5, info.smallest_subnormal, info.max, np.inf, np.nan]
    signed = np.array([*special, *(-value for value in special)], dtype)
    pairs = [values.ravel() for values in np.meshgrid(signed, signed)]
    any_bits = rng.integers(0, np.iinfo(integer).max, (2, 3000), dtype=integer).view(dtype)
    near = rng.uniform(-1e6, 1e6, 3000).astype(dtype), rng.uniform(-10, 10, 3000).astype(dtype)
    x, y = (np.concatenate([pairs[i], any_bits[i], near[i], any_bits[i]]) for i in (0, 1))
    with np.errstate(invalid="ignore"):
        y[-1000:] = np.nextafter(x[-1000:], dtype(0))
    return x, y


def same(got: np.ndarray, want: np.ndarray) -> bool:
    """Every bit of numbers, the sign of zeros as well."""
    number = ~np.isnan(want)
    return np.array_equal(np.isnan(got), ~number) and got[number].tobytes() == want[number].tobytes()


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", ["fmod", "nextafter"])
def test_functions_of_two_floats(name, type):
    x, y = numbers(type)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    assert same(evaluate(f"{name}(x, y)", type, type, x, y), want)


@pytest.mark.parametrize("type", TYPES)
def test_scaling_rounds_once(type):
    x, _ = numbers(type)
    rng = np.random.default_rng(7)
    most = 2 * -np.finfo(x.dtype).minexp + 200
    n = rng.integers(-most, most, len(x)).astype(np.int32)
    _, exponents = np.frexp(x)
    to_subnormal = np.finfo(x.dtype).minexp - exponents - rng.integers(0, 60, len(x))
    n[::2] = to_subnormal[::2]
    n[:4], x[:4] = [2**31 - 1, -(2**31), 2**31 - 1, -(2**31)], [1, 1, 0, np.inf]
    with np.errstate(all="ignore"):
        want = np.ldexp(x, n)
    assert same(evaluate("ldexp(x, y)", type, "Int32", x, n), want)


def test_a_vector_goes_lane_by_lane():
    expression = "ldexp(SIMD[DType.float32, 2](x, y), SIMD[DType.int32, 2](1, 2))[1] + fmod(x, 2.0) + nextafter(x, x)"
    got = evaluate(expression, "Float32", "Float32", np.array([5.5], np.float32), np.array([3.0], np.float32))
    assert got[0] == 12 + 1.5 + 5.5
