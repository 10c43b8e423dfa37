"""cvt to and from the formats of 8, 6 and 4 bits, against ``encoding.py``."""

import numpy as np
import pytest
from encoding import encode
from exact import interesting
from lane_arrays import compute, one

from ptxdsl.sim.numbers import FORMATS, decode

FIELD = {"e4m3": 8, "e5m2": 8, "e2m3": 8, "e3m2": 8, "e2m1": 4}
REGISTER = {"e2m1x2": "b16"}


@pytest.fixture
def rng():
    return np.random.default_rng(17)


def middles(name, rng):
    """Floats at, between and beside the numbers of a format, far ones, NaN."""
    codes = np.arange(FORMATS[name].largest)
    low, high = decode(codes, name).astype(np.float64), decode(codes + 1, name)
    values = np.concatenate([low + (high - low) * f for f in (0, 0.5 - 2**-16, 0.5, 0.5 + 2**-16, 0.75)])
    values = np.concatenate([values, -values]).astype(np.float32)
    return np.concatenate([values, interesting("f32", rng).view(np.float32)])


def packed(high, low, bits):
    return high.astype(np.uint32) << bits | low


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("name", FIELD)
def test_pairs_from_floats(name, relu, rng):
    a = middles(name, rng)
    b = np.roll(a, 7)
    got = one(f"cvt.rn.satfinite{'.relu' * relu}.{name}x2.f32", a, b, result="b16")
    high, low = (encode(v, name, saturate=True, relu=relu) for v in (a, b))
    assert np.array_equal(got, packed(high, low, FIELD[name]))


@pytest.mark.parametrize("source", ["f16", "bf16"])
@pytest.mark.parametrize("name", FIELD)
def test_pairs_from_halves(name, source, rng):
    a = np.arange(1 << 16, dtype=np.uint32)
    word = a | np.roll(a, 99) << 16
    got = one(f"cvt.rn.satfinite.{name}x2.{source}x2", word, result="b16")
    codes = encode(decode(a, source), name, saturate=True)
    assert np.array_equal(got, packed(np.roll(codes, 99), codes, FIELD[name]))


@pytest.mark.parametrize("target", ["f16", "bf16"])
@pytest.mark.parametrize("name", FIELD)
def test_pairs_to_halves(name, target):
    bits = FIELD[name]
    code_mask = 2 * FORMATS[name].sign - 1
    word = np.arange(1 << (2 * bits), dtype=np.uint32).astype(np.uint16)
    for relu in (False, True):
        got = one(f"cvt.rn{'.relu' * relu}.{target}x2.{name}x2", word, result="b32")
        high, low = (decode(c & code_mask, name) for c in (word >> bits, word))
        expected = packed(*(encode(v, target, relu=relu) for v in (high, low)), 16)
        assert np.array_equal(got, expected)


def test_nan_of_8_bits_becomes_the_canonical_one():
    assert list(one("cvt.rn.f16x2.e4m3x2", np.uint16([0x7F38, 0xFF80]), result="b32")) == [0x7FFF3C00, 0x7FFF8000]
    assert list(one("cvt.rn.relu.f16x2.e5m2x2", np.uint16([0x7CFC]), result="b32")) == [0x7C000000]
    assert list(one("cvt.rn.satfinite.bf16x2.e5m2x2", np.uint16([0x7CFC]), result="b32")) == [0x7F7FFF7F]


@pytest.mark.parametrize("rounding", ["rz", "rp"])
@pytest.mark.parametrize("finite", ["", ".satfinite"])
def test_exponents(rounding, finite, rng):
    a = np.concatenate([interesting("f32", rng, 200).view(np.float32), np.float32([2.0**-127, 2.0**-126 * 0.99])])
    b = np.roll(a, 3)
    got = one(f"cvt.{rounding}{finite}.ue8m0x2.f32", a, b, result="b16")
    high, low = (encode(v, "ue8m0", rounding, saturate=bool(finite)) for v in (a, b))
    assert np.array_equal(got, packed(high, low, 8))
    brains = interesting("bf16", rng, 200).astype(np.uint32)
    word = brains | np.roll(brains, 1) << 16
    got = one(f"cvt.{rounding}{finite}.ue8m0x2.bf16x2", word, result="b16")
    codes = encode(decode(brains, "bf16"), "ue8m0", rounding, saturate=bool(finite))
    assert np.array_equal(got, packed(np.roll(codes, 1), codes, 8))


