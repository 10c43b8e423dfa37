"""Instructions of the library at compile time: the bits that NumPy and Python say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ptxdsl

FLOATS = [0.0, -0.0, 0.3, -0.3, 0.5, 1.5, 2.0, 2.5, -2.5, 3.0, 7.25, 1e-40, 1e-20, 3e38, 16777215.0, -1234567.8]
INTEGERS = [0, 1, 2, 7, 8, 0x80, 0xFF, 0x1234, 0x80000000, 0xDEADBEEF, 0xFFFFFFFF, 0x123456789ABCDEF, 2**63, 2**64 - 1]


def bits_of(text: Callable[[object], str], values: list[object], kind: str, dtype: type) -> np.ndarray:
    """What a kernel stores that has each value as a compile-time one."""
    names = "".join(f"    comptime V{i} = {text(value)}\n    res[{i}] = V{i}\n" for i, value in enumerate(values))
    kernel = ptxdsl.loads(f"@kernel\ndef k(res: Pointer[{kind}, MutAnyOrigin]):\n{names}").k
    assert "sqrt" not in kernel.compile().ptx and "popc" not in kernel.compile().ptx
    found = np.zeros(len(values), dtype)
    assert kernel.simulate(found, block=1).finished
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "reference"),
    [("sqrt", np.sqrt), ("recip", np.reciprocal), ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc),
     ("round", np.rint)],
)  # fmt: skip
def test_floats(name: str, reference: Callable[[np.ndarray], np.ndarray], dtype: type) -> None:
    kind = dtype.__name__.title()
    values = np.array(FLOATS, dtype)
    with np.errstate(all="ignore"):
        wanted = reference(values)
    found = bits_of(lambda value: f"{name}({kind}({value!r}))", [float(v) for v in values], kind, dtype)
    same = np.isnan(found) & np.isnan(wanted)
    np.testing.assert_array_equal(found[~same].view(f"u{found.itemsize}"), wanted[~same].view(f"u{found.itemsize}"))


def reversed_bits(value: int, bits: int) -> int:
    return sum(1 << (bits - 1 - i) for i in range(bits) if value >> i & 1)


REFERENCES: dict[str, Callable[[int, int], int]] = {
    "pop_count": lambda value, bits: bin(value).count("1"),
    "count_leading_zeros": lambda value, bits: next((i for i in range(bits) if value >> (bits - 1 - i) & 1), bits),
    "count_trailing_zeros": lambda value, bits: next((i for i in range(bits) if value >> i & 1), bits),
    "bit_reverse": reversed_bits,
    "byte_swap": lambda value, bits: int.from_bytes(value.to_bytes(bits // 8, "big"), "little"),
}


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("name", REFERENCES)
def test_bits(name: str, bits: int) -> None:
    if name == "byte_swap" and bits == 8:
        pytest.skip("one byte")
    values = [value for value in INTEGERS if value < 1 << bits]
    dtype = np.dtype(f"u{bits // 8}").type
    found = bits_of(lambda value: f"{name}(UInt{bits}({value}))", list(values), f"UInt{bits}", dtype)
    assert found.tolist() == [REFERENCES[name](value, bits) for value in values]


def test_the_high_half_of_a_product() -> None:
    products = [(0xFFFFFFFF, 0xFFFFFFFF), (0xDEADBEEF, 3), (1 << 31, 2), (5, 7)]
    found = bits_of(lambda p: f"mulhi(UInt32({p[0]}), UInt32({p[1]}))", list(products), "UInt32", np.uint32)
    assert found.tolist() == [a * b >> 32 for a, b in products]


def test_they_are_known_where_a_constant_must_be() -> None:
    text = """
@kernel(threads=32)
def k[D: Int](res: Pointer[Float32, MutAnyOrigin]):
    comptime SCALE = 1 / sqrt(Float32(D))
    comptime assert SCALE == 0.125
    var values = Array[Float32, Int(sqrt(Float32(D)))](fill=SCALE)
    comptime for i in range(Int(count_trailing_zeros(UInt32(D)))):
        res[i] = values[i]
"""
    res = np.zeros(7, np.float32)
    assert ptxdsl.loads(text).k.specialize(D=64).simulate(res).finished
    assert res.tolist() == [0.125] * 6 + [0]
