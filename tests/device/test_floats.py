"""Floating-point arithmetic, conversions and mathematical functions on the card against NumPy."""

import itertools
import math

import numpy as np
import pytest
from device_rows import COMPARISONS, INTEGERS, NUMPY, check, edges, floats


@pytest.mark.parametrize("kind", ["Float32", "Float64"])
def test_float_operators_are_correctly_rounded(kind, run_rows, rng):
    values = floats(kind, rng, 60)
    a, b = np.repeat(values, len(values)), np.tile(values, len(values))
    rows = [(text, kind) for text in ("a + b", "a - b", "a * b", "a / b", "-a", "abs(a)", "sqrt(a)")]
    rows += [(text, "Bool") for text in COMPARISONS]
    with np.errstate(all="ignore"):
        expected = [a + b, a - b, a * b, a / b, -a, abs(a), np.sqrt(a)]
        expected += [eval(text, {"a": a, "b": b}) for text in COMPARISONS]
    check(rows, run_rows([kind, kind], [a, b], rows, "from math import sqrt"), expected, a, b)


@pytest.mark.parametrize("kind", ["Float16", "Float32", "Float64"])
def test_minimum_and_maximum_of_numbers(kind, run_rows, rng):
    values = floats(kind, rng, 40)
    values = values[~np.isnan(values) & (values != 0)]
    a, b = np.repeat(values, len(values)), np.tile(values, len(values))
    rows = [("min(a, b)", kind), ("max(a, b)", kind)]
    check(rows, run_rows([kind, kind], [a, b], rows), [np.minimum(a, b), np.maximum(a, b)], a, b)


def test_float_floor_division_and_remainder(run_rows):
    quarters = np.arange(-40, 41, dtype=np.float32) / 4
    divisors = np.array([-3, -2, -0.75, 0.5, 1, 2.5, 4], np.float32)
    a, b = np.repeat(quarters, len(divisors)), np.tile(divisors, len(quarters))
    rows = [("a // b", "Float32"), ("a % b", "Float32")]
    found = run_rows(["Float32", "Float32"], [a, b], rows)
    assert np.array_equal(found[0], np.floor(a / b))
    assert np.array_equal(found[1], a - b * np.floor(a / b))


def test_half_precision_arithmetic_rounds_once(run_rows, rng):
    values = floats("Float16", rng, 60)
    a, b = np.repeat(values, len(values)), np.tile(values, len(values))
    rows = [(text, "Float16") for text in ("a + b", "a - b", "a * b")]
    with np.errstate(all="ignore"):
        check(rows, run_rows(["Float16", "Float16"], [a, b], rows), [a + b, a - b, a * b], a, b)


def test_contraction_is_the_default_and_can_be_turned_off(run_rows):
    a = np.array([1 + 2.0**-12], np.float32)
    b, c = a.copy(), np.array([-1.0], np.float32)
    rows = [("a * b + c", "Float32")]
    fused = np.float32(np.float64(a[0]) * np.float64(b[0]) - 1)
    assert fused != a[0] * b[0] + c[0]
    assert run_rows(["Float32"] * 3, [a, b, c], rows)[0][0] == fused
    assert run_rows(["Float32"] * 3, [a, b, c], rows, contract=False)[0][0] == a[0] * b[0] + c[0]


def saturated(x, kind):
    """A float to the nearest integer towards zero that the type has; NaN is 0."""
    info = np.iinfo(NUMPY[kind])
    if math.isnan(x):
        return 0
    return info.max if x >= info.max else info.min if x <= info.min else int(x)


@pytest.mark.parametrize("kind", ["Float16", "Float32", "Float64"])
def test_float_to_integer_saturates(kind, run_rows, rng):
    bounds = [float(b) for k in INTEGERS for b in (np.iinfo(NUMPY[k]).min, np.iinfo(NUMPY[k]).max)]
    near = np.array([b + d for b in bounds for d in (-1, -0.5, 0, 0.5, 1)])
    with np.errstate(over="ignore"):
        a = np.concatenate(
            [floats(kind, rng), near.astype(NUMPY[kind]), rng.uniform(-300, 300, 200).astype(NUMPY[kind])]
        )
    rows = [(f"{to}(a)", to) for to in INTEGERS]
    expected = [np.array([saturated(float(x), to) for x in a], NUMPY[to]) for to in INTEGERS]
    check(rows, run_rows([kind], [a], rows), expected, a)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_to_float_rounds_to_nearest(kind, run_rows, rng):
    a = np.array(edges(kind, rng, 300), NUMPY[kind])
    rows = [(f"{to}(a)", to) for to in ("Float32", "Float64")]
    check(rows, run_rows([kind], [a], rows), [a.astype(np.float32), a.astype(np.float64)], a)


def test_float_conversions_round_to_nearest(run_rows, rng):
    with np.errstate(over="ignore"):
        for kind in ("Float16", "Float32", "Float64"):
            a = floats(kind, rng)
            rows = [(f"a.cast[DType.{to.lower()}]()", to) for to in ("Float16", "Float32", "Float64") if to != kind]
            check(rows, run_rows([kind], [a], rows), [a.astype(NUMPY[to]) for _, to in rows], a)


