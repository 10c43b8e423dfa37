"""Logic, shifts, fields and byte permutation against Python's integers, by the ISA's definitions bit by bit."""

import numpy as np
import pytest
from lane_arrays import compute, many, one


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def words(rng, count=300, bits=32):
    dtype = f"u{bits // 8}"
    special = np.array([0, 1, 2, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 0x80 << (bits - 16)], dtype)
    return np.concatenate([special, rng.integers(0, 1 << bits, count, dtype=np.uint64, endpoint=False).astype(dtype)])


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_logic(bits, rng):
    a, b = words(rng, bits=bits), np.roll(words(rng, bits=bits), 3)
    found = many([f"{name}.b{bits}" for name in ("and", "or", "xor")], [a, b], [f"b{bits}"] * 3)
    assert np.array_equal(found, [a & b, a | b, a ^ b])
    found = many([f"{name}.b{bits}" for name in ("not", "cnot")], [a], [f"b{bits}"] * 2)
    assert np.array_equal(found, [~a, (a == 0).astype(a.dtype)])


def test_logic_of_predicates():
    p, q = np.array([False, False, True, True]), np.array([False, True, False, True])
    found = many([f"{name}.pred" for name in ("and", "or", "xor")], [p, q], ["pred"] * 3)
    assert np.array_equal(found, [p & q, p | q, p ^ q])
    assert np.array_equal(one("not.pred", p, result="pred"), ~p)


AMOUNTS = [*range(70), 127, 128, 255, 256, 1 << 16, (1 << 16) + 3, 1 << 31, (1 << 32) - 1]


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shifts_by_any_amount(bits, rng):
    values = words(rng, 8, bits)
    a, amounts = np.repeat(values, len(AMOUNTS)), np.tile(np.array(AMOUNTS, np.uint32), len(values))
    names = [f"shl.b{bits}", f"shr.b{bits}", f"shr.u{bits}", f"shr.s{bits}"]
    left, logical, unsigned, arithmetic = many(names, [a, amounts], [f"b{bits}"] * 4)
    for x, n, *got in zip(a, amounts, left, logical, unsigned, arithmetic, strict=True):
        x, n, mask = int(x), int(n), (1 << bits) - 1
        down = x >> min(n, 64)
        assert got == [(x << min(n, 64)) & mask, down, down, (signed(x, bits) >> min(n, 64)) & mask]


@pytest.mark.parametrize("amount", [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 100])
@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shifts_by_constants(bits, amount, rng):
    a = words(rng, 20, bits)
    for name in (f"shl.b{bits}", f"shr.u{bits}", f"shr.s{bits}"):
        constant = one(f"{name} %d0, %a, {amount};", a, result=f"b{bits}")
        assert np.array_equal(constant, one(name, a, np.full(len(a), amount, np.uint32), result=f"b{bits}"))


def test_funnel_shifts(rng):
    a, b = words(rng), words(rng)[::-1].copy()
    c = np.resize(np.array(AMOUNTS, np.uint32), len(a))
    names = [f"shf.{direction}.{mode}.b32" for direction in "lr" for mode in ("wrap", "clamp")]
    found = many(names, [a, b, c], ["b32"] * 4)
    for x, y, n, *got in zip(a, b, c, *found, strict=True):
        pair = int(y) << 32 | int(x)
        wrapped, clamped = int(n) & 31, min(int(n), 32)
        left = [(pair << k >> 32) & 0xFFFFFFFF for k in (wrapped, clamped)]
        right = [(pair >> k) & 0xFFFFFFFF for k in (wrapped, clamped)]
        assert got == left + right


@pytest.mark.parametrize("bits", [32, 64])
def test_counts_and_reversal(bits, rng):
    a = np.concatenate([words(rng, bits=bits), np.array([1 << i for i in range(bits)], f"u{bits // 8}")])
    ones, zeros = many([f"{name}.b{bits}" for name in ("popc", "clz")], [a], ["u32"] * 2)
    backwards = one(f"brev.b{bits}", a, result=f"b{bits}")
    for x, n, z, r in zip(a, ones, zeros, backwards, strict=True):
        text = f"{int(x):0{bits}b}"
        assert n == text.count("1") and z == bits - int(x).bit_length() and r == int(text[::-1], 2)


@pytest.mark.parametrize("bits", [32, 64])
def test_bfind(bits, rng):
    a = np.concatenate([words(rng, bits=bits), np.array([1 << i for i in range(bits)], f"u{bits // 8}")])
    names = [f"bfind{shift}.{sign}{bits}" for sign in "us" for shift in ("", ".shiftamt")]
    found = many(names, [a], ["u32"] * 4)
    for x, *got in zip(a, *found, strict=True):
        x = int(x)
        same_sign = ~signed(x, bits) if x >> (bits - 1) else x
        expected = []
        for value in (x, same_sign):
            place = value.bit_length() - 1
            expected += [place % (1 << 32), (bits - 1 - place if value else -1) % (1 << 32)]
        assert got == expected


