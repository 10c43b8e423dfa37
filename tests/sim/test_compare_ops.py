"""Comparison and selection against NumPy's."""

import numpy as np
import pytest
from lane_arrays import compute, one

from ptxdsl.sim.numbers import decode

INTEGER = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
UNSIGNED = {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}


def ordered(compare):
    return lambda a, b: compare(a, b) & ~np.isnan(a) & ~np.isnan(b)


def unordered(compare):
    return lambda a, b: compare(a, b) | np.isnan(a) | np.isnan(b)


FLOAT = {
    **{name: ordered(compare) for name, compare in INTEGER.items()},
    **{f"{name}u": unordered(compare) for name, compare in INTEGER.items()},
    "num": lambda a, b: ~np.isnan(a) & ~np.isnan(b),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}


def pairs(values):
    return np.repeat(values, len(values)), np.tile(values, len(values))


def compared(names, type, a, b):
    body = "\n".join(f"setp.{name}.{type} %p{i}|%q{i}, %a, %b;" for i, name in enumerate(names))
    outputs = {f"%{letter}{i}": "pred" for letter in "pq" for i in range(len(names))}
    return compute(body, {"%a": a, "%b": b}, outputs)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_integers(bits):
    top = 1 << (bits - 1)
    raw = np.array([0, 1, 2, top - 1, top, top + 1, 2 * top - 1, 0x1234], f"u{bits // 8}")
    a, b = pairs(raw)
    for type, names in (
        (f"u{bits}", {**INTEGER, **UNSIGNED}),
        (f"s{bits}", INTEGER),
        (f"b{bits}", {"eq": np.equal, "ne": np.not_equal}),
    ):
        x, y = (v.view(f"i{bits // 8}") if type[0] == "s" else v for v in (a, b))
        found = compared(names, type, a, b)
        for i, compare in enumerate(names.values()):
            assert np.array_equal(found[f"%p{i}"], compare(x, y))
            assert np.array_equal(found[f"%q{i}"], ~compare(x, y))


FLOATS = np.array([0.0, -0.0, 1, -1, 1.5, 2.0**-140, -(2.0**-140), np.inf, -np.inf, np.nan, 2.0**-126], np.float32)


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_floats(type):
    a, b = pairs(FLOATS.astype({"f32": np.float32, "f64": np.float64}[type]))
    found = compared(FLOAT, type, a, b)
    for i, compare in enumerate(FLOAT.values()):
        assert np.array_equal(found[f"%p{i}"], compare(a, b))
        assert np.array_equal(found[f"%q{i}"], ~compare(a, b))


def test_flushed_floats():
    a, b = pairs(FLOATS)
    x, y = (np.where(np.abs(v) < 2.0**-126, 0, v) for v in (a, b))
    found = compared([f"{name}.ftz" for name in FLOAT], "f32", a, b)
    for i, compare in enumerate(FLOAT.values()):
        assert np.array_equal(found[f"%p{i}"], compare(x, y))


HALF_CODES = np.array([0, 0x8000, 1, 0x8001, 0x3C00, 0x3F80, 0xBC00, 0x7C00, 0xFC00, 0x7F80, 0x7FFF, 0x7BFF], np.uint16)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_halves_alone_and_in_pairs(kind):
    a, b = pairs(HALF_CODES)
    x, y = decode(a, kind), decode(b, kind)
    found = compared(FLOAT, kind, a, b)
    for i, compare in enumerate(FLOAT.values()):
        assert np.array_equal(found[f"%p{i}"], compare(x, y))
    # The second destination of a pair is the upper halves' comparison.
    a2, b2 = (v.astype(np.uint32) | np.roll(v, 5).astype(np.uint32) << 16 for v in (a, b))
    found = compared(FLOAT, f"{kind}x2", a2, b2)
    for i, compare in enumerate(FLOAT.values()):
        assert np.array_equal(found[f"%p{i}"], compare(x, y))
        assert np.array_equal(found[f"%q{i}"], compare(np.roll(x, 5), np.roll(y, 5)))


