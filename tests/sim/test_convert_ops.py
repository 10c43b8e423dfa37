"""cvt against exact arithmetic, NumPy and ``encoding.py``, which has tests of its own."""

from fractions import Fraction

import numpy as np
import pytest
from encoding import encode
from exact import interesting, rounded, value
from lane_arrays import compute, many, one

from ptxdsl.sim.numbers import FORMATS, decode

INTEGERS = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@pytest.fixture
def rng():
    return np.random.default_rng(13)


def width(type):
    return int(type.lstrip("busf"))


def bits_of(type):
    return f"b{max(16 if type in ('f16', 'bf16') else width(type), 16)}"


def integer_range(type):
    bits = width(type)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type[0] == "s" else (0, (1 << bits) - 1)


def wrap(v, type):
    low, high = integer_range(type)
    return (v - low) % (high - low + 1) + low


def integers(type, rng):
    low, high = integer_range(type)
    values = {
        low,
        low + 1,
        -1,
        0,
        1,
        2,
        high - 1,
        high,
        127,
        128,
        255,
        256,
        32767,
        32768,
        65535,
        65536,
        1 << 31,
        1 << 32,
    }
    values |= {int(v) >> int(s) for v, s in zip(rng.integers(0, 1 << 63, 60), rng.integers(0, 63, 60), strict=True)}
    values |= {-v for v in values} | {(1 << 24) + 1, (1 << 25) + 2, (1 << 53) + 1, (1 << 54) + 2, (1 << 63) + (1 << 10)}
    return sorted({wrap(v, type) for v in values})


def as_register(values, type):
    """Python integers as an array of the register's width: 16 bits at least."""
    size = max(width(type), 16)
    return np.array([v % (1 << size) for v in values], f"u{size // 8}")


@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_integers(source, rng):
    values = integers(source, rng)
    a = as_register(values, source)
    for saturate in (False, True):
        body = [f"cvt{'.sat' * saturate}.{target}.{source} %d{i}, %a;" for i, target in enumerate(INTEGERS)]
        outputs = {f"%d{i}": bits_of(target) for i, target in enumerate(INTEGERS)}
        found = compute("\n".join(body), {"%a": a}, outputs)
        for i, target in enumerate(INTEGERS):
            low, high = integer_range(target)
            expected = [min(max(v, low), high) if saturate else wrap(v, target) for v in values]
            # In a wider register the result is extended by its own sign.
            assert np.array_equal(found[f"%d{i}"], as_register(expected, target)), (source, target)


