"""Warpgroup products of a sparse A, and of bits, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxdsl

KERNEL = Path(__file__).with_name("rare_products.pdsl")


def tile(place, array, data_type):
    """A map on the whole array; its rows are boxes of up to 128 bytes."""
    row = array.shape[1] * array.itemsize
    box = len(array), min(row, 128) // array.itemsize
    return ptxdsl.TensorMap(place.array(array), box, swizzle=f"{min(row, 128)}B", data_type=data_type)


def run(place, launch, output, a, b, words, d_type, n, map_type, a_type, **forms):
    constants = {"A": f"DType.{a_type}", "D": f"DType.{d_type}", "N": n, **forms}
    constants |= {"A_BYTES": a.shape[1] * a.itemsize, "B_BYTES": b.shape[1] * b.itemsize}
    a = np.ascontiguousarray(a.T) if forms.get("A_MN") else a
    found = output(64 * n, np.dtype(d_type))
    launch(
        ptxdsl.load(KERNEL)["product"].specialize(**constants), 1, 128, tile(place, a, map_type),
        tile(place, b, map_type), place.array(words), found, smem=128 * 1024, arch="sm_90a",
    )  # fmt: skip
    return found.read().reshape(64, n)


@pytest.mark.parametrize("registers", [False, True], ids=["shared", "registers"])
@pytest.mark.parametrize(("n", "k"), [(24, 32), (128, 128)])
def test_bits(n, k, registers, place, launch, output, rng):
    """k: bytes."""
    a, b = rng.integers(0, 256, (64, k), np.uint8), rng.integers(0, 256, (n, k), np.uint8)
    words = np.zeros(k // 32 * 128, np.uint32)
    found = run(place, launch, output, a, b, words, "int32", n, "u8", "uint8", BITS=True, REGISTERS=registers)
    left, right = np.unpackbits(a, axis=1).astype(np.int32), np.unpackbits(b, axis=1).astype(np.int32)
    np.testing.assert_array_equal(found, left @ right.T)


# types in memory and of results; columns that one field of 4 bits of metadata is about
SPARSE = {
    "float16": ("f16", np.float16, "float32", 4),
    "float32": ("f32", np.float32, "float32", 2),
    "int8": ("u8", np.int8, "int32", 4),
}


@pytest.mark.parametrize(
    ("a_type", "selector", "forms"),
    [
        *((*of, forms) for of in (("float16", 0), ("float16", 1), ("float32", 1), ("int8", 0))
          for forms in ({}, {"REGISTERS": True})),
        ("float16", 0, {"A_MN": True}), ("float16", 1, {"A_MN": True}),
    ],
    ids=str,
)  # fmt: skip
def test_sparse(a_type, selector, forms, place, launch, output, rng):
    map_type, dtype, d_type, group = SPARSE[a_type]
    n, bits = 32, 8 * np.dtype(dtype).itemsize
    k = 2 * 128 * 8 // bits  # half of it fills rows of 128 bytes: four steps
    # of each group the first or the second half is there; fields name the units 0 and 1, or 2 and 3
    second = rng.integers(0, 2, (64, k // group))
    stored = rng.integers(-4, 5, (64, k // group, group // 2))
    whole = np.zeros((64, k // group, group), np.int64)
    np.put_along_axis(whole, second[..., None] * (group // 2) + np.arange(group // 2), stored, axis=2)
    words = rng.integers(0, 1 << 32, (4, 128)).astype(np.uint32)  # of threads that do not count, anything
    per_step = k // 4 // group
    fields = np.where(second, 0b1110, 0b0100).reshape(64, 4, per_step)
    for step in range(4):
        for thread in range(128):
            warp, g, lane = thread // 32, thread % 32 // 4, thread % 4 - 2 * selector
            if bits == 8:  # two pairs of lanes: row g, row g + 8, and on
                pieces = [fields[16 * warp + g + 8 * (lane % 2), step, 8 * (lane // 2) : 8 * (lane // 2) + 8]]
            elif lane not in (0, 1):
                continue
            else:
                pieces = [fields[16 * warp + g + down, step, 4 * lane : 4 * lane + 4] for down in (0, 8)]
            chain = np.concatenate(pieces).astype(object)
            words[step, thread] = sum(int(field) << 4 * i for i, field in enumerate(chain))
    b = rng.integers(-4, 5, (n, k))
    found = run(
        place, launch, output, stored.reshape(64, -1).astype(dtype), b.astype(dtype), words.reshape(-1), d_type, n,
        map_type, a_type, SELECTOR=selector, **forms,
    )  # fmt: skip
    np.testing.assert_array_equal(found, whole.reshape(64, k) @ b.T)