def test_exponents_to_bf16():
    word = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    got = one("cvt.rn.bf16x2.ue8m0x2", word, result="b32")
    high, low = (encode(decode(c, "ue8m0"), "bf16") for c in (word >> 8, word & 0xFF))
    assert np.array_equal(got, packed(high, low, 16))
    assert got[0] == 0x00400040 and got[0xFFFF] == 0x7FFF7FFF  # 2**-127, NaN


def test_scaled_pairs(rng):
    word, scale = (rng.integers(0, 1 << 16, 3000).astype(np.uint16) for _ in "ab")
    for name in ("e4m3", "e5m2"):
        for finite in (False, True):
            got = one(f"cvt.rn{'.satfinite' * finite}.scaled::n2::ue8m0.bf16x2.{name}x2", word, scale, result="b32")
            halves = []
            for shift in (8, 0):
                value = decode(word >> shift & 0xFF, name).astype(np.float64)
                with np.errstate(invalid="ignore"):
                    halves.append(encode(value * decode(scale >> shift & 0xFF, "ue8m0"), "bf16", saturate=finite))
            assert np.array_equal(got, packed(*halves, 16))


def test_fixed_point(rng):
    x = np.float32([0, 1 / 128, 3 / 128, 0.5, 1.984375, 2, -2, -3, 1e9, np.nan, -1 / 128, -5 / 128])
    codes = [0, 0, 2, 32, 127, 127, 0x80, 0x80, 127, 127, 0, 0xFE]
    got = one("cvt.rn.satfinite.s2f6x2.f32", x, x[::-1].copy(), result="b16")
    assert [int(v) for v in got] == [high << 8 | low for high, low in zip(codes, codes[::-1], strict=True)]
    relu = one("cvt.rn.satfinite.relu.s2f6x2.f32", np.zeros_like(x), x, result="b16")
    assert [int(v) for v in relu] == [0 if c >= 0x80 else c for c in codes]
    scale = np.full(len(x), 126 << 8 | 128, np.uint16)  # divided by 1/2, and by 2
    scaled = one("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32", x, x, scale, result="b16")
    plain = one("cvt.rn.satfinite.s2f6x2.f32", x * 2, x / 2, result="b16")
    assert np.array_equal(scaled, plain)
    word = np.arange(256, dtype=np.uint16)
    back = one("cvt.rn.bf16x2.s2f6x2", word, result="b32")
    assert np.array_equal(decode(back & 0xFFFF, "bf16"), word.astype(np.uint8).view(np.int8) / 64)


def reversed_bits(words):
    return np.array([int(f"{int(w):016b}"[::-1], 2) for w in words])


@pytest.mark.parametrize("name", FIELD)
def test_stochastic_fours(name, rng):
    """Which random bits each of the four gets is as a B200 was found to deal them out."""
    values = [rng.choice(middles(name, rng), 400) for _ in "abef"]
    random = rng.integers(0, 1 << 32, 400, dtype=np.uint32)
    body = f"cvt.rs.satfinite.{name}x4.f32 %d, {{%a, %b, %e, %f}}, %r;"
    inputs = dict(zip(("%a", "%b", "%e", "%f", "%r"), [*values, random], strict=True))
    got = compute(body, inputs, {"%d": "b16" if name == "e2m1" else "b32"})["%d"]
    if name == "e2m1":
        shares = [(random >> 24) << 8 | random >> 8 & 0xFF, (random >> 16 & 0xFF) << 8 | random & 0xFF]
    else:
        shares = [random >> 16, random & 0xFFFF]
    dealt = [reversed_bits(shares[0]), shares[0], reversed_bits(shares[1]), shares[1]]
    expected = np.zeros(400, np.uint32)
    for value, bits in zip(values, dealt, strict=True):
        expected = expected << FIELD[name] | encode(value, name, "rs", random=bits, saturate=True)
    assert np.array_equal(got, expected)
