"""Approximate functions: within the bounds that the ISA states, and the values that it lists for special operands."""

import math

import numpy as np
import pytest
from encoding import encode
from lane_arrays import one

from ptxdsl.sim.numbers import decode

NAN = 0x7FFFFFFF


def spread(low, high, count=20000):
    rng = np.random.default_rng(3)
    if low > 0:
        return np.exp(rng.uniform(math.log(low), math.log(high), count)).astype(np.float32)
    return rng.uniform(low, high, count).astype(np.float32)


# function: (reference, low, high, greatest relative error, greatest absolute error); the ISA's, or less
FUNCTIONS = {
    "rcp": (lambda x: 1 / x, 1e-38, 1e38, 2.0**-23, 0),
    "sqrt": (np.sqrt, 1e-38, 3e38, 2.0**-23, 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-38, 3e38, 2.0**-23, 0),
    "ex2": (np.exp2, -125.9, 127.9, 2.0**-23.9, 0),
    "lg2": (np.log2, 1e-37, 3e38, 2.0**-23.9, 2.0**-60),
    "sin": (np.sin, -math.pi, math.pi, 0, 2.0**-20.5),
    "cos": (np.cos, -math.pi, math.pi, 0, 2.0**-20.5),
    "tanh": (np.tanh, -12.0, 12.0, 2.0**-23.9, 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors(name):
    reference, low, high, relative, absolute = FUNCTIONS[name]
    x = spread(low, high)
    found = one(f"{name}.approx.f32", x, result="f32").astype(np.float64)
    exact = reference(x.astype(np.float64))
    excess = np.abs(found - exact) - relative * np.abs(exact) - absolute
    assert excess.max() <= 0, f"{name}({x[excess.argmax()]!r}) = {found[excess.argmax()]!r}"


def test_ends_of_the_range():
    x = np.float32([-149, -150, -151, -126.5, 127.99999, 128, 1e30, -1e30])
    with np.errstate(over="ignore", under="ignore"):
        exact = np.exp2(x.astype(np.float64))
        assert np.array_equal(one("ex2.approx.f32", x, result="f32"), exact.astype(np.float32))
    flushed = one("ex2.approx.ftz.f32", x, result="f32")
    assert list(flushed[:4]) == [0, 0, 0, 0] and flushed[4] > 3e38
    tiny = np.float32([2.0**-149, 2.0**-130, 2.0**-126, 1 + 2.0**-23, 1 - 2.0**-24])
    assert np.allclose(one("lg2.approx.f32", tiny, result="f32"), np.log2(tiny.astype(np.float64)), rtol=1e-7, atol=0)
    assert list(one("lg2.approx.ftz.f32", tiny, result="f32")[:2]) == [-np.inf, -np.inf]
    assert one("tanh.approx.f32", np.float32([1e-20]), result="f32")[0] == np.float32(1e-20)


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0]
# The ISA's tables of special operands.
TABLES = {
    "rcp": [np.inf, -np.inf, 0.0, -0.0, np.nan, -1],
    "sqrt": [0.0, -0.0, np.inf, np.nan, np.nan, np.nan],
    "rsqrt": [np.inf, -np.inf, 0.0, np.nan, np.nan, np.nan],
    "ex2": [1, 1, np.inf, 0.0, np.nan, 0.5],
    "lg2": [-np.inf, -np.inf, np.inf, np.nan, np.nan, np.nan],
    "sin": [0.0, -0.0, np.nan, np.nan, np.nan],
    "cos": [1, 1, np.nan, np.nan, np.nan],
    "tanh": [0.0, -0.0, 1, -1, np.nan],
}


@pytest.mark.parametrize("name", TABLES)
def test_special_operands(name):
    expected = np.array(TABLES[name], np.float32)
    got = one(f"{name}.approx.f32", np.float32(SPECIAL[: len(expected)]), result="b32")
    assert np.array_equal(got, np.where(np.isnan(expected), NAN, expected.view(np.uint32)))


def test_large_angles_are_those_of_the_cut_product():
    """The card's code multiplies by 0.15915493667125701904 and cuts; the sine of what that gives is taken."""
    x = spread(10, 1e6, 2000)
    factor = np.float32(0.15915493667125701904)
    product = x.astype(np.float64) * np.float64(factor)
    cut = product.astype(np.float32)
    cut = np.where(cut > product, np.nextafter(cut, np.float32(0)), cut)
    turns = cut.astype(np.float64) % 1
    assert np.allclose(one("sin.approx.f32", x, result="f32"), np.sin(2 * np.pi * turns), rtol=0, atol=2e-7)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["ex2", "tanh"])
def test_halves(name, kind):
    codes = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    ftz = ".ftz" if (name, kind) == ("ex2", "bf16") else ""
    got = one(f"{name}.approx{ftz}.{kind}", codes, result="b16")
    with np.errstate(all="ignore"):
        x = decode(codes, kind).astype(np.float64)
        exact = {"ex2": np.exp2, "tanh": np.tanh}[name](x)
    expected = encode(exact, kind)
    if ftz:
        expected = np.where(expected & 0x7F80 == 0, expected & 0x8000, expected)
    # Once to a float and once to the half: at most one place apart, and seldom.
    difference = np.abs(got.astype(np.int32) - expected.astype(np.int32))
    assert difference.max() <= 1 and (difference > 0).mean() < 1e-3
    pair = codes.astype(np.uint32) | np.uint32(0x3C00_0000)
    packed = one(f"{name}.approx{ftz}.{kind}x2", pair, result="b32")
    assert np.array_equal(packed & 0xFFFF, got) and np.all(packed >> 16 == got[0x3C00])


def test_division():
    a, b = spread(1e-30, 1e30, 3000), np.roll(spread(1e-7, 1e7, 3000), 1)
    for form in ("full", "approx", "full.ftz"):
        got = one(f"div.{form}.f32", a, b, result="f32").astype(np.float64)
        exact = a.astype(np.float64) / b
        assert np.max(np.abs(got / exact - 1)) < 2.0**-22
    huge = np.float32([2.0**127, -(2.0**127), 2.0**127, np.inf])
    got = one("div.approx.f32", np.float32([1, 1, np.inf, 1]), huge, result="b32")
    assert list(got) == [0, 0x80000000, NAN, 0]
    assert one("div.full.f32", np.float32([2.0**126]), huge[:1], result="f32")[0] == 0.5


@pytest.mark.parametrize("name,function", [("rcp", lambda x: 1 / x), ("rsqrt", lambda x: 1 / np.sqrt(x))])
def test_gross_functions_of_doubles(name, function):
    """Only the upper words of operand and result count."""
    x = np.exp(np.random.default_rng(1).uniform(-600, 600, 2000))
    got = one(f"{name}.approx.ftz.f64", x, result="f64")
    assert np.all(got.view(np.uint64) & np.uint64(0xFFFFFFFF) == 0)
    assert np.max(np.abs(got / function(x) - 1)) < 2.0**-19
    special = np.array([0.0, -0.0, np.inf, 2.0**-1060, np.nan])
    got = one(f"{name}.approx.ftz.f64", special, result="b64")
    infinity = 0x7FF0000000000000
    assert list(got) == [infinity, infinity | 1 << 63, 0, infinity, 0x7FFFFFFF00000000]


def test_rsqrt_of_doubles():
    x = np.exp(np.random.default_rng(1).uniform(-700, 700, 2000))
    got = one("rsqrt.approx.f64", x, result="f64")
    assert np.max(np.abs(got * got * x - 1)) < 2.0**-50
