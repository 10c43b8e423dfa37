"""Conversions between formats against exact rational arithmetic and NumPy's float16."""

from fractions import Fraction

import numpy as np
import pytest
from encoding import encode
from exact import rounded, value
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxdsl.sim import numbers
from ptxdsl.sim.numbers import FORMATS, decode

SMALL = ["e5m2", "e4m3", "e3m2", "e2m3", "e2m1"]
NARROW = [*SMALL, "f16", "bf16", "tf32"]


@pytest.mark.parametrize("name", SMALL)
def test_every_code_of_a_small_format_has_the_value_of_its_definition(name):
    form = FORMATS[name]
    codes = np.arange(2 * form.sign, dtype=np.uint8)
    values = decode(codes, name)
    for code, found in zip(codes, values, strict=True):
        expected = value(int(code), name)
        if expected is None:
            assert np.isnan(found)
        else:
            assert found == expected
            assert np.signbit(found) == bool(code & form.sign)


def test_values_that_the_formats_are_known_by():
    assert decode(0x7E, "e4m3") == 448 and np.isnan(decode(0x7F, "e4m3"))
    assert decode(0x7B, "e5m2") == 57344 and np.isinf(decode(0x7C, "e5m2")) and np.isnan(decode(0x7D, "e5m2"))
    assert decode(0x1F, "e3m2") == 28 and decode(0x1F, "e2m3") == 7.5
    assert list(decode(np.arange(8), "e2m1")) == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert decode(127, "ue8m0") == 1 and decode(0, "ue8m0") == 2.0**-127 and np.isnan(decode(255, "ue8m0"))
    assert decode(0x3F80_1FFF, "tf32") == 1  # what a matrix instruction reads of a 32-bit register


def test_float16_is_numpys():
    codes = np.arange(1 << 16, dtype=np.uint16)
    values = codes.view(np.float16)
    numbers_ = ~np.isnan(values)
    assert np.array_equal(decode(codes, "f16")[numbers_], values[numbers_].astype(np.float32))
    rng = np.random.default_rng(1)
    wide = np.concatenate([rng.normal(size=20000), np.exp(rng.uniform(-20, 13, 20000)), [65519.99, 65520, 1e30]])
    with np.errstate(over="ignore"):
        for dtype in (np.float32, np.float64):
            x = wide.astype(dtype)
            assert np.array_equal(encode(x, "f16"), x.astype(np.float16).view(np.uint16))


def between_numbers(name, rng):
    """Float64 values at, between and just beside neighbouring numbers of a format, its largest and least among them."""
    form = FORMATS[name]
    top = form.largest
    codes = np.unique(
        np.concatenate([rng.integers(0, top, 40), np.arange(4), top - np.arange(4), [1 << form.mantissa_bits]])
    )
    low, high = (decode(np.minimum(c, top) << form.zeros, name).astype(np.float64) for c in (codes, codes + 1))
    high = np.where(codes == top, 2 * low - decode(np.uint32((top - 1) << form.zeros), name), high)
    parts = [low + (high - low) * f for f in (0, 2**-12, 0.5 - 2**-12, 0.5, 0.5 + 2**-12, 1 - 2**-12)]
    return np.concatenate([*parts, low * 1e-3, [2.0**-149, 2.0**-140, 1e-30, 3e38, 2.0**-300, 1e200]])


@pytest.mark.parametrize("name", [*NARROW, "f32"])
@pytest.mark.parametrize("rounding", ["rn", "rna", "rz", "rm", "rp"])
def test_encoding_rounds_once(name, rounding):
    rng = np.random.default_rng(0)
    values = between_numbers(name, rng)
    sources = [values] if name == "f32" else [values, values[np.abs(values) < 3e38].astype(np.float32)]
    for x in sources:
        for negative in (False, True):
            for saturate in (False, True):
                got = encode(-x if negative else x, name, rounding, saturate=saturate)
                expected = [rounded(Fraction(float(v)), name, rounding, negative, saturate) for v in x]
                assert list(got) == expected


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=16, max_size=16))
def test_encoding_of_any_float32(values):
    x = np.array(values, np.float32)
    for name in NARROW:
        expected = [rounded(abs(Fraction(float(v))), name, "rn", bool(np.signbit(v))) for v in x]
        assert list(encode(x, name)) == expected


@pytest.mark.parametrize("name", [*NARROW, "f32"])
def test_the_simulators_own_encoding_rounds_to_nearest(name):
    x = between_numbers(name, np.random.default_rng(5))
    x = np.concatenate([x, [0.0, np.inf, np.nan]])
    narrow = x[~(np.abs(x) > 3e38) | np.isinf(x)].astype(np.float32)
    for values in (x, -x, narrow, -narrow):
        assert np.array_equal(numbers.encode(values, name), encode(values, name))


