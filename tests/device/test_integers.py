"""Integer arithmetic on the card against Python's: every type, edge values in every pair."""

import numpy as np
import pytest
from device_rows import COMPARISONS, INTEGERS, NUMPY, check, edges


def pairs(kind, rng):
    values = edges(kind, rng)
    left = np.array([x for x in values for _ in values], NUMPY[kind])
    right = np.array([y for _ in values for y in values], NUMPY[kind])
    return left, right


def wrap(value, kind):
    """Python's integer in two's complement of the type's width."""
    info = np.iinfo(NUMPY[kind])
    value &= (1 << info.bits) - 1
    return value - (1 << info.bits) if info.min < 0 and value >> (info.bits - 1) else value


def truncated(x, y):
    return 0 if y == 0 else (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)


def shift(x, y, kind, left):
    info = np.iinfo(NUMPY[kind])
    count = y % (1 << info.bits)  # a negative count is a huge one
    if count >= info.bits:
        return -1 if x < 0 and not left else 0
    return x << count if left else x >> count


INTEGER_OPERATORS = {
    "a + b": lambda x, y, k: x + y,
    "a - b": lambda x, y, k: x - y,
    "a * b": lambda x, y, k: x * y,
    "a // b": lambda x, y, k: x // y if y else 0,
    "a % b": lambda x, y, k: x % y if y else 0,
    "a / b": lambda x, y, k: truncated(x, y),
    "a & b": lambda x, y, k: x & y,
    "a | b": lambda x, y, k: x | y,
    "a ^ b": lambda x, y, k: x ^ y,
    "a << b": lambda x, y, k: shift(x, y, k, True),
    "a >> b": lambda x, y, k: shift(x, y, k, False),
    "~a": lambda x, y, k: ~x,
    "min(a, b)": lambda x, y, k: min(x, y),
    "max(a, b)": lambda x, y, k: max(x, y),
    "a if a < b else b": lambda x, y, k: min(x, y),
    "(a * 3) // 2": lambda x, y, k: wrap(x * 3, k) // 2,
    "a % 7": lambda x, y, k: x % 7,
    "a // 8": lambda x, y, k: x // 8,
}


@pytest.mark.parametrize("kind", [*INTEGERS, "Int", "UInt"])
def test_integer_operators(kind, run_rows, rng):
    a, b = pairs(kind, rng)
    operators = dict(INTEGER_OPERATORS)
    if np.iinfo(NUMPY[kind]).min < 0:
        operators["-a"] = lambda x, y, k: -x
        operators["abs(a)"] = lambda x, y, k: abs(x)
    rows = [(text, kind) for text in operators] + [(text, "Bool") for text in COMPARISONS]
    found = run_rows([kind, kind], [a, b], rows)
    expected = [
        np.array([wrap(f(int(x), int(y), kind), kind) for x, y in zip(a, b, strict=True)], NUMPY[kind])
        for f in operators.values()
    ]
    expected += [eval(text, {"a": a, "b": b}) for text in COMPARISONS]
    check(rows, found, expected, a, b)


def test_integer_conversions_keep_the_low_bits(run_rows, rng):
    for kind in INTEGERS:
        a = np.array(edges(kind, rng, 100), NUMPY[kind])
        rows = [(f"{to}(a)", to) for to in INTEGERS]
        expected = [np.array([wrap(int(x), to) for x in a], NUMPY[to]) for to in INTEGERS]
        check(rows, run_rows([kind], [a], rows), expected, a)
