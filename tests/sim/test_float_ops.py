"""f32 and f64 arithmetic in all rounding modes against exact rational arithmetic; minima, maxima and signs."""

import numpy as np
import pytest
from encoding import encode
from exact import computed, interesting, tuples
from hypothesis import given, settings
from hypothesis import strategies as st
from lane_arrays import compute, many, one

from ptxdsl.sim.numbers import FORMATS, decode

ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "rcp": 1, "sqrt": 1}
NAN = FORMATS["f32"].nan
QUIET = 1 << 51


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def expected_f32(operation, operands, rounding):
    found = [computed(operation, [int(c) for c in row], "f32", rounding) for row in zip(*operands, strict=True)]
    return np.array([NAN if code is None else code for code in found], np.uint32)


def show(operation, operands, got, expected):
    """The first row that differs, or None."""
    (wrong,) = np.nonzero(got != expected)
    if not len(wrong):
        return None
    i = wrong[0]
    row = [f"{int(v[i]):#x}" for v in operands]
    return f"{operation}({', '.join(row)}) = {int(got[i]):#x}, not {int(expected[i]):#x}; {len(wrong)} differ"


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("operation", ARITY)
def test_f32(operation, rounding, rng):
    operands = tuples(interesting("f32", rng), ARITY[operation], rng)
    got = one(f"{operation}.{rounding}.f32", *operands, result="b32")
    assert not show(operation, operands, got, expected_f32(operation, operands, rounding))


def nearby(rng, count=3000):
    """Codes of floats within a factor of 2**6 of 1, of both signs, with random ends or few bits set: sums cancel."""
    bits = (rng.integers(121, 134, count) << 23 | rng.integers(0, 1 << 23, count)).astype(np.uint32)
    cut = np.uint32(0xFFFFFFFF) << rng.integers(0, 24, count).astype(np.uint32)
    return (bits & cut) | (rng.integers(0, 2, count) << 31).astype(np.uint32)


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("operation", ["add", "fma"])
def test_f32_sums_that_cancel(operation, rounding, rng):
    operands = [nearby(rng) for _ in range(ARITY[operation])]
    got = one(f"{operation}.{rounding}.f32", *operands, result="b32")
    assert not show(operation, operands, got, expected_f32(operation, operands, rounding))


CODES = st.integers(0, (1 << 32) - 1)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(CODES, CODES, CODES), min_size=16, max_size=16))
def test_fma_of_any_floats(rows):
    operands = [np.array(column, np.uint32) for column in zip(*rows, strict=True)]
    found = many([f"fma.{mode}.f32" for mode in ("rn", "rz", "rm", "rp")], operands, ["b32"] * 4)
    for mode, got in zip(("rn", "rz", "rm", "rp"), found, strict=True):
        assert not show("fma", operands, got, expected_f32("fma", operands, mode))


# Of several NaNs the one that an H200 gives: the last in this order of the operands.
NAN_ORDER = {"div": (1, 0), "fma": (0, 2, 1)}


def expected_f64(operation, operands, rounding):
    """An operand's payload, made quiet; the NaN of an invalid operation."""
    result = []
    for row in zip(*operands, strict=True):
        row = [int(c) for c in row]
        code = computed(operation, row, "f64", rounding)
        if code is None:
            ordered = [row[i] for i in NAN_ORDER.get(operation, range(len(row)))]
            nans = [c for c in ordered if c & ~(1 << 63) > FORMATS["f64"].infinity]
            code = nans[-1] | QUIET if nans else 0xFFF8 << 48
        result.append(code)
    return np.array(result, np.uint64)


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("operation", ARITY)
def test_f64(operation, rounding, rng):
    operands = tuples(interesting("f64", rng), ARITY[operation], rng)
    got = one(f"{operation}.{rounding}.f64", *operands, result="b64")
    assert not show(operation, operands, got, expected_f64(operation, operands, rounding))


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_f64_fma_of_neighbouring_magnitudes(rounding, rng):
    """Addends from far above to far below the product, down to the subnormal numbers."""
    count = 1500
    fractions = rng.integers(0, 1 << 52, (3, count), dtype=np.uint64)
    fractions &= np.uint64(0xFFFFFFFFFFFFFFFF) << rng.integers(0, 53, (3, count)).astype(np.uint64)
    a, b = rng.integers(1, 2046, count), rng.integers(1, 2046, count)
    c = np.clip(a + b - 1023 + rng.integers(-140, 140, count), 0, 2046)
    signs = rng.integers(0, 2, (3, count)).astype(np.uint64) << np.uint64(63)
    operands = [
        e.astype(np.uint64) << np.uint64(52) | f | s for e, f, s in zip((a, b, c), fractions, signs, strict=True)
    ]
    got = one(f"fma.{rounding}.f64", *operands, result="b64")
    assert not show("fma", operands, got, expected_f64("fma", operands, rounding))


