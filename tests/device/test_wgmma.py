"""Warpgroup products of tiles against NumPy: types, shapes, majornesses, swizzles, A in registers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxdsl

KERNEL = Path(__file__).with_name("products.pdsl")
# what a small integer is as an 8-bit float: the numbers from 0 on, the negative ones have the top bit set
CODES = {
    "float8_e4m3fn": np.array([0x00, 0x38, 0x40, 0x44, 0x48], np.uint8),
    "float8_e5m2": np.array([0x00, 0x3C, 0x40, 0x42, 0x44], np.uint8),
}
MAP_TYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}
RESULTS = {"float32": np.float32, "float16": np.float16, "int32": np.int32}


def stored(values, dtype):
    """Small integers in a type's bits, as an array that NumPy knows."""
    if dtype == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if dtype in CODES:
        return (CODES[dtype][np.abs(values)] | (values < 0) * 0x80).astype(np.uint8)
    return values.astype(dtype)


@pytest.fixture
def multiply(place, launch, output, rng):
    """multiply(a, b, d, m, n, k, …): the kernel's result, and NumPy's for the same small integers."""

    def run(a, b, d, m, n, k, *, keep=True, start=3, **forms):
        left = rng.integers(0 if a == "uint8" else -4, 5, (m, k))
        right = rng.integers(0 if b == "uint8" else -4, 5, (k, n))

        def tile(matrix, dtype, span):
            array = np.ascontiguousarray(stored(matrix, dtype))
            box = len(array), min(array.shape[1], span // array.itemsize)
            swizzle = "none" if span == 16 else f"{span}B"
            return ptxdsl.TensorMap(place.array(array), box, swizzle=swizzle, data_type=MAP_TYPES.get(dtype, "u8"))

        constants = {"A": f"DType.{a}", "B": f"DType.{b}", "D": f"DType.{d}", "M": m, "N": n, "K": k, **forms}
        kernel = ptxdsl.load(KERNEL)["product"].specialize(**constants)
        found = output(m * n, RESULTS[d])
        maps = (
            tile(left.T if forms.get("A_MN") else left, a, forms.get("A_SPAN", 128)),
            tile(right if forms.get("B_MN") else right.T, b, forms.get("B_SPAN", 128)),
        )
        launch(kernel, 1, 128, *maps, found, start, keep, smem=200 * 1024, arch="sm_90a")
        sign = -1 if forms.get("NEGATE") else 1
        return found.read().reshape(m, n), sign * left @ right + start * keep

    return run


TYPES = [
    ("bfloat16", "bfloat16", "float32"),
    ("float16", "float16", "float32"),
    ("float16", "float16", "float16"),
    ("float32", "float32", "float32"),
    ("float8_e4m3fn", "float8_e4m3fn", "float32"),
    ("float8_e4m3fn", "float8_e5m2", "float16"),
    ("float8_e5m2", "float8_e4m3fn", "float32"),
    ("int8", "int8", "int32"),
    ("uint8", "uint8", "int32"),
    ("int8", "uint8", "int32"),
    ("uint8", "int8", "int32"),
]
K_OF_SPAN = {"float32": 32, "bfloat16": 64, "float16": 64}


@pytest.mark.parametrize("registers", [False, True], ids=["shared", "registers"])
@pytest.mark.parametrize("types", TYPES, ids="-".join)
def test_types(types, registers, multiply):
    k = K_OF_SPAN.get(types[0], 128)
    found, expected = multiply(*types, 64, 48, k, REGISTERS=registers)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [8, 24, 40, 104, 128, 248, 256])
def test_columns(n, multiply):
    found, expected = multiply("bfloat16", "bfloat16", "float32", 64, n, 64)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [8, 24, 48, 256])
def test_columns_of_integers(n, multiply):
    found, expected = multiply("int8", "int8", "int32", 64, n, 128)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("m", [128, 192])
@pytest.mark.parametrize("registers", [False, True], ids=["shared", "registers"])
def test_rows(m, registers, multiply):
    found, expected = multiply("float16", "float16", "float32", m, 32, 128, REGISTERS=registers)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("spans", [(128, 128), (64, 32), (32, 64), (16, 16), (16, 128)], ids=str)
@pytest.mark.parametrize("major", ["A_K B_K", "A_MN B_K", "A_K B_MN", "A_MN B_MN"])
def test_layouts(major, spans, multiply):
    """Several boxes in the direction that each operand's lie along, several instructions along M and K."""
    forms = {"A_MN": "A_MN" in major, "B_MN": "B_MN" in major, "A_SPAN": spans[0], "B_SPAN": spans[1]}
    n = max(32, spans[1]) if forms["B_MN"] else 32  # as many elements as a span has bytes are two boxes
    k = max(32, *(span for span, mn in zip(spans, (forms["A_MN"], forms["B_MN"]), strict=True) if not mn), 0)
    found, expected = multiply("bfloat16", "bfloat16", "float32", 128, n, k, **forms)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("spans", [(64, 32), (16, 16)], ids=str)
def test_layouts_of_bytes(spans, multiply):
    found, expected = multiply("int8", "int8", "int32", 64, 64, 128, A_SPAN=spans[0], B_SPAN=spans[1])
    np.testing.assert_array_equal(found, expected)


def test_without_d(multiply):
    found, expected = multiply("bfloat16", "bfloat16", "float32", 64, 64, 128, keep=False)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("registers", [False, True], ids=["shared", "registers"])
def test_negated(registers, multiply):
    found, expected = multiply("bfloat16", "bfloat16", "float32", 64, 64, 64, NEGATE=True, REGISTERS=registers)
    np.testing.assert_array_equal(found, expected)


def test_saturating(multiply):
    most = 2**31 - 1
    forms = {"A_SPAN": 32, "B_SPAN": 32, "SATURATE": True}  # one instruction: it is its sum that saturates
    found, expected = multiply("int8", "int8", "int32", 64, 64, 32, start=most - 5, **forms)
    assert (expected > most).any()
    np.testing.assert_array_equal(found, np.minimum(expected, most))
