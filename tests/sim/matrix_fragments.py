"""Fragments element by element, as the figures of the PTX ISA give them: what tests compare the index tables with.

``A``, ``B`` and ``C`` give, for a lane's element number i, the (row, column) that the ISA's formulas say; g is
lane / 4 (groupID) and t is lane % 4 (threadID_in_group).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Place = Callable[[int, int, int], tuple[int, int]]


def _step(i: int, *ranges: tuple[int, int]) -> bool:
    return any(first <= i < last for first, last in ranges)


# Shape and bits of an element -> element to place.
A: dict[tuple[str, int], Place] = {
    ("m8n8k4", 64): lambda g, t, i: (g, t),
    ("m16n8k4", 64): lambda g, t, i: (g + 8 * (i == 1), t),
    ("m16n8k8", 64): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    ("m16n8k16", 64): lambda g, t, i: (g, i * 2 + t) if i % 2 == 0 else (g + 8, i * 2 - 2 + t),
    ("m16n8k4", 32): lambda g, t, i: (g + 8 * (i == 1), t),
    ("m16n8k8", 32): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    ("m16n8k8", 16): lambda g, t, i: (g if i in (0, 1) else g + 8, t * 2 + (i & 1)),
    ("m16n8k16", 16): lambda g, t, i: (
        g if _step(i, (0, 2), (4, 6)) else g + 8,
        t * 2 + (i & 1) + (8 if i >= 4 else 0),
    ),
    ("m8n8k16", 8): lambda g, t, i: (g, t * 4 + i),
    ("m16n8k16", 8): lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
    ("m16n8k32", 8): lambda g, t, i: (
        g if _step(i, (0, 4), (8, 12)) else g + 8,
        t * 4 + (i & 3) + (16 if i >= 8 else 0),
    ),
    ("m8n8k32", 4): lambda g, t, i: (g, t * 8 + i),
    ("m16n8k32", 4): lambda g, t, i: (g if i < 8 else g + 8, t * 8 + (i & 7)),
    ("m16n8k64", 4): lambda g, t, i: (
        g if _step(i, (0, 8), (16, 24)) else g + 8,
        t * 8 + (i & 7) + (32 if i >= 16 else 0),
    ),
    ("m8n8k128", 1): lambda g, t, i: (g, t * 32 + i),
    ("m16n8k128", 1): lambda g, t, i: (g if i < 32 else g + 8, t * 32 + (i & 31)),
    ("m16n8k256", 1): lambda g, t, i: (
        g if _step(i, (0, 32), (64, 96)) else g + 8,
        t * 32 + (i & 31) + (128 if i >= 64 else 0),
    ),
}
B: dict[tuple[str, int], Place] = {
    ("m8n8k4", 64): lambda g, t, i: (t, g),
    ("m16n8k4", 64): lambda g, t, i: (t, g),
    ("m16n8k8", 64): lambda g, t, i: (t if i == 0 else t + 4, g),
    ("m16n8k16", 64): lambda g, t, i: (t + i * 4, g),
    ("m16n8k4", 32): lambda g, t, i: (t, g),
    ("m16n8k8", 32): lambda g, t, i: (t if i == 0 else t + 4, g),
    ("m16n8k8", 16): lambda g, t, i: (t * 2 + i, g),
    ("m16n8k16", 16): lambda g, t, i: (t * 2 + (i & 1) + (8 if i >= 2 else 0), g),
    ("m8n8k16", 8): lambda g, t, i: (t * 4 + i, g),
    ("m16n8k16", 8): lambda g, t, i: (t * 4 + i, g),
    ("m16n8k32", 8): lambda g, t, i: (t * 4 + (i & 3) + (16 if i >= 4 else 0), g),
    ("m8n8k32", 4): lambda g, t, i: (t * 8 + i, g),
    ("m16n8k32", 4): lambda g, t, i: (t * 8 + i, g),
    ("m16n8k64", 4): lambda g, t, i: (t * 8 + (i & 7) + (32 if i >= 8 else 0), g),
    ("m8n8k128", 1): lambda g, t, i: (t * 32 + i, g),
    ("m16n8k128", 1): lambda g, t, i: (t * 32 + i, g),
    ("m16n8k256", 1): lambda g, t, i: (t * 32 + (i & 31) + (128 if i >= 32 else 0), g),
}
# Accumulators by the shape's rows.
C: dict[int, Place] = {
    8: lambda g, t, i: (g, t * 2 + i),
    16: lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
}


def pack(matrix: Any, place: Place, bits: int) -> Any:
    """Registers (registers, 32) that hold the codes (unsigned integers) of a matrix as one fragment."""
    rows, columns = matrix.shape
    width = 64 if bits == 64 else 32
    each = rows * columns // 32
    words = [[0] * 32 for _ in range(max(each * bits // width, 1))]
    for lane in range(32):
        for i in range(each):
            row, column = place(lane >> 2, lane & 3, i)
            words[i * bits // width][lane] |= int(matrix[row, column]) << i * bits % width
    return np.array(words, np.uint64 if width == 64 else np.uint32)


def unpack(words: Any, place: Place, bits: int, shape: tuple[int, int]) -> Any:
    """The codes of a matrix from the registers of a fragment; each element must lie somewhere."""
    width = 64 if bits == 64 else 32
    matrix = np.full(shape, -1, object)
    for lane in range(32):
        for i in range(shape[0] * shape[1] // 32):
            matrix[place(lane >> 2, lane & 3, i)] = (
                int(words[i * bits // width][lane]) >> i * bits % width & (1 << bits) - 1
            )
    assert (matrix >= 0).all()
    return matrix