@pytest.mark.parametrize("name", NARROW)
def test_special_values(name):
    form = FORMATS[name]
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    top = (form.largest if form.infinity is None else form.infinity) << form.zeros
    nan, sign, largest = form.nan << form.zeros, form.sign << form.zeros, form.largest << form.zeros
    assert list(encode(x, name)) == [nan, nan, top, top | sign, 0, sign]
    assert list(encode(x, name, saturate=True)) == [nan, nan, largest, largest | sign, 0, sign]
    assert list(encode(x, name, relu=True)) == [nan, nan, top, 0, 0, 0]


def test_exponent_format_rounds_the_magnitude():
    """Cases that a B200 was seen to give, as published with the tests of another simulator."""
    x = np.array([1, 2, 1.5, -3, 0.75, 0, 2.0**-127, 2.0**-127 * 1.5, 3.0e38, np.inf, np.nan], np.float32)
    assert list(encode(x, "ue8m0", "rz")) == [127, 128, 127, 128, 126, 0, 0, 0, 254, 255, 255]
    assert list(encode(x, "ue8m0", "rp")) == [127, 128, 128, 129, 127, 0, 0, 1, 255, 255, 255]
    assert list(encode(x[-3:], "ue8m0", "rp", saturate=True)) == [254, 254, 255]


def test_random_bits_carry_at_the_discarded_bits():
    """1 + m/65536 of the distance to the next e4m3 number is rounded up for m of all 65536 random values."""
    rng = np.random.default_rng(2)
    m, random = rng.integers(0, 1 << 16, 500), rng.integers(0, 1 << 16, 500)
    x = np.array(0x3F80_0000 | (m << 4), np.uint32).view(np.float32)
    assert np.array_equal(encode(x, "e4m3", "rs", random=random), 0x38 + (m + random >= 1 << 16))
    exact_values = np.array([1, -6, 0, 0.5], np.float32)
    for word in (0, 0xFFFF):
        assert list(encode(exact_values, "e2m1", "rs", random=np.full(4, word))) == [2, 15, 0, 1]
    assert list(encode(np.float32([0.75, 0.75]), "e2m1", "rs", random=np.array([0x7FFF, 0x8000]))) == [1, 2]
    # bf16 drops 16 bits, f16 13: adding the random bits to the word and cutting it is the definition itself.
    bits = rng.integers(0x3000_0000, 0x4000_0000, 500).astype(np.uint32)
    assert np.array_equal(encode(bits.view(np.float32), "bf16", "rs", random=random), (bits + random) >> 16)


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_reductions(name):
    form = FORMATS[name]
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2 * form.sign, 4000, dtype=np.uint64, endpoint=False).astype(form.storage)
    codes[:12] = np.array([0, form.sign, form.nan, form.infinity, form.infinity | form.sign, 1] * 2)
    a, b = codes, np.roll(codes, 7)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes quiet
        x, y = decode(a, name).astype(np.float64), decode(b, name).astype(np.float64)
    usual = ~np.isnan(x) & ~np.isnan(y) & ~((x == 0) & (y == 0))
    for function, reference in ((numbers.minimum, np.fmin), (numbers.maximum, np.fmax)):
        got = function(a, b, name)
        assert np.array_equal(decode(got, name)[usual], reference(x, y)[usual].astype(decode(got, name).dtype))
    assert numbers.minimum(form.sign, 0, name) == form.sign == numbers.minimum(0, form.sign, name)
    assert numbers.maximum(form.sign, 0, name) == 0 == numbers.maximum(0, form.sign, name)
    assert numbers.minimum(form.nan, 1, name) == 1 == numbers.maximum(1, form.nan, name)
    assert numbers.minimum(form.nan, form.nan, name) == form.nan
    if name in ("f16", "bf16"):
        with np.errstate(all="ignore"):
            assert np.array_equal(numbers.add(a, b, name), encode(x + y, name))


def test_sums_of_subnormal_numbers_are_not_flushed():
    tiny = np.array([1, 0x8000_0001, 0x0080_0001], np.uint32)
    assert list(numbers.add(tiny, np.uint32(0), "f32")) == [1, 0x8000_0001, 0x0080_0001]


def test_float64_sums_keep_a_nan():
    signalling, quiet, infinity = 0x7FF0_0000_0000_0001, 0xFFF8_0000_0000_0002, 0x7FF0 << 48
    a = np.array([signalling, signalling, 0, infinity], np.uint64)
    b = np.array([0, quiet, quiet, 0xFFF0 << 48], np.uint64)
    assert list(numbers.add(a, b, "f64")) == [signalling, quiet, quiet, 0xFFF8 << 48]


def test_packed_codes():
    codes = np.arange(16, dtype=np.uint8)
    assert np.array_equal(numbers.unpack_nibbles(numbers.pack_nibbles(codes)), codes)
    assert list(numbers.unpack_nibbles(np.array([0xA5], np.uint8))) == [5, 10]
    # 0b000100_000011_000010_000001 in little-endian bytes
    assert list(numbers.unpack_six_bits(np.array([0x81, 0x30, 0x10], np.uint8))) == [1, 2, 3, 4]