def float_codes(source, rng):
    """Codes at the ends of all integer ranges, at halves, and the usual edges."""
    ends = [float(e) + d for type in INTEGERS for e in integer_range(type) for d in (-1, -0.5, 0, 0.5, 1)]
    small = list(np.arange(-5, 5.25, 0.25))
    with np.errstate(over="ignore"):
        near = encode(np.array(ends + small + [2.0**63, 2.0**64, 2.0**52 + 0.5]), source)
    return np.concatenate([near, interesting(source, rng)])


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_integers(source, target, rng):
    codes = float_codes(source, rng)
    values = [value(int(c), source) for c in codes]
    low, high = integer_range(target)
    nan = 1 << (width(target) - 1) if source == "f64" or width(target) == 64 else 0
    found = many([f"cvt.{mode}.{target}.{source}" for mode in WHOLE], [codes], [bits_of(target)] * 4)
    for mode, got in zip(WHOLE, found, strict=True):
        expected = []
        for v in values:
            if v is None:
                expected.append(wrap(nan, target))
            elif isinstance(v, float):
                expected.append(high if v > 0 else low)
            else:
                floor = v.numerator // v.denominator
                whole = {"rmi": floor, "rpi": -(-v.numerator // v.denominator), "rzi": int(v), "rni": round(v)}[mode]
                expected.append(min(max(whole, low), high))
        assert np.array_equal(got, as_register(expected, target)), mode


def test_flushed_floats_to_integers():
    x = np.array([2.0**-140, -(2.0**-140), 2.0**-126], np.float32)
    assert list(one("cvt.rpi.s32.f32", x, result="s32")) == [1, 0, 1]
    assert list(one("cvt.rpi.ftz.s32.f32", x, result="s32")) == [0, 0, 1]
    assert list(one("cvt.rmi.ftz.s32.f32", x, result="s32")) == [0, 0, 0]


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_floats(source, target, rng):
    values = integers(source, rng)
    a = as_register(values, source)
    found = many([f"cvt.{mode}.{target}.{source}" for mode in ("rn", "rz", "rm", "rp")], [a], [bits_of(target)] * 4)
    for mode, got in zip(("rn", "rz", "rm", "rp"), found, strict=True):
        assert [int(v) for v in got] == [rounded(Fraction(abs(v)), target, mode, v < 0) for v in values], mode


def test_half_way_integers_of_64_bits():
    """Integers that round twice if they become a double first."""
    values = [(1 << 63) + (1 << 39), (1 << 63) + (1 << 39) + 1, (1 << 62) + (1 << 38) - 1, (1 << 60) + 1, (1 << 53) + 1]
    a = as_register(values, "u64")
    for target in FLOATS:
        got = one(f"cvt.rn.{target}.u64", a, result=bits_of(target))
        assert [int(v) for v in got] == [rounded(Fraction(v), target, "rn", False) for v in values]


NARROWER = [
    ("f32", "f16"),
    ("f32", "bf16"),
    ("f64", "f32"),
    ("f64", "f16"),
    ("f64", "bf16"),
    ("f16", "bf16"),
    ("bf16", "f16"),
]


def between(source, target, rng):
    """Codes of the source format at and around the middles between numbers of the target."""
    near = interesting(target, rng, 60)
    near = near[near & (FORMATS[target].sign - 1) < FORMATS[target].largest]
    low, high = (decode(c, target).astype(np.float64) for c in (near, near + 1))
    parts = [low + (high - low) * f for f in (0, 2**-13, 0.5 - 2**-13, 0.5, 0.5 + 2**-13)]
    return np.concatenate([encode(np.concatenate(parts), source), interesting(source, rng)])


@pytest.mark.parametrize("source,target", NARROWER)
def test_floats_to_narrower_ones(source, target, rng):
    codes = between(source, target, rng)
    values = [value(int(c), source) for c in codes]
    number = np.array([v is not None for v in values])
    found = many([f"cvt.{mode}.{target}.{source}" for mode in ("rn", "rz", "rm", "rp")], [codes], [bits_of(target)] * 4)
    form = FORMATS[target]
    for mode, got in zip(("rn", "rz", "rm", "rp"), found, strict=True):
        expected = []
        for v, code in zip(values, codes, strict=True):
            negative = bool(int(code) & FORMATS[source].sign)
            if v is None:
                continue
            if isinstance(v, float):
                expected.append(form.infinity | (form.sign if negative else 0))
            else:
                expected.append(rounded(abs(v), target, mode, negative))
        assert [int(v) for v in got[number]] == expected, mode


def test_nan_of_narrower_and_wider_floats():
    """What ptxas's code gives on sm_90, and what a B200 was seen to give."""
    single = np.array([0x7FC00001, 0xFF812345, 0x7F800001], np.uint32)
    double = np.array([0x7FF8000020000000, 0xFFF0246800000000, 0x7FF0000000000001], np.uint64)
    half = np.array([0x7E01, 0xFD23, 0x7C01], np.uint16)
    brain = np.array([0x7FC1, 0xFF92, 0x7F81], np.uint16)
    assert list(one("cvt.rn.f16.f32", single, result="b16")) == [0x7FFF] * 3
    assert list(one("cvt.rn.bf16.f32", single, result="b16")) == [0x7FFF] * 3
    assert list(one("cvt.rn.f32.f64", double, result="b32")) == [0x7FC00001, 0xFFC12340, 0x7FC00000]
    assert list(one("cvt.rn.f16.f64", double, result="b16")) == [0x7E00, 0xFE09, 0x7E00]
    assert list(one("cvt.rn.bf16.f64", double, result="b16")) == [0x7FC0, 0xFFC1, 0x7FC0]
    assert list(one("cvt.f64.f32", single, result="b64")) == [
        0x7FF8000020000000,
        0xFFF82468A0000000,
        0x7FF8000020000000,
    ]
    assert list(one("cvt.ftz.f64.f32", single, result="b64")) == [0x7FFFFFFFE0000000] * 3
    assert list(one("cvt.f32.f16", half, result="b32")) == [0x7FFFFFFF] * 3
    assert list(one("cvt.f32.bf16", brain, result="b32")) == [v << 16 for v in (0x7FC1, 0xFF92, 0x7F81)]
    assert list(one("cvt.ftz.f32.bf16", brain, result="b32")) == [0x7FFFFFFF] * 3
    assert list(one("cvt.f64.f16", half, result="b64")) == [0x7FF8040000000000, 0xFFFC8C0000000000, 0x7FF8040000000000]


@pytest.mark.parametrize(
    "source,target", [("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64"), ("f32", "f64")]
)
def test_widening_is_exact(source, target, rng):
    codes = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16) if source != "f32" else interesting("f32", rng, 500)
    got = decode(one(f"cvt.{target}.{source}", codes, result=bits_of(target)), target)
    assert np.array_equal(got, decode(codes, source), equal_nan=True)
    number = ~np.isnan(got)
    assert np.array_equal(np.signbit(got)[number], np.signbit(decode(codes, source))[number])


@pytest.mark.parametrize("type", FLOATS)
def test_rounding_to_whole_numbers(type, rng):
    codes = float_codes(type, rng)
    x = decode(codes, type)
    found = many([f"cvt.{mode}.{type}.{type}" for mode in WHOLE], [codes], [bits_of(type)] * 4)
    for (mode, function), got in zip(WHOLE.items(), found, strict=True):
        number = ~np.isnan(x)
        assert np.array_equal(got[number], encode(function(x[number]), type)), mode
    if type == "f32":
        assert np.all(found[0][np.isnan(x)] == 0x7FFFFFFF)


def test_modifiers_within_f32(rng):
    codes = interesting("f32", rng)
    x = codes.view(np.float32)
    flushed = np.where(codes & 0x7F800000 == 0, codes & 0x80000000, np.where(np.isnan(x), 0x7FFFFFFF, codes))
    assert np.array_equal(one("cvt.f32.f32", codes, result="b32"), codes)
    assert np.array_equal(one("cvt.ftz.f32.f32", codes, result="b32"), flushed)
    bounded = np.where(np.isnan(x) | (x <= 0), np.float32(0), np.minimum(x, np.float32(1)))
    assert np.array_equal(one("cvt.sat.f32.f32", codes, result="f32"), bounded)
    assert np.array_equal(one("cvt.rn.sat.f16.f32", codes, result="b16"), encode(bounded, "f16"))
    doubles = interesting("f64", rng)
    y = doubles.view(np.float64)
    plain = one("cvt.rn.f32.f64", doubles, result="b32")
    got = one("cvt.rn.ftz.f32.f64", doubles, result="b32")
    tiny = np.abs(y) < 2.0**-126
    assert np.array_equal(got, np.where(tiny, plain & 0x80000000, plain))


def test_a_double_that_rounds_up_to_the_least_normal_float_is_flushed_before_that():
    """By its place with 24 bits and no bound on the exponent, as a B200 was found to decide."""
    y = np.array([2.0**-126 * (1 - 2.0**-25), 2.0**-126 * (1 - 2.0**-25 * 1.5)])
    assert list(one("cvt.rn.f32.f64", y, result="b32")) == [0x00800000, 0x00800000]
    assert list(one("cvt.rn.ftz.f32.f64", y, result="b32")) == [0x00800000, 0]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_pairs(kind, rng):
    a = between("f32", kind, rng)
    b = np.roll(a, 5)
    for rounding in ("rn", "rz"):
        for modifiers in ("", ".relu", ".satfinite", ".relu.satfinite"):
            options = {"relu": ".relu" in modifiers, "saturate": ".satfinite" in modifiers}
            got = one(f"cvt.{rounding}{modifiers}.{kind}x2.f32", a, b, result="b32")
            high, low = (encode(v.view(np.float32), kind, rounding, **options).astype(np.uint32) for v in (a, b))
            assert np.array_equal(got, high << 16 | low)
            assert np.array_equal(one(f"cvt.{rounding}{modifiers}.{kind}.f32", a, result="b16"), high)


def test_stochastic_rounding_of_pairs(rng):
    a, b = (rng.integers(0x38000000, 0x48000000, 500).astype(np.uint32) for _ in "ab")
    random = rng.integers(0, 1 << 32, 500, dtype=np.uint32)
    got = one("cvt.rs.bf16x2.f32", a, b, random, result="b32")
    assert np.array_equal(got, (a + (random >> 16)) >> 16 << 16 | (b + (random & 0xFFFF)) >> 16)
    got = one("cvt.rs.f16x2.f32", a, b, random, result="b32")
    high, low = (
        encode(v.view(np.float32), "f16", "rs", random=r & 0x1FFF, random_bits=13).astype(np.uint32)
        for v, r in ((a, random >> 16), (b, random))
    )
    assert np.array_equal(got, high << 16 | low)


def test_tf32(rng):
    codes = interesting("f32", rng, 500)
    codes = np.concatenate([codes, codes & 0xFFFFF000, codes & 0xFFFFE000 | 0x1000])  # middles, and beside them
    x = codes.view(np.float32)
    for modifiers in ("rn", "rz", "rn.relu", "rz.satfinite", "rn.satfinite.relu"):
        rounding, *rest = modifiers.split(".")
        expected = encode(x, "tf32", rounding, relu="relu" in rest, saturate="satfinite" in rest)
        assert np.array_equal(one(f"cvt.{modifiers}.tf32.f32", codes, result="b32"), expected)
    # sm_90 adds half a place to what is finite and cuts everything.
    finite = codes & 0x7FFFFFFF < 0x7F800000
    added = np.where(finite, codes + 0x1000, codes) & 0xFFFFE000
    assert np.array_equal(one("cvt.rna.tf32.f32", codes, result="b32"), added)


@pytest.mark.parametrize(
    "target,bits", [("u2", 2), ("s2", 2), ("u4", 4), ("s4", 4), ("u8", 8), ("s8", 8), ("u16", 16), ("s16", 16)]
)
def test_pack(target, bits, rng):
    a, b = (
        np.concatenate([rng.integers(-300, 300, 50), rng.integers(-(1 << 31), 1 << 31, 50)]).astype(np.int32)
        for _ in "ab"
    )
    c = rng.integers(0, 1 << 32, 100, dtype=np.uint32)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if target[0] == "s" else (0, (1 << bits) - 1)
    fields = [np.clip(v.astype(np.int64), low, high) & ((1 << bits) - 1) for v in (a, b)]
    packed = fields[1] | fields[0] << bits
    if bits == 16:
        got = one(f"cvt.pack.sat.{target}.s32", a, b, result="b32")
    else:
        got = one(f"cvt.pack.sat.{target}.s32.b32", a, b, c, result="b32")
        packed = packed | c.astype(np.int64) << 2 * bits
    assert np.array_equal(got, packed & 0xFFFFFFFF)
