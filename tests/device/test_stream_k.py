"""Tiles that blocks divide along K (stream-K): what pieces there are, and products made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxdsl

SAMPLE = Path(__file__).parents[2] / "samples" / "11_gemm_stream_k.pdsl"
PIECES = """
from scheduler import StreamK

@kernel
def pieces(res: Pointer[UInt32, MutAnyOrigin], tiles: UInt32, steps: UInt32, most: UInt32):
    var work = StreamK(tiles, steps, UInt32(block_idx.x), UInt32(grid_dim.x))
    var at = UInt32(block_idx.x) * most * 4
    while work.more():
        res[unsafe_offset=at] = work.tile
        res[unsafe_offset=at + 1] = work.first
        res[unsafe_offset=at + 2] = work.count
        res[unsafe_offset=at + 3] = work.others()
        at += 4
        work.next()
"""


@pytest.mark.parametrize(
    ("tiles", "steps", "blocks"),
    [(1, 1, 1), (12, 5, 4), (13, 5, 4), (7, 5, 4), (15, 1, 4), (3, 7, 4), (1, 9, 4), (1, 3, 5), (2, 2, 5), (0, 4, 3)],
)
def test_pieces(tiles, steps, blocks, place, launch):
    most = tiles + 2
    res = place.array(np.full(blocks * most * 4, 99, np.uint32))
    launch(ptxdsl.loads(PIECES).pieces, blocks, 1, res, tiles, steps, most)
    found = place.host(res).reshape(blocks, most, 4)
    pieces = [[tuple(map(int, p)) for p in of_block if p[0] != 99] for of_block in found]
    # every step of every tile once
    covered = sorted((tile, first + i) for block in pieces for tile, first, count, _ in block for i in range(count))
    assert covered == [(tile, step) for tile in range(tiles) for step in range(steps)]
    # all blocks have as many
    work = [sum(count for _, _, count, _ in block) for block in pieces]
    assert max(work) - min(work) <= 1
    for number, block in enumerate(pieces):
        for place_in_block, (tile, first, count, others) in enumerate(block):
            # what goes on with a tile of others is their first piece, and they are the next blocks
            assert first == 0 or place_in_block == 0
            going_on = [i for i, p in enumerate(pieces) if i > number and p and p[0][0] == tile and p[0][1] > 0]
            expected = going_on if first == 0 else []
            assert others == len(expected) and expected == list(range(number + 1, number + 1 + others))
            assert first > 0 or others > 0 or count == steps


@pytest.mark.parametrize(
    ("m", "n", "k", "blocks"),
    [
        (200, 136, 328, 3),  # four tiles: all divided
        (384, 256, 136, 4),  # six: two whole ones for two of the blocks
        (130, 136, 264, 5),
        (64, 64, 456, 4),  # one tile of several blocks
        (256, 256, 64, 4),  # nothing to divide
        (8, 8, 8, 2),
    ],
)
def test_products(m, n, k, blocks, place, launch, rng):
    def stored(shape):  # as bfloat16, which has a float32's upper half
        values = rng.integers(-8, 9, shape).astype(np.float32)
        return values, (values.view(np.uint32) >> 16).astype(np.uint16)

    (left, a), (right, b) = stored((m, k)), stored((n, k))
    c = place.array(np.full((m, n), 0x7FC0, np.uint16))
    sums = place.array(np.full(blocks * 2 * 64 * 128, np.nan, np.float32))
    given = place.array(np.zeros(blocks * 8, np.uint32))
    maps = [ptxdsl.TensorMap(place.array(x), (128, 64), swizzle="128B", data_type="bf16") for x in (a, b)]
    kernel = ptxdsl.load(SAMPLE).gemm
    for _ in range(2):  # the second launch finds what the first one left
        launch(kernel, blocks, 384, *maps, place.typed(c, "BFloat16"), sums, given, m, n, k, smem=163840, arch="sm_90a")
        assert not place.host(given).any()
    found = (place.host(c).astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(found, left @ right.T, rtol=2**-8)
