"""Tensor maps that a kernel makes of others (tensormap.replace): copies by them, and what their 128 bytes say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxdsl
from ptxdsl.record import replace
from ptxdsl.sim.copies.tensor_map_bytes import decode

KERNELS = Path(__file__).with_name("tensor_maps.pdsl")


@pytest.mark.parametrize("sizes", [[(8, 32)], [(3, 40), (20, 36), (1, 32)], [(7, 64), (8, 32), (2, 48), (9, 32)]])
def test_each_block_has_a_map_of_its_own(sizes, place, launch, rng):
    """Groups of so many rows, so many elements apart, one behind the other."""
    rows, strides = (np.array(column, np.int32) for column in zip(*sizes, strict=True))
    first = np.concatenate([[0], np.cumsum(rows * strides)[:-1]]).astype(np.int32)
    source = rng.standard_normal(int((rows * strides).sum()) + 1024).astype(np.float32)
    expected = np.full_like(source, 7)
    for at, count, stride in zip(first, np.minimum(rows, 8), strides, strict=True):
        for row in range(count):
            there = slice(at + row * stride, at + row * stride + 32)
            expected[there] = source[there]
    like = ptxdsl.TensorMap(place.array(np.zeros((64, 32), np.float32)), (8, 32), swizzle="128B")
    result, room = place.array(np.full_like(source, 7)), place.array(np.zeros(128 * (2 * len(sizes) + 1), np.uint8))
    given = (place.array(a) for a in (first, rows, strides))
    launch(
        ptxdsl.load(KERNELS)["groups"], len(sizes), 64, like, room, place.array(source), result, *given, arch="sm_90a"
    )
    np.testing.assert_array_equal(place.host(result), expected)


@pytest.mark.parametrize(
    ("dtype", "shape", "box", "options"),
    [
        ("int16", (8, 64), (8, 64), {"swizzle": "128B"}),
        ("uint8", (2, 3, 4, 5, 32), (1, 1, 2, 2, 16), {"l2_promotion": "256B"}),
        ("float16", (64,), (64,), {"fill": "nan"}),
    ],
)
def test_every_field_can_be_replaced(dtype, shape, box, options, place, launch, output):
    """What is made of any map is what the host makes, but for the promotion, which stays."""
    like = ptxdsl.TensorMap(place.array(np.zeros(shape, dtype)), box, **options)
    source, room, seen = (
        place.array(np.zeros(1000, np.float32)),
        place.array(np.zeros(256, np.uint8)),
        output(32, np.uint32),
    )
    launch(ptxdsl.load(KERNELS)["remade"], 1, 32, like, room, source, seen, arch="sm_90a")
    wanted = ptxdsl.TensorMap(
        np.zeros((5, 6, 24), np.float32), (2, 3, 16), (1, 2, 1), swizzle="64B", fill="nan", strides=(800, 112, 4),
        l2_promotion=like.description.l2_promotion,
    )  # fmt: skip
    found = decode(seen.read().tobytes())
    assert found.address % 16 == 0 and found.address != 0
    assert replace(found, address=0) == wanted.description