def to_bfloat16(values):
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FFF, rounded).astype(np.uint16)


def test_bfloat16(run_rows, rng):
    a = np.concatenate([floats("Float32", rng), np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8], np.float32)])
    rows = [("a.cast[DType.bfloat16]()", "BFloat16"), ("Float32(a.cast[DType.bfloat16]())", "Float32")]
    found = run_rows(["Float32"], [a], rows)
    want = to_bfloat16(a)
    numbers = ~np.isnan(a)
    assert np.array_equal(found[0][numbers], want[numbers])
    assert np.array_equal(found[1][numbers], (want.astype(np.uint32) << 16).view(np.float32)[numbers])
    assert np.isnan(found[1][~numbers]).all()


FLOAT8 = {"Float8_e4m3fn": (4, 3, 448.0), "Float8_e5m2": (5, 2, 57344.0)}


def decode_float8(code, exponent_bits, mantissa_bits):
    sign = -1.0 if code & 0x80 else 1.0
    exponent = (code & 0x7F) >> mantissa_bits
    mantissa = code & ((1 << mantissa_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent_bits == 4 and code & 0x7F == 0x7F:
        return math.nan
    if exponent_bits == 5 and exponent == 31:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - bias - mantissa_bits)
    return sign * math.ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits)


@pytest.mark.parametrize("kind", FLOAT8)
def test_float8_to_float_is_exact(kind, run_rows):
    codes = np.arange(256, dtype=np.uint8)
    rows = [("Float32(a)", "Float32")]
    expected = np.array([decode_float8(int(c), *FLOAT8[kind][:2]) for c in codes], np.float32)
    check(rows, run_rows([kind], [codes], rows), [expected], codes)


@pytest.mark.parametrize("kind", FLOAT8)
def test_float_to_float8_rounds_to_nearest_and_saturates(kind, run_rows, rng):
    exponent_bits, mantissa_bits, largest = FLOAT8[kind]
    table = {c: decode_float8(c, exponent_bits, mantissa_bits) for c in range(128)}
    finite = sorted((v, c) for c, v in table.items() if math.isfinite(v))
    middles = [(x + y) / 2 for (x, _), (y, _) in itertools.pairwise(finite)]
    numbers = np.array([*(v for v, _ in finite), *middles, largest * 2, 1e30, np.inf], np.float32)
    numbers = np.concatenate([numbers, rng.uniform(0, largest, 300).astype(np.float32)])
    a = np.concatenate([numbers, -numbers])

    def nearest(x):
        x = min(abs(float(x)), largest)
        return min(finite, key=lambda entry: (abs(entry[0] - x), entry[1] & 1))[1]

    expected = np.array([nearest(x) | (0x80 if np.signbit(x) else 0) for x in a], np.uint8)
    rows = [(f"a.cast[DType.{kind.lower()}]()", kind)]
    check(rows, run_rows(["Float32"], [a], rows), [expected], a)


# function: (reference in double precision, low, high, greatest error in ulp of Float32)
PRECISE = {
    "exp": (math.exp, -103.0, 88.7, 1.5),
    "exp2": (lambda x: 2.0**x, -149.0, 127.9, 1.5),
    "log": (math.log, 1e-44, 3e38, 1.5),
    "log2": (math.log2, 1e-44, 3e38, 2),
    "log10": (math.log10, 1e-44, 3e38, 2),
    "sin": (math.sin, -1000.0, 1000.0, 2),
    "cos": (math.cos, -1000.0, 1000.0, 2),
    "tan": (math.tan, -1000.0, 1000.0, 4),
    "tanh": (math.tanh, -12.0, 12.0, 2),
    "erf": (math.erf, -5.0, 5.0, 2),
    "erfc": (math.erfc, -1.0, 9.0, 4),
    "lgamma": (math.lgamma, 1e-30, 1e30, 4),
    "exp10": (lambda x: 10.0**x, -37.0, 38.5, 1.5),
    "rsqrt": (lambda x: 1 / math.sqrt(x), 1e-30, 1e30, 1.5),
    "floor": (math.floor, -1000.0, 1000.0, 0),
    "ceil": (math.ceil, -1000.0, 1000.0, 0),
    "trunc": (math.trunc, -1000.0, 1000.0, 0),
    "round": (round, -1000.0, 1000.0, 0),
}


def spread(low, high, rng, count):
    """Random Float32 from low to high: every magnitude where both are positive, else evenly."""
    if low > 0:
        return np.exp(rng.uniform(math.log(low), math.log(high), count)).astype(np.float32)
    return rng.uniform(low, high, count).astype(np.float32)


def ulps(found, exact):
    return np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)