@pytest.mark.parametrize("boolean,combine", [("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)])
def test_boolean_combination(boolean, combine):
    a, b = pairs(np.array([1, 2, 3], np.int32))
    c = np.arange(len(a)) % 2 == 0
    destinations = ["%p|%q, %a, %b, %c", "%r, %a, %b, !%c", "_|%s, %a, %b, %c"]
    body = " ".join(f"setp.lt.{boolean}.s32 {operands};" for operands in destinations)
    found = compute(body, {"%a": a, "%b": b, "%c": c}, {f"%{name}": "pred" for name in "pqrs"})
    assert np.array_equal(found["%p"], combine(a < b, c))
    assert np.array_equal(found["%q"], combine(a >= b, c))
    assert np.array_equal(found["%r"], combine(a < b, ~c))
    assert np.array_equal(found["%s"], found["%q"])


def test_set():
    a, b = pairs(np.array([1, 2, 3], np.int32))
    less = a < b
    assert np.array_equal(
        one("set.lt.u32.s32", a, b, result="u32"), np.where(less, np.uint32(0xFFFFFFFF), np.uint32(0))
    )
    assert np.array_equal(one("set.lt.f32.s32", a, b, result="f32"), less.astype(np.float32))
    with_predicate = compute("set.lt.xor.s32.s32 %d, %a, %b, %c;", {"%a": a, "%b": b, "%c": ~less}, {"%d": "s32"})
    assert np.all(with_predicate["%d"] == -1)


def test_set_of_halves():
    a, b = np.array([0x3C00, 0x4000, 0x7FFF] * 3, np.uint16), np.array([0x4000] * 9, np.uint16)
    less = np.array([True, False, False] * 3)
    assert np.array_equal(one("set.lt.f16.f16", a, b, result="b16"), np.where(less, 0x3C00, 0))
    assert np.array_equal(one("set.lt.u16.f16", a, b, result="b16"), np.where(less, 0xFFFF, 0))
    a2, b2 = (v.astype(np.uint32) | np.uint32(0x3C00_0000) for v in (a, b))
    assert np.array_equal(
        one("set.eq.f16x2.f16x2", a2, b2, result="b32"), np.where(a == 0x4000, 0x3C003C00, 0x3C000000)
    )
    assert np.array_equal(one("set.eq.u32.f16x2", a2, b2, result="b32"), np.where(a == 0x4000, 0xFFFFFFFF, 0xFFFF0000))
    ones = np.array([0x3F80], np.uint16)
    assert one("set.eq.bf16.bf16", ones, ones, result="b16")[0] == 0x3F80


@pytest.mark.parametrize("bits,dtype", [(16, np.uint16), (32, np.uint32), (64, np.uint64)])
def test_selection(bits, dtype):
    a, b = np.arange(8).astype(dtype), np.arange(100, 108).astype(dtype)
    c = np.array([0, -1, 5, -5, 1 << 30, -(1 << 31), 7, 0], np.int32)
    assert np.array_equal(one(f"slct.b{bits}.s32", a, b, c, result=f"b{bits}"), np.where(c >= 0, a, b))
    assert np.array_equal(one(f"selp.b{bits}", a, b, c > 2, result=f"b{bits}"), np.where(c > 2, a, b))
    x = np.array([0.0, -0.0, 1, -1, np.nan, -(2.0**-140), np.inf, -np.inf], np.float32)
    assert np.array_equal(one(f"slct.u{bits}.f32", a, b, x, result=f"b{bits}"), np.where(x >= 0, a, b))
    flushed = np.where(x == -(2.0**-140), 0, x)
    assert np.array_equal(one(f"slct.ftz.u{bits}.f32", a, b, x, result=f"b{bits}"), np.where(flushed >= 0, a, b))


@pytest.mark.parametrize("type,dtype", [("f32", np.float32), ("f64", np.float64)])
def test_testp(type, dtype):
    least = np.finfo(dtype).smallest_normal
    x = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, -np.nan, least, least / 2, -least / 2], dtype)
    subnormal = (x != 0) & (np.abs(x) < least)
    expected = {
        "finite": np.isfinite(x),
        "infinite": np.isinf(x),
        "number": ~np.isnan(x),
        "notanumber": np.isnan(x),
        "normal": np.isfinite(x) & ~subnormal,  # zeros count as normal
        "subnormal": subnormal,
    }
    for name, wanted in expected.items():
        assert np.array_equal(one(f"testp.{name}.{type}", x, result="pred"), wanted), name