POSITIONS = [0, 1, 5, 15, 16, 31, 32, 33, 40, 63, 64, 65, 200, 255, 256, 300]


def fields(a):
    """Every pair of positions and lengths, with values to go round."""
    pos, length = (grid.reshape(-1).astype(np.uint32) for grid in np.meshgrid(POSITIONS, POSITIONS))
    return np.resize(a, len(pos)), pos, length


def extracted(a, pos, length, bits, is_signed):
    """bfe as the ISA defines it."""
    pos, length, msb = pos & 255, length & 255, bits - 1
    sign = 0 if not is_signed or length == 0 else a >> min(pos + length - 1, msb) & 1
    return sum((a >> (pos + i) & 1 if i < length and pos + i <= msb else sign) << i for i in range(bits))


@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
def test_bfe(type, rng):
    bits = int(type[1:])
    a, pos, length = fields(words(rng, bits=bits))
    got = one(f"bfe.{type}", a, pos, length, result=f"b{bits}")
    expected = [extracted(int(x), int(p), int(n), bits, type[0] == "s") for x, p, n in zip(a, pos, length, strict=True)]
    assert [int(v) for v in got] == expected


@pytest.mark.parametrize("pos,length", [(0, 8), (8, 8), (24, 8), (31, 1), (16, 32), (3, 0), (40, 2), (264, 7), (0, 32)])
@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
def test_bfe_of_constants(type, pos, length, rng):
    bits = int(type[1:])
    a = words(rng, 30, bits)
    got = one(f"bfe.{type} %d0, %a, {pos}, {length};", a, result=f"b{bits}")
    assert [int(v) for v in got] == [extracted(int(x), pos, length, bits, type[0] == "s") for x in a]


@pytest.mark.parametrize("bits", [32, 64])
def test_bfi(bits, rng):
    a, pos, length = fields(words(rng, bits=bits))
    b = np.resize(words(rng, bits=bits)[::-1].copy(), len(a))
    got = one(f"bfi.b{bits}", a, b, pos, length, result=f"b{bits}")
    for x, y, p, n, d in zip(a, b, pos, length, got, strict=True):
        p, n = int(p) & 255, int(n) & 255
        mask = sum(1 << (p + i) for i in range(n) if p + i < bits)
        assert d == (int(y) & ~mask) | ((int(x) << p) & mask)


@pytest.mark.parametrize(
    "pos,length", [(0, 8), (24, 8), (31, 1), (16, 32), (3, 0), (255, 4), (0, 32), (256, 4), (8, 255)]
)
def test_bfi_of_constants(pos, length, rng):
    a, b = words(rng, 30), np.roll(words(rng, 30), 5)
    got = one(f"bfi.b32 %d0, %a, %b, {pos}, {length};", a, b, result="b32")
    registers = [np.full(len(a), v, np.uint32) for v in (pos, length)]
    assert np.array_equal(got, one("bfi.b32", a, b, *registers, result="b32"))


def test_bmsk():
    a, b = (grid.reshape(-1).astype(np.uint32) for grid in np.meshgrid(POSITIONS, POSITIONS))
    clamp, wrap = many(["bmsk.clamp.b32", "bmsk.wrap.b32"], [a, b], ["b32"] * 2)
    for start, count, c, w in zip(a, b, clamp, wrap, strict=True):
        start, count = int(start), int(count)
        assert c == ((1 << min(count, 64)) - 1 << min(start, 64)) & 0xFFFFFFFF
        assert w == ((1 << (count & 31)) - 1 << (start & 31)) & 0xFFFFFFFF


def test_szext(rng):
    n = np.array(AMOUNTS, np.uint32)
    a = np.resize(words(rng), len(n) * 4)
    n = np.tile(n, 4)
    names = [f"szext.{mode}.{type}" for mode in ("clamp", "wrap") for type in ("u32", "s32")]
    found = many(names, [a, n], ["b32"] * 4)
    for x, count, *got in zip(a, n, *found, strict=True):
        expected = []
        for size in (min(int(count), 32), int(count) & 31):
            low = int(x) & ((1 << size) - 1)
            expected += [low, low | (-1 << size) & 0xFFFFFFFF if size and low >> (size - 1) else low]
        assert got == expected


def nth(mask, base, offset):
    """fns as the ISA defines it."""
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    count, step, place = abs(offset) - 1, 1 if offset > 0 else -1, base
    while 0 <= place < 32:
        if mask >> place & 1:
            if count == 0:
                return place
            count -= 1
        place += step
    return 0xFFFFFFFF


