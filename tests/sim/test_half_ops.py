"""f16 and bf16 arithmetic against exact rational arithmetic, and f16's against NumPy's."""

import numpy as np
import pytest
from exact import computed, interesting, tuples
from lane_arrays import many, one

from ptxdsl.sim.numbers import FORMATS, decode

KINDS = ["f16", "bf16"]
ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3}
NAN = 0x7FFF


@pytest.fixture
def rng():
    return np.random.default_rng(9)


def expected(operation, operands, kind):
    found = [computed(operation, [int(c) for c in row], kind, "rn") for row in zip(*operands, strict=True)]
    return np.array([NAN if code is None else code for code in found], np.uint16)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", ARITY)
def test_results_are_rounded_once(operation, kind, rng):
    operands = tuples(interesting(kind, rng), ARITY[operation], rng, 4000)
    got = one(f"{operation}.rn.{kind}", *operands, result="b16")
    assert np.array_equal(got, expected(operation, operands, kind))


@pytest.mark.parametrize("operation", ["add", "sub", "mul"])
def test_f16_is_numpys(operation, rng):
    a, b = (rng.integers(0, 1 << 16, 200_000).astype(np.uint16) for _ in "ab")
    x, y = a.view(np.float16), b.view(np.float16)
    with np.errstate(all="ignore"):
        result = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[operation](x, y)
    got = one(f"{operation}.f16", a, b, result="b16")
    assert np.array_equal(got, np.where(np.isnan(result), NAN, result.view(np.uint16)))


def test_bf16_products_do_not_round_twice():
    """A product just above the middle of two subnormal bf16 numbers, by less than the least float."""
    a, b = np.array([0x0081], np.uint16), np.array([0x3BFF], np.uint16)
    product = decode(a, "bf16").astype(np.float64) * decode(b, "bf16").astype(np.float64)
    assert one("mul.rn.bf16", a, b, result="b16")[0] == expected("mul", [a, b], "bf16")[0]
    rng = np.random.default_rng(0)
    a = rng.integers(0x0080, 0x0100, 5000).astype(np.uint16)  # near the least normal number
    b = rng.integers(0x3A80, 0x3F80, 5000).astype(np.uint16)
    assert product[0] < 2.0**-126
    assert np.array_equal(one("mul.rn.bf16", a, b, result="b16"), expected("mul", [a, b], "bf16"))


@pytest.mark.parametrize("kind", KINDS)
def test_fma_keeps_what_decides_a_tie(kind, rng):
    """A product in the middle of two numbers, and an addend that is far too small to move anything else."""
    form = FORMATS[kind]
    m = form.mantissa_bits
    one_ = form.bias << m
    a = rng.integers(1 << m, 2 << m, 2000)
    b = np.full(2000, (one_ | 1 << (m - 1)) if kind == "f16" else one_ | 3, np.int64)
    factors = [(a - (1 << m) + one_).astype(np.uint16), b.astype(np.uint16)]
    for tiny in (1, form.sign | 1, 1 << m, form.sign | 1 << m):
        operands = [*factors, np.full(2000, tiny, np.uint16)]
        got = one(f"fma.rn.{kind}", *operands, result="b16")
        assert np.array_equal(got, expected("fma", operands, kind))


def flushed(codes, kind):
    return np.where(codes & 0x7FFF < 1 << FORMATS[kind].mantissa_bits, codes & 0x8000, codes).astype(np.uint16)


@pytest.mark.parametrize("operation", ARITY)
def test_modifiers(operation, rng):
    operands = tuples(interesting("f16", rng), ARITY[operation], rng)
    names = (
        [f"{operation}.ftz.f16", f"{operation}.sat.f16"] if operation != "fma" else ["fma.rn.ftz.f16", "fma.rn.sat.f16"]
    )
    ftz, sat = many(names, operands, ["b16"] * 2)
    # The least normal number itself is flushed where it was rounded up to, if exponents had no end: 2**-14 less a bit.
    clean = [flushed(v, "f16") for v in operands]
    x, y, z = (v.view(np.float16).astype(np.float64) for v in (*clean, clean[0])[:3])
    with np.errstate(all="ignore"):
        exact = {"add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y, "fma": lambda: x * y + z}[
            operation
        ]()
    rounded = flushed(expected(operation, clean, "f16"), "f16")
    tiny = np.abs(exact) < 2.0**-14 * (1 - 2.0**-12)
    assert np.array_equal(ftz, np.where(tiny, rounded & 0x8000, rounded))
    plain = expected(operation, operands, "f16").view(np.float16)
    bounded = np.where(np.isnan(plain) | (plain <= 0), np.float16(0), np.minimum(plain, np.float16(1)))
    assert np.array_equal(sat, bounded.view(np.uint16))


@pytest.mark.parametrize("kind", KINDS)
def test_relu(kind, rng):
    operands = tuples(interesting(kind, rng), 3, rng)
    plain = expected("fma", operands, kind)
    got = one(f"fma.rn.relu.{kind}", *operands, result="b16")
    assert np.array_equal(got, np.where((plain & 0x8000 != 0) & (plain != NAN), 0, plain))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma", "min", "max"])
def test_pairs(operation, kind, rng):
    arity = ARITY.get(operation, 2)
    rounding = ".rn" if operation in ARITY else ""
    low = tuples(interesting(kind, rng), arity, rng)
    high = [np.roll(v, 11) for v in low]
    packed = [x.astype(np.uint32) | y.astype(np.uint32) << 16 for x, y in zip(low, high, strict=True)]
    got = one(f"{operation}{rounding}.{kind}x2", *packed, result="b32")
    assert np.array_equal(got & 0xFFFF, one(f"{operation}{rounding}.{kind}", *low, result="b16"))
    assert np.array_equal(got >> 16, one(f"{operation}{rounding}.{kind}", *high, result="b16"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["min", "max"])
def test_minimum_and_maximum(name, kind, rng):
    a, b = tuples(interesting(kind, rng), 2, rng)
    plain, nan, xorsign = many([f"{name}{m}.{kind}" for m in ("", ".NaN", ".xorsign.abs")], [a, b], ["b16"] * 3)

    def reference(a, b, propagate):
        x, y = decode(a, kind), decode(b, kind)
        none = np.isnan(x) | np.isnan(y) if propagate else np.isnan(x) & np.isnan(y)
        first = np.where(x == y, np.signbit(x), x < y) == (name == "min")
        return np.where(none, NAN, np.where(np.isnan(y) | (first & ~np.isnan(x)), a, b))

    assert np.array_equal(plain, reference(a, b, False))
    assert np.array_equal(nan, reference(a, b, True))
    magnitudes = reference(a & 0x7FFF, b & 0x7FFF, False)
    assert np.array_equal(xorsign, np.where(magnitudes == NAN, NAN, magnitudes | (a ^ b) & 0x8000))


@pytest.mark.parametrize("kind", KINDS)
def test_signs(kind):
    a = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    nan = np.isnan(decode(a, kind))
    absolute, negative = many([f"abs.{kind}", f"neg.{kind}"], [a], ["b16"] * 2)
    assert np.array_equal(absolute, np.where(nan, NAN, a & 0x7FFF))
    assert np.array_equal(negative, np.where(nan, NAN, a ^ 0x8000))
    pair = a.astype(np.uint32) | np.uint32(0xBC00_0000)
    assert np.array_equal(one(f"neg.{kind}x2", pair, result="b32"), negative.astype(np.uint32) | np.uint32(0x3C00_0000))