def flushed(codes):
    return np.where(codes & 0x7F800000 == 0, codes & 0x80000000, codes).astype(np.uint32)


@pytest.mark.parametrize("rounding", ["rn", "rp"])
@pytest.mark.parametrize("operation", ARITY)
def test_flushing(operation, rounding, rng):
    operands = tuples(interesting("f32", rng), ARITY[operation], rng)
    got = one(f"{operation}.{rounding}.ftz.f32", *operands, result="b32")
    expected = flushed(expected_f32(operation, [flushed(v) for v in operands], rounding))
    assert not show(operation, operands, got, expected)


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_saturation(operation, rng):
    operands = tuples(interesting("f32", rng), ARITY[operation], rng)
    got = one(f"{operation}.rn.sat.f32", *operands, result="b32")
    plain = decode(expected_f32(operation, operands, "rn"), "f32")
    expected = np.where(np.isnan(plain) | (plain <= 0), np.float32(0), np.minimum(plain, np.float32(1)))
    assert np.array_equal(got, expected.view(np.uint32))  # -0 and NaN give +0


@pytest.mark.parametrize("operation", ["add.rn", "sub.rz", "mul.rm.ftz", "fma.rp"])
def test_pairs_of_f32(operation, rng):
    arity = ARITY[operation.split(".")[0]]
    operands = tuples(interesting("f32", rng), arity, rng)
    others = [np.roll(v, 9) for v in operands]
    packed = [
        low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
        for low, high in zip(operands, others, strict=True)
    ]
    got = one(f"{operation}.f32x2", *packed, result="b64")
    assert np.array_equal(got & np.uint64(0xFFFFFFFF), one(f"{operation}.f32", *operands, result="b32"))
    assert np.array_equal(got >> np.uint64(32), one(f"{operation}.f32", *others, result="b32"))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_sums_of_mixed_precision(kind, rng):
    half = tuples(interesting(kind, rng), 2, rng)
    single = tuples(interesting("f32", rng), 2, rng)[0]
    wide = [encode(decode(v, kind), "f32") for v in half]
    got = one(f"add.rz.f32.{kind}", half[0], single, result="b32")
    assert np.array_equal(got, one("add.rz.f32", wide[0], single, result="b32"))
    got = one(f"fma.rn.f32.{kind}", *half, single, result="b32")
    assert np.array_equal(got, one("fma.rn.f32", *wide, single, result="b32"))


def reference_extreme(a, b, smaller, nan):
    """Of two floats: -0 below +0; the other one of a NaN and a number, or a NaN."""
    none = np.isnan(a) | np.isnan(b) if nan else np.isnan(a) & np.isnan(b)
    first = np.where(a == b, np.signbit(a), a < b) == smaller
    picked = np.where(np.isnan(b) | (first & ~np.isnan(a)), a, b)
    return np.where(none, np.uint32(NAN).view(np.float32), picked)


def magnitude(codes):
    return (codes & 0x7FFFFFFF).view(np.float32)


@pytest.mark.parametrize("name", ["min", "max"])
def test_minimum_and_maximum_of_f32(name, rng):
    a, b = tuples(interesting("f32", rng), 2, rng)
    x, y = a.view(np.float32), b.view(np.float32)
    smaller = name == "min"
    forms = ["f32", "NaN.f32", "ftz.f32", "xorsign.abs.f32", "NaN.xorsign.abs.f32"]
    plain, nan, ftz, xorsign, nan_xorsign = many([f"{name}.{form}" for form in forms], [a, b], ["b32"] * 5)
    assert np.array_equal(plain, reference_extreme(x, y, smaller, False).view(np.uint32))
    assert np.array_equal(nan, reference_extreme(x, y, smaller, True).view(np.uint32))
    fa, fb = flushed(a).view(np.float32), flushed(b).view(np.float32)
    assert np.array_equal(ftz, reference_extreme(fa, fb, smaller, False).view(np.uint32))
    for got, with_nan in ((xorsign, False), (nan_xorsign, True)):
        expected = reference_extreme(magnitude(a), magnitude(b), smaller, with_nan).view(np.uint32)
        signed = np.where(expected == NAN, expected, expected | ((a ^ b) & 0x80000000))
        assert np.array_equal(got, signed)