def test_fns(rng):
    mask = np.repeat(words(rng, 60), 20)
    base = rng.integers(0, 32, len(mask)).astype(np.uint32)
    offset = np.resize(np.array([*range(-8, 9), 31, -32, 1 << 30, -(1 << 31)], np.int32), len(mask))
    got = one("fns.b32", mask, base, offset, result="b32")
    expected = [nth(int(m), int(b), int(o)) for m, b, o in zip(mask, base, offset, strict=True)]
    assert [int(v) for v in got] == expected
    # The ISA's own examples.
    examples = one(
        "fns.b32", np.full(4, 0xAAAAAAAA, np.uint32), np.uint32([3, 3, 2, 2]), np.int32([1, -1, 1, -1]), result="b32"
    )
    assert list(examples) == [3, 3, 3, 1]


def test_lop3_has_all_256_functions():
    a, b, c = (np.full(8, bits, np.uint32) for bits in (0xF0, 0xCC, 0xAA))
    for first in range(0, 256, 64):
        body = [f"lop3.b32 %d{i}, %a, %b, %c, {first + i};" for i in range(64)]
        found = many_lop3(body, a, b, c)
        # The ISA defines the table by what the function makes of these three constants.
        assert found == [first + i for i in range(64)]


def many_lop3(body, a, b, c):
    found = compute("\n".join(body), {"%a": a, "%b": b, "%c": c}, {f"%d{i}": "b32" for i in range(len(body))})
    return [int(values[0]) & 0xFF for values in found.values()]


def test_lop3_with_a_predicate():
    a = np.array([0, 1, 0, 1], np.uint32)
    q = np.array([False, False, True, True])
    body = "lop3.or.b32 %d|%p, %a, %a, %a, 0x80, %q; lop3.and.b32 _|%r, %a, %a, %a, 0x80, !%q;"
    found = compute(body, {"%a": a, "%q": q}, {"%d": "b32", "%p": "pred", "%r": "pred"})
    assert np.array_equal(found["%d"], a)
    assert np.array_equal(found["%p"], (a != 0) | q)
    assert np.array_equal(found["%r"], (a != 0) & ~q)


# Bytes of the result, highest first, for control 0 to 3: the ISA's table.
PRMT_MODES = {
    "f4e": [(3, 2, 1, 0), (4, 3, 2, 1), (5, 4, 3, 2), (6, 5, 4, 3)],
    "b4e": [(5, 6, 7, 0), (6, 7, 0, 1), (7, 0, 1, 2), (0, 1, 2, 3)],
    "rc8": [(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)],
    "ecl": [(3, 2, 1, 0), (3, 2, 1, 1), (3, 2, 2, 2), (3, 3, 3, 3)],
    "ecr": [(0, 0, 0, 0), (1, 1, 1, 0), (2, 2, 1, 0), (3, 2, 1, 0)],
    "rc16": [(1, 0, 1, 0), (3, 2, 3, 2), (1, 0, 1, 0), (3, 2, 3, 2)],
}


def permuted(a, b, control):
    source = [(b << 32 | a) >> (8 * i) & 255 for i in range(8)]
    result = 0
    for i in range(4):
        selector = control >> (4 * i) & 15
        byte = source[selector & 7]
        result |= ((0xFF if byte & 0x80 else 0) if selector & 8 else byte) << (8 * i)
    return result


def test_prmt(rng):
    a, b, c = words(rng), np.roll(words(rng), 1), np.roll(words(rng), 2)
    got = one("prmt.b32", a, b, c, result="b32")
    assert [int(v) for v in got] == [permuted(int(x), int(y), int(z)) for x, y, z in zip(a, b, c, strict=True)]
    for control in (0x3210, 0x7654, 0x5410, 0x7632, 0x0123, 0x9910, 0xBA98, 0x8880, 0xFEDC, 0x4440, 0x17777):
        got = one(f"prmt.b32 %d0, %a, %b, {control};", a, b, result="b32")
        assert [int(v) for v in got] == [permuted(int(x), int(y), control) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("mode", PRMT_MODES)
def test_prmt_modes(mode):
    a, b = np.full(8, 0x03020100, np.uint32), np.full(8, 0x07060504, np.uint32)
    c = np.arange(8, dtype=np.uint32)
    got = one(f"prmt.b32.{mode}", a, b, c, result="b32")
    assert [tuple(int(v) >> shift & 255 for shift in (24, 16, 8, 0)) for v in got[:4]] == PRMT_MODES[mode]
    assert np.array_equal(got[:4], got[4:])  # only two bits of the control count
