"""The Hopper GEMM of the samples: whole and ragged tiles, one tile and many, on a card and in the simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from places import Card

import ptxdsl

SAMPLE = Path(__file__).parents[2] / "samples" / "08_gemm_hopper.pdsl"


def bf16(values):
    """The bits of the nearest bfloat16."""
    bits = values.astype(np.float32).view(np.uint32)
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)


def values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def gemm(place, launch, a, b, blocks, **constants):
    """C = A · Bᵀ of bfloat16 bits, poisoned before, with a guard of rows that nobody may touch."""
    bn, bk, stages = constants.get("BN", 256), constants.get("BK", 64), constants.get("STAGES", 3)
    (m, k), n = a.shape, len(b)
    whole = place.array(np.full((m + 8, n), 0xDEAD, np.uint16))
    c = whole[:m]

    def tiles(array, box):
        return ptxdsl.TensorMap(array, box, swizzle="128B", data_type="bf16")

    given = tiles(place.array(a), (128, bk)), tiles(place.array(b), (bn, bk)), tiles(c, (64, 64))
    kernel = ptxdsl.load(SAMPLE)["gemm"].specialize(**constants)
    launch(kernel, blocks, 384, *given, m, n, k, smem=stages * (128 + bn) * bk * 2 + 128 * bn * 2, arch="sm_90a")
    found = place.host(whole)
    assert (found[m:] == 0xDEAD).all()
    return values(found[:m])


def check(found, a, b):
    exact = values(a).astype(np.float64) @ values(b).astype(np.float64).T
    np.testing.assert_allclose(found, exact, rtol=2**-8, atol=2**-9)


SHAPES = [
    (128, 256, 64, 1),  # one tile, one step
    (128, 256, 192, 1),  # once round the ring
    (256, 512, 256, 2),  # two tiles a block: the ring goes on from one to the next
    (8, 8, 8, 1),  # less than a tile in every direction
    (129, 264, 72, 2),  # one row, eight columns, eight of K over
    (200, 1000, 136, 3),
    (640, 256, 320, 4),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape[:3])))
def test_shapes(shape, place, launch, rng):
    m, n, k, blocks = shape
    a, b = bf16(rng.standard_normal((m, k))), bf16(rng.standard_normal((n, k)))
    check(gemm(place, launch, a, b, blocks), a, b)


@pytest.mark.parametrize(
    "constants", [{"BN": 128, "STAGES": 4}, {"BN": 64, "BK": 64, "STAGES": 2}, {"GROUP": 1}], ids=str
)
def test_configurations(constants, place, launch, rng):
    a, b = bf16(rng.standard_normal((300, 200))), bf16(rng.standard_normal((296, 200)))
    check(gemm(place, launch, a, b, 3, **constants), a, b)


@pytest.mark.device
@pytest.mark.parametrize("shape", [(4096, 4096, 512), (1000, 3000, 2008), (8192, 256, 4096)], ids=str)
def test_large(shape, gpu, rng, request):
    def launch(kernel, grid, block, *arguments, smem, arch):
        card.launch(kernel, grid, block, *arguments, smem=smem, config=request.config)

    card = Card(gpu)
    m, n, k = shape
    a, b = bf16(rng.standard_normal((m, k))), bf16(rng.standard_normal((n, k)))
    check(gemm(card, launch, a, b, 132), a, b)
