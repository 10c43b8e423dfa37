"""Tensor copies against NumPy: ranks, edges, reductions, hints, tiles of several boxes, multicast."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import ptxdsl

KERNELS = Path(__file__).with_name("tensor_copies.pdsl")
SHAPE, BOX = (3, 4, 5, 6, 40), (1, 2, 2, 3, 16)  # of rank 5; of lower ranks their ends
REDUCTIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    # to 0 behind the other value, and to the other value behind 0
    "inc": lambda old, new: 0 if old >= new else old + 1,
    "dec": lambda old, new: new if old == 0 or old > new else old - 1,
}  # fmt: skip


def boxes(rank):
    return SHAPE[-rank:], BOX[-rank:]


def loaded(array, at, box):
    """A box of an array, with zeros outside of it."""
    result = np.zeros(box, array.dtype)
    for index in np.ndindex(*box):
        place = tuple(np.add(at, index))
        if all(0 <= p < n for p, n in zip(place, array.shape, strict=True)):
            result[index] = array[place]
    return result


def combined(array, at, values, combine):
    """The array with a box of values combined into it, as far as it lies there."""
    result = array.copy()
    for index in np.ndindex(*values.shape):
        place = tuple(np.add(at, index))
        if all(0 <= p < n for p, n in zip(place, array.shape, strict=True)):
            result[place] = combine(result[place], values[index])
    return result


@pytest.fixture
def moved(place, launch):
    """moved(source, target, at, to, box, …): the target after a box went from one place to the other."""

    def run(source, target, at, to, box, **constants):
        rank = source.ndim
        there = place.array(target)
        places = np.zeros(10, np.int32)
        places[:rank], places[5 : 5 + rank] = at[::-1], to[::-1]
        kernel = ptxdsl.load(KERNELS)["move"].specialize(R=rank, **constants)
        maps = ptxdsl.TensorMap(place.array(source), box), ptxdsl.TensorMap(there, box)
        size = int(np.prod(box)) * source.itemsize
        launch(kernel, 1, 32, *maps, place.array(places), size, arch="sm_90a")
        return place.host(there)

    return run


@pytest.mark.parametrize("hints", [False, True], ids=["plain", "hints"])
@pytest.mark.parametrize("rank", range(1, 6))
def test_ranks_and_edges(rank, hints, moved, rng):
    shape, box = boxes(rank)
    source = rng.standard_normal(shape).astype(np.float32)
    target = rng.standard_normal(shape).astype(np.float32)
    inside = *(int(rng.integers(0, n - b + 1)) for n, b in zip(shape[:-1], box[:-1], strict=True)), 20
    over = *(1 - b for b in box[:-1]), -4
    past = *(n - 1 for n in shape[:-1]), 36
    for at, to in product((inside, over, past), (inside, past)):
        found = moved(source, target, at, to, box, HINTS=hints)
        expected = combined(target, to, loaded(source, at, box), lambda old, new: new)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions_of_integers(kind, moved, rng):
    source, target = (rng.integers(0, 9, (6, 40)).astype(np.uint32) for _ in range(2))
    found = moved(source, target, (1, 8), (3, 32), (4, 16), KIND=f'"{kind}"', HINTS=kind == "add")
    expected = combined(target, (3, 32), loaded(source, (1, 8), (4, 16)), REDUCTIONS[kind])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("dtype", "kind"), [("float32", "add"), ("float16", "add"), ("float16", "max")])
def test_reductions_of_floats(dtype, kind, moved, rng):
    source, target = (rng.integers(-9, 9, (6, 40)).astype(dtype) for _ in range(2))
    found = moved(source, target, (1, 8), (3, 32), (4, 16), KIND=f'"{kind}"')
    expected = combined(target, (3, 32), loaded(source, (1, 8), (4, 16)), REDUCTIONS[kind])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("span", [16, 32, 64, 128])
@pytest.mark.parametrize(("dtype", "rows", "cols"), [("float32", 16, 64), ("float16", 24, 128)])
def test_tiles(dtype, rows, cols, span, place, launch, output, rng):
    """Threads see a swizzled tile as a matrix, and write one."""
    source = rng.integers(-99, 99, (rows, cols)).astype(dtype)
    target, sums = place.array(np.zeros_like(source)), place.array(np.ones_like(source))
    seen = output(rows * cols, np.dtype(dtype))
    box = rows, cols if span == 16 else span // source.itemsize
    swizzle = "none" if span == 16 else f"{span}B"
    maps = [ptxdsl.TensorMap(a, box, swizzle=swizzle) for a in (place.array(source), target, sums)]
    kernel = ptxdsl.load(KERNELS)["tiles"].specialize(T=f"DType.{dtype}", ROWS=rows, COLS=cols, SPAN=span)
    launch(kernel, 1, 32, *maps, seen, arch="sm_90a")
    np.testing.assert_array_equal(seen.read().reshape(rows, cols), source)
    np.testing.assert_array_equal(place.host(target), source[::-1])
    np.testing.assert_array_equal(place.host(sums), 1 + source + source[::-1])


@pytest.mark.parametrize("hints", [False, True], ids=["plain", "hints"])
def test_multicast(hints, place, launch, output, rng):
    source = rng.standard_normal((16, 32)).astype(np.float32)
    seen = output(1024)
    kernel = ptxdsl.load(KERNELS)["shared_load"].specialize(HINTS=hints)
    launch(kernel, 2, 32, ptxdsl.TensorMap(place.array(source), (8, 32), swizzle="128B"), seen, arch="sm_90a")
    np.testing.assert_array_equal(seen.read().reshape(2, 16, 32), np.stack([source, source]))