@pytest.mark.parametrize("name", ["min", "max"])
def test_three_operands(name, rng):
    codes = tuples(interesting("f32", rng), 3, rng)
    a, b, c = (v.view(np.float32) for v in codes)
    for nan in (False, True):
        got = one(f"{name}{'.NaN' if nan else ''}.f32", *codes, result="b32")
        expected = reference_extreme(reference_extreme(a, b, name == "min", nan), c, name == "min", nan)
        assert np.array_equal(got, expected.view(np.uint32))
    got = one(f"{name}.abs.f32", *codes, result="b32")
    a, b, c = (magnitude(v) for v in codes)
    expected = reference_extreme(reference_extreme(a, b, name == "min", False), c, name == "min", False)
    assert np.array_equal(got, expected.view(np.uint32))


@pytest.mark.parametrize("name", ["min", "max"])
def test_minimum_and_maximum_of_f64(name, rng):
    a, b = tuples(interesting("f64", rng), 2, rng)
    x, y = a.view(np.float64), b.view(np.float64)
    got = one(f"{name}.f64", a, b, result="b64")
    both = np.isnan(x) & np.isnan(y)
    first = np.where(x == y, np.signbit(x), x < y) == (name == "min")
    expected = np.where(np.isnan(y) | (first & ~np.isnan(x)), a, b)
    assert np.array_equal(got, np.where(both, b | np.uint64(QUIET), expected))


def test_signs(rng):
    a, b = tuples(interesting("f32", rng), 2, rng)
    nan = np.isnan(a.view(np.float32))
    absolute, negative = many(["abs.f32", "neg.f32"], [a], ["b32"] * 2)
    copied = one("copysign.f32", a, b, result="b32")
    assert np.array_equal(absolute, np.where(nan, NAN, a & 0x7FFFFFFF))
    assert np.array_equal(negative, np.where(nan, NAN, a ^ 0x80000000))
    assert np.array_equal(copied, (a & 0x80000000) | (b & 0x7FFFFFFF))
    assert np.array_equal(one("abs.ftz.f32", a, result="b32"), np.where(nan, NAN, flushed(a) & 0x7FFFFFFF))
    a, b = tuples(interesting("f64", rng), 2, rng)
    sign = np.uint64(1 << 63)
    quiet = np.where(np.isnan(a.view(np.float64)), np.uint64(QUIET), np.uint64(0))
    assert np.array_equal(one("abs.f64", a, result="b64"), np.where(quiet, a | quiet, a & ~sign))
    assert np.array_equal(one("neg.f64", a, result="b64"), np.where(quiet, a | quiet, a ^ sign))
    assert np.array_equal(one("copysign.f64", a, b, result="b64"), a & sign | b & ~sign)


@pytest.mark.parametrize("optimise", [0, 1])
def test_nan_does_not_depend_on_the_code_generator(optimise, rng):
    a, b = tuples(interesting("f32", rng), 2, rng)
    body = "add.rn.f32 %c, %a, %b; mul.f32 %d, %c, %c; fma.rn.f32 %e, %a, %b, %d; div.rn.f32 %f, %a, %b;"
    found = compute(body, {"%a": a, "%b": b}, {f"%{name}": "b32" for name in "cdef"}, optimise)
    total = expected_f32("add", [a, b], "rn")
    square = expected_f32("mul", [total, total], "rn")
    assert np.array_equal(found["%c"], total)
    assert np.array_equal(found["%d"], square)
    assert np.array_equal(found["%e"], expected_f32("fma", [a, b, square], "rn"))
    assert np.array_equal(found["%f"], expected_f32("div", [a, b], "rn"))
