"""Functions of the library that move data and that no product or sample needs, in the simulator, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tcgen05_matrices import random_codes

import ptxdsl
from ptxdsl.api.module import Module
from ptxdsl.imports import read_file
from ptxdsl.options import Options

SOURCE = read_file(str(Path(__file__).with_name("library_moves.pdsl")))


def simulated(name, constants, *arguments, arch="sm_90a", block=32, ctas=1):
    kernel = Module(SOURCE, Options(arch, check="off"))[name].specialize(**constants)
    report = kernel.simulate(*arguments, grid=ctas, block=block, cluster=ctas, arch=arch)
    assert report.finished, report.render()


@pytest.mark.parametrize("hints", [False, True])
def test_rows_are_gathered_and_scattered(hints):
    """Rows that a matrix does not have are zeros, or left out; so are columns."""
    source = np.random.default_rng(4).standard_normal((20, 66)).astype(np.float32)
    source = np.ascontiguousarray(np.pad(source, ((0, 0), (0, 2))))  # rows of a multiple of 16 bytes
    target = np.full((12, 64), 7, np.float32)
    numbers = np.array([3, 3, 19, 0, 20, 7, -1, 11, 5, 0, 11, 2, 12, 8, 9, 1], np.int32)
    maps = [ptxdsl.TensorMap(array, (1, 32), swizzle="128B") for array in (source, target)]
    simulated("rows", {"HINTS": hints}, *maps, numbers, arch="sm_100a")
    expected = np.full((12, 64), 7, np.float32)
    for of, to in zip(numbers[:8], numbers[8:], strict=True):
        row = np.zeros(64, np.float32)
        if 0 <= of < 20:
            row[:60] = source[of, 8:]
        if to < 12:
            expected[to, 4:] = row[:60]
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("type", ["float32", "int32", "int64", "float64"])
def test_blocks_of_a_cluster_exchange_numbers(type):
    values = np.random.default_rng(1).integers(-1000, 1000, (2, 32)).astype(type)
    found = np.zeros((2, 3, 32), type)
    simulated("exchanged", {"T": f"DType.{type}"}, values, found, ctas=2)
    other = values[::-1]  # what the other block has is read; it sends back this one's
    np.testing.assert_array_equal(found, np.stack([other, 2 * values, 3 * values], axis=1))


def test_bulk_copies_to_several_blocks():
    values = np.random.default_rng(2).standard_normal(64).astype(np.float32)
    found = np.zeros((3, 64), np.float32)
    map = ptxdsl.TensorMap(values.reshape(1, 64), (1, 64))
    simulated("spread", {}, map, values, found, ctas=2)
    np.testing.assert_array_equal(found, np.stack([values] * 3))


@pytest.mark.parametrize("hints", [False, True])
def test_a_load_into_two_pairs(hints):
    values = np.random.default_rng(6).standard_normal((8, 32)).astype(np.float32)
    found = np.zeros((4, 8, 32), np.float32)
    map = ptxdsl.TensorMap(values, (8, 32), swizzle="128B")
    simulated("paired", {"HINTS": hints}, map, found, arch="sm_100a", ctas=4)
    np.testing.assert_array_equal(found, np.stack([values] * 4))


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize(("load", "store"), [(False, False), (True, False), (False, True), (True, True)])
def test_matrices_through_registers(count, load, store):
    values = np.arange(64 * count, dtype=np.float16).reshape(count, 8, 8)
    found = np.zeros_like(values)
    simulated("matrices", {"COUNT": count, "LOAD": load, "STORE": store}, values, found)
    np.testing.assert_array_equal(found, values.transpose(0, 2, 1) if load != store else values)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_matrices_of_bytes(count, transposed):
    """As the fragments of the operands of mma.m16n8k32: four elements along the rows, or along the columns."""
    values = np.random.default_rng(count).integers(-128, 128, (count, 16 if transposed else 8, 16)).astype(np.int8)
    found = np.zeros((32, count * (8 if transposed else 4)), np.int8)
    constants = {"T": "DType.int8", "COUNT": count, "TRANSPOSED": transposed}
    simulated("byte_matrices", constants, values, found, arch="sm_100a")
    columns = values.transpose(0, 2, 1) if transposed else values  # (matrix, 8 or 16 groups, 16)
    groups = columns.reshape(count, -1, 8, 4, 4)  # matrix, half of the groups, thread // 4, thread % 4, element
    np.testing.assert_array_equal(found, groups.transpose(2, 3, 0, 1, 4).reshape(32, -1))


def test_a_result_that_is_multiplied_again():
    rng = np.random.default_rng(5)
    codes, values = zip(*(random_codes(rng, "bf16", (64, 64)) for _ in range(3)), strict=True)
    found = np.zeros((64, 64), np.float32)
    maps = [ptxdsl.TensorMap(array, (64, 64), swizzle="128B", data_type="bf16") for array in codes]
    simulated("chained", {}, *maps, found, block=128)
    first = values[0] @ values[1].T
    expected = first @ values[2].T
    # the first result has 8 bits
    np.testing.assert_allclose(found, expected, rtol=0, atol=2**-8 * (abs(first) @ abs(values[2].T)).max())


@pytest.mark.parametrize(
    ("type", "m", "n", "stationary"),
    [
        ("float32", 128, 32, False), ("float16", 128, 32, False), ("int32", 64, 16, False),
        ("float32", 64, 64, True), ("float16", 32, 64, True),
    ],
)  # fmt: skip
def test_results_are_stored(type, m, n, stationary):
    values = np.random.default_rng(m).integers(-500, 500, (m, n)).astype(type)
    found = values.copy()
    constants = {"D": f"DType.{type}", "M": m, "N": n, "STATIONARY": stationary}
    simulated("rescaled", constants, found, arch="sm_100a", block=128)
    np.testing.assert_array_equal(found, 2 * values)


def test_the_greatest_of_some_columns():
    values = np.random.default_rng(9).standard_normal((64, 32)).astype(np.float32)
    found = np.zeros((64, 17), np.float32)
    simulated("greatest", {}, values, found, arch="sm_103a", block=128)
    np.testing.assert_array_equal(found[:, 1:], values[:, 8:24])
    np.testing.assert_array_equal(found[:, 0], values[:, 8:24].max(axis=1))
