"""Integer arithmetic against Python's integers, on edge values and random ones."""

import itertools

import numpy as np
import pytest
from lane_arrays import compute, many, one

TYPES = ["u16", "s16", "u32", "s32", "u64", "s64"]


def width(type):
    return int(type[1:])


def wrap(value, type):
    """A Python integer in two's complement of the type's width."""
    value &= (1 << width(type)) - 1
    return value - (1 << width(type)) if type[0] == "s" and value >> (width(type) - 1) else value


def clamp(value, type):
    low = -(1 << (width(type) - 1)) if type[0] == "s" else 0
    high = (1 << (width(type) - 1 if type[0] == "s" else width(type))) - 1
    return min(max(value, low), high)


def array(values, type):
    return np.array([wrap(int(v), type) for v in values], f"{'i' if type[0] == 's' else 'u'}{width(type) // 8}")


def edges(type, rng, random=6):
    bits = width(type)
    values = [0, 1, 2, 3, 7, -1, -2, (1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << (bits - 1)) + 1, 1 << (bits // 2)]
    values += [0x5555555555555555, 1000003, *(int(v) for v in rng.integers(0, 1 << 63, random))]
    return array(dict.fromkeys(wrap(v, type) for v in values), type)


def operands(type, arity, rng, limit=2000):
    values = edges(type, rng)
    if arity == 1:
        return [np.concatenate([values, array(rng.integers(0, 1 << 63, 100), type)])]
    rows = list(itertools.product(values, repeat=2)) if arity == 2 else None
    if rows is None:
        rows = [tuple(values[i] for i in pick) for pick in rng.integers(0, len(values), (limit, arity))]
    return [np.array(column) for column in zip(*rows, strict=True)]


def python(arrays):
    return zip(*([int(v) for v in a] for a in arrays), strict=True)


def quotient(a, b):
    return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else -1


def remainder(a, b):
    return a - quotient(a, b) * b if b else -1


BINARY = {
    "add": lambda a, b, t: a + b,
    "sub": lambda a, b, t: a - b,
    "mul.lo": lambda a, b, t: a * b,
    "mul.hi": lambda a, b, t: (a * b) >> width(t),
    "div": lambda a, b, t: quotient(a, b),  # by zero: all ones
    "rem": lambda a, b, t: remainder(a, b),
    "min": lambda a, b, t: min(a, b),
    "max": lambda a, b, t: max(a, b),
}
TERNARY = {
    "mad.lo": lambda a, b, c, t: a * b + c,
    "mad.hi": lambda a, b, c, t: ((a * b) >> width(t)) + c,
    "sad": lambda a, b, c, t: c + abs(a - b),
}
UNARY = {"abs": lambda a, t: abs(a), "neg": lambda a, t: -a}


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("type", TYPES)
def test_arithmetic(type, rng):
    for table, arity in ((BINARY, 2), (TERNARY, 3), (UNARY, 1)):
        if arity == 1 and type[0] == "u":
            continue
        values = operands(type, arity, rng)
        found = many([f"{name}.{type}" for name in table], values, [type] * len(table))
        for (name, reference), got in zip(table.items(), found, strict=True):
            expected = array([reference(*row, type) for row in python(values)], type)
            assert np.array_equal(got, expected), name


@pytest.mark.parametrize("optimise", [0, 1])
def test_the_code_generators_levels_agree(optimise, rng):
    values = operands("s32", 2, rng)
    found = many([f"{name}.s32" for name in BINARY], values, ["s32"] * len(BINARY), optimise)
    for (name, reference), got in zip(BINARY.items(), found, strict=True):
        assert np.array_equal(got, array([reference(*row, "s32") for row in python(values)], "s32")), name


@pytest.mark.parametrize("type", ["u16", "s16", "u32", "s32"])
def test_wide_products(type, rng):
    wide = f"{type[0]}{2 * width(type)}"
    a, b = operands(type, 2, rng)
    assert np.array_equal(one(f"mul.wide.{type}", a, b, result=wide), array([x * y for x, y in python([a, b])], wide))
    c = array(rng.integers(0, 1 << 63, len(a)), wide)
    expected = array([x * y + z for x, y, z in python([a, b, c])], wide)
    assert np.array_equal(one(f"mad.wide.{type}", a, b, c, result=wide), expected)


def test_saturation(rng):
    a, b = operands("s32", 2, rng)
    c = array(rng.integers(0, 1 << 63, len(a)), "s32")
    rows = {
        "add.sat.s32": lambda x, y, z: x + y,
        "sub.sat.s32": lambda x, y, z: x - y,
    }
    found = many(list(rows), [a, b], ["s32"] * 2)
    for reference, got in zip(rows.values(), found, strict=True):
        assert np.array_equal(got, array([clamp(reference(*row), "s32") for row in python([a, b, c])], "s32"))
    found = many(["mad.hi.sat.s32", "mad24.hi.sat.s32"], [a, b, c], ["s32"] * 2)
    assert np.array_equal(found[0], array([clamp((x * y >> 32) + z, "s32") for x, y, z in python([a, b, c])], "s32"))
    expected = [clamp(wrap(low24(x, "s") * low24(y, "s") >> 16, "s32") + z, "s32") for x, y, z in python([a, b, c])]
    assert np.array_equal(found[1], array(expected, "s32"))


def low24(x, sign):
    x &= 0xFFFFFF
    return x - (1 << 24) if sign == "s" and x >> 23 else x


@pytest.mark.parametrize("type", ["u32", "s32"])
def test_products_of_24_bits(type, rng):
    a, b, c = operands(type, 3, rng)
    product = [low24(x, type[0]) * low24(y, type[0]) for x, y in python([a, b])]
    found = many([f"mul24.{mode}.{type}" for mode in ("lo", "hi")], [a, b], [type] * 2)
    assert np.array_equal(found[0], array(product, type))
    assert np.array_equal(found[1], array([p >> 16 for p in product], type))
    found = many([f"mad24.{mode}.{type}" for mode in ("lo", "hi")], [a, b, c], [type] * 2)
    assert np.array_equal(found[0], array([p + int(z) for p, z in zip(product, c, strict=True)], type))
    assert np.array_equal(found[1], array([(p >> 16) + int(z) for p, z in zip(product, c, strict=True)], type))


@pytest.mark.parametrize("type", ["u16x2", "s16x2", "u8x4", "s8x4"])
def test_packed_integers(type, rng):
    bits = int(type[1:].split("x")[0])
    element = f"{type[0]}{bits}"
    words = [
        np.concatenate([rng.integers(0, 1 << 32, 300, dtype=np.uint32), [0, 0x80008000, 0x7FFF8000, 0x80FF7F01]])
        for _ in "ab"
    ]
    words = [w.astype(np.uint32) for w in words]
    operations = {"add": lambda x, y: x + y, "add.sat": lambda x, y: clamp(x + y, element), "min": min, "max": max}
    if bits == 8:
        operations |= {"sub": lambda x, y: x - y}
    if type[0] == "s":
        operations |= {"min.relu": lambda x, y: max(min(x, y), 0), "max.relu": lambda x, y: max(x, y, 0)}

    def parts(word):
        return [wrap(word >> shift, element) for shift in range(0, 32, bits)]

    found = many([f"{name}.{type}" for name in operations], words, ["u32"] * len(operations))
    for reference, got in zip(operations.values(), found, strict=True):
        for a, b, d in python([*words, got]):
            assert parts(d) == [wrap(reference(x, y), element) for x, y in zip(parts(a), parts(b), strict=True)]


def test_relu(rng):
    a, b = operands("s32", 2, rng)
    found = many(["min.relu.s32", "max.relu.s32"], [a, b], ["s32"] * 2)
    assert np.array_equal(found, [np.maximum(np.minimum(a, b), 0), np.maximum(np.maximum(a, b), 0)])


def wide_words(rng, count=300):
    """Random 128-bit integers as four arrays of 32-bit words, the lowest first; many words are all ones or zero."""
    words = rng.integers(0, 1 << 32, (4, count), dtype=np.uint32)
    return np.where(
        rng.integers(0, 3, words.shape) == 0, np.uint32(0xFFFFFFFF), words * (rng.integers(0, 4, words.shape) > 0)
    ).astype(np.uint32)


def joined(words):
    return [sum(int(w) << (32 * i) for i, w in enumerate(column)) for column in zip(*words, strict=True)]


@pytest.mark.parametrize("operation", ["add", "sub"])
def test_carries_run_through_long_sums(operation, rng):
    a, b = wide_words(rng), wide_words(rng)
    registers = {f"%{name}{i}": words[i] for name, words in (("a", a), ("b", b)) for i in range(4)}
    body = f"{operation}.cc.u32 %d0, %a0, %b0;"
    body += f"{operation}c.cc.u32 %d1, %a1, %b1; {operation}c.cc.s32 %d2, %a2, %b2; {operation}c.u32 %d3, %a3, %b3;"
    found = compute(body, registers, {f"%d{i}": "u32" for i in range(4)})
    sign = 1 if operation == "add" else -1
    expected = [(x + sign * y) % (1 << 128) for x, y in zip(joined(a), joined(b), strict=True)]
    assert joined([found[f"%d{i}"] for i in range(4)]) == expected


def test_carries_of_64_bits_and_borrows_read_as_carries(rng):
    a, b = (rng.integers(0, 1 << 64, 200, dtype=np.uint64) for _ in "ab")
    b[:50] = a[:50]
    body = "add.cc.u64 %d0, %a, %b; addc.u64 %d1, 0, 0; sub.cc.u64 %d2, %a, %b; addc.u64 %d3, 0, 0; subc.u64 %d4, 0, 0;"
    body = body.replace("subc", "sub.cc.u64 %d2, %a, %b; subc")
    found = compute(body, {"%a": a, "%b": b}, {f"%d{i}": "u64" for i in range(5)})
    assert [int(v) for v in found["%d1"]] == [(int(x) + int(y)) >> 64 for x, y in zip(a, b, strict=True)]
    # The card's flag after a subtraction is "no borrow": ptxas makes one register of both kinds of chain.
    assert np.array_equal(found["%d3"], (a >= b).astype(np.uint64))
    assert np.array_equal(found["%d4"], np.where(a < b, np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0)))


def test_product_of_128_bits(rng):
    """The chain of mad.cc and madc that the ISA has as its example."""
    words = [wide_words(rng)[i] for i in range(4)]
    registers = dict(zip(("%r4", "%r5", "%r6", "%r7"), words, strict=True))
    body = """
    mul.lo.u32 %r0, %r4, %r6;         mul.hi.u32 %r1, %r4, %r6;
    mad.lo.cc.u32 %r1, %r5, %r6, %r1; madc.hi.u32 %r2, %r5, %r6, 0;
    mad.lo.cc.u32 %r1, %r4, %r7, %r1; madc.hi.cc.u32 %r2, %r4, %r7, %r2; addc.u32 %r3, 0, 0;
    mad.lo.cc.u32 %r2, %r5, %r7, %r2; madc.hi.u32 %r3, %r5, %r7, %r3;"""
    found = compute(body, registers, {f"%r{i}": "u32" for i in range(4)})
    expected = [x * y for x, y in zip(joined(words[:2]), joined(words[2:]), strict=True)]
    assert joined([found[f"%r{i}"] for i in range(4)]) == expected


@pytest.mark.parametrize("b_type", ["u32", "s32"])
@pytest.mark.parametrize("a_type", ["u32", "s32"])
def test_dot_products(a_type, b_type, rng):
    a, b, c = (rng.integers(0, 1 << 32, 400, dtype=np.uint32) for _ in "abc")

    def parts(word, bits, type):
        return [wrap(word >> shift, f"{type[0]}{bits}") for shift in range(0, 32, bits)]

    names = [f"dp4a.{a_type}.{b_type}", f"dp2a.lo.{a_type}.{b_type}", f"dp2a.hi.{a_type}.{b_type}"]
    dp4a, low, high = many(names, [a, b, c], ["u32"] * 3)
    for x, y, z, d4, dl, dh in python([a, b, c, dp4a, low, high]):
        bytes_a, bytes_b, halves = parts(x, 8, a_type), parts(y, 8, b_type), parts(x, 16, a_type)
        assert d4 == (z + sum(p * q for p, q in zip(bytes_a, bytes_b, strict=True))) % (1 << 32)
        assert dl == (z + halves[0] * bytes_b[0] + halves[1] * bytes_b[1]) % (1 << 32)
        assert dh == (z + halves[0] * bytes_b[2] + halves[1] * bytes_b[3]) % (1 << 32)


VIDEO = {
    "vadd": lambda x, y: x + y,
    "vsub": lambda x, y: x - y,
    "vabsdiff": lambda x, y: abs(x - y),
    "vmin": min,
    "vmax": max,
    "vavrg": lambda x, y: (x + y + 1 if x + y >= 0 else x + y) >> 1,
}


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", VIDEO)
def test_video_instructions_on_parts(name, count, rng):
    a, b, c = (rng.integers(0, 1 << 32, 200, dtype=np.uint32) for _ in "abc")
    bits = 32 // count
    for signs in ("uuu", "sss", "sus", "uss"):
        result, x_type, y_type = (f"{sign}{bits}" for sign in signs)
        types = ".".join(f"{sign}32" for sign in signs)
        plain, bounded, added = many(
            [f"{name}{count}.{types}{end}" for end in ("", ".sat", ".add")], [a, b, c], ["u32"] * 3
        )
        for x, y, z, d, s, t in python([a, b, c, plain, bounded, added]):
            shifts = range(0, 32, bits)
            exact = [VIDEO[name](wrap(x >> i, x_type), wrap(y >> i, y_type)) for i in shifts]
            assert d == sum((v % (1 << bits)) << i for v, i in zip(exact, shifts, strict=True))
            assert s == sum((clamp(v, result) % (1 << bits)) << i for v, i in zip(exact, shifts, strict=True))
            assert t == (z + sum(exact)) % (1 << 32)


def test_scalar_video_instructions(rng):
    a, b, c = (array(rng.integers(0, 1 << 63, 300), "u32") for _ in "abc")
    b %= 40
    rows = {  # of x as u32 and sx as s32, y (small), z as u32 and sz as s32
        "vadd.s32.u32.s32.sat.add": lambda x, sx, y, z, sz: clamp(x + y, "s32") + z,
        "vsub.u32.s32.u32.sat.max": lambda x, sx, y, z, sz: max(clamp(sx - y, "u32"), z),
        "vabsdiff.s32.s32.u32.max": lambda x, sx, y, z, sz: max(wrap(abs(sx - y), "s32"), sz),
        "vset.s32.u32.lt.max": lambda x, sx, y, z, sz: max(int(sx < y), z),
        "vshl.u32.u32.u32.sat.wrap.min": lambda x, sx, y, z, sz: min(clamp(x << (y & 31), "u32"), z),
        "vshr.s32.s32.u32.clamp.min": lambda x, sx, y, z, sz: min(sx >> min(y, 32), sz),
        "vmad.s32.s32.u32.sat.shr7": lambda x, sx, y, z, sz: clamp((sx * y + sz) >> 7, "s32"),
        "vmad.u32.u32.u32.po.shr15": lambda x, sx, y, z, sz: (x * y + z + 1) >> 15,
    }
    found = many(list(rows), [a, b, c], ["u32"] * len(rows))
    for (name, reference), got in zip(rows.items(), found, strict=True):
        for x, y, z, d in python([a, b, c, got]):
            assert d == reference(x, wrap(x, "s32"), y, z, wrap(z, "s32")) % (1 << 32), name