@pytest.mark.parametrize("name", PRECISE)
def test_precise_functions(name, run_rows, rng):
    reference, low, high, bound = PRECISE[name]
    a = spread(low, high, rng, 20000)
    a = np.concatenate([a, np.array([1, 0.5, 2, 3], np.float32)])
    (found,) = run_rows(["Float32"], [a], [(f"{name}(a)", "Float32")], f"from math import {name}")
    error = ulps(found, np.array([reference(float(x)) for x in a]))
    assert error.max() <= bound, f"{name}({a[error.argmax()]!r}): {error.max():.2f} ulp"


def test_trigonometry_of_large_angles(run_rows, rng):
    a = spread(1e3, 3e38, rng, 4000)
    rows = [("sin(a)", "Float32"), ("cos(a)", "Float32")]
    found = run_rows(["Float32"], [a], rows, "from math import cos, sin")
    for (text, _), got, reference in zip(rows, found, (math.sin, math.cos), strict=True):
        error = ulps(got, np.array([reference(float(x)) for x in a]))
        assert error.max() <= 2, f"{text} of {a[error.argmax()]!r}: {error.max():.2f} ulp"


def test_power(run_rows, rng):
    a, b = spread(1e-3, 1e3, rng, 20000), rng.uniform(-12, 12, 20000).astype(np.float32)
    (found,) = run_rows(["Float32", "Float32"], [a, b], [("pow(a, b)", "Float32")], "from math import pow")
    error = ulps(found, np.array([float(x) ** float(y) for x, y in zip(a, b, strict=True)]))
    assert error.max() <= 2, f"pow({a[error.argmax()]!r}, {b[error.argmax()]!r}): {error.max():.2f} ulp"


def test_functions_at_the_ends(run_rows):
    inf, nan = math.inf, math.nan
    a = np.array([0.0, -0.0, inf, -inf, nan, -1.0], np.float32)
    expected = {
        "exp": [1, 1, inf, 0, nan, np.float32(math.exp(-1))],
        "exp2": [1, 1, inf, 0, nan, 0.5],
        "log": [-inf, -inf, inf, nan, nan, nan],
        "log2": [-inf, -inf, inf, nan, nan, nan],
        "sqrt": [0.0, -0.0, inf, nan, nan, nan],
        "tanh": [0.0, -0.0, 1, -1, nan, np.float32(math.tanh(-1))],
    }
    rows = [(f"{name}(a)", "Float32") for name in expected]
    found = run_rows(["Float32"], [a], rows, f"from math import {', '.join(expected)}")
    for name, got in zip(expected, found, strict=True):
        np.testing.assert_allclose(got, np.array(expected[name], np.float32), rtol=3e-7, atol=0, err_msg=name)


# function: (reference, low, high, greatest relative error, greatest absolute error)
FAST = {
    "sqrt_approx": (math.sqrt, 1e-30, 1e30, 2**-22, 0),
    "rsqrt_approx": (lambda x: 1 / math.sqrt(x), 1e-30, 1e30, 2**-22, 0),
    "recip_approx": (lambda x: 1 / x, 1e-30, 1e30, 2**-22, 0),
    "exp2_approx": (lambda x: 2.0**x, -120.0, 120.0, 2**-22, 0),
    "exp_approx": (math.exp, -80.0, 80.0, 2**-16, 0),
    "log2_approx": (math.log2, 1e-30, 1e30, 2**-21, 2**-21),
    "sin_approx": (math.sin, -math.pi, math.pi, 0, 2**-20),
    "cos_approx": (math.cos, -math.pi, math.pi, 0, 2**-20),
    "tanh_approx": (math.tanh, -6.0, 6.0, 2**-10, 0),
}


@pytest.mark.parametrize("name", FAST)
def test_fast_functions(name, run_rows, rng):
    reference, low, high, relative, absolute = FAST[name]
    a = spread(low, high, rng, 4000)
    (found,) = run_rows(["Float32"], [a], [(f"{name}(a)", "Float32")], f"from math import {name}")
    exact = np.array([reference(float(x)) for x in a])
    error = np.abs(found - exact) - relative * np.abs(exact) - absolute
    assert error.max() <= 0, f"{name}({a[error.argmax()]!r}) = {found[error.argmax()]!r}"


# The middle of two neighbours, the even one of these, the other.
E4M3, E5M2 = (14.5, 14.0, 15.0), (104.0, 96.0, 112.0)
BFLOAT16 = (2**30 + 2**22, 2**30, 2**30 + 2**23)


@pytest.mark.parametrize(
    ("source", "kind", "to", "numbers", "little"),
    [
        ("Float64", np.float64, "Float8_e4m3fn", E4M3, 2.0**-40),
        ("Float64", np.float64, "Float8_e5m2", E5M2, 2.0**-40),
        ("Int64", np.int64, "BFloat16", tuple(1024 * x for x in BFLOAT16), 1),
        ("UInt32", np.uint32, "BFloat16", BFLOAT16, 1),
    ],
)
def test_conversions_of_two_instructions_round_once(source, kind, to, numbers, little, run_rows):
    middle, even, odd = numbers
    given = np.array([middle - little, middle, middle + little, even, odd], kind)
    (found,) = run_rows([source], [given], [(f"Float32({to}(a))", "Float32")])
    assert found.tolist() == [even, even, odd, even, odd]
