"""The shared-memory matrix descriptors of ``wgmma``: from a 64-bit value to the addresses of a matrix's bytes.

A matrix lies in chunks of 16 bytes: 128 / bits elements that follow each other along K (K-major) or along M or N
(MN-major). Eight chunks side by side in the other direction are the smallest unit that a descriptor cannot stretch;
with swizzling, 2, 4 or 8 such units lie interleaved in rows of 32, 64 or 128 bytes. Two strides place everything else:

===========  =======================  ==========================================================
major        leading offset           stride offset
===========  =======================  ==========================================================
K, none      next chunk along K       next 8 rows
K, swizzled  not used                 next 8 rows
MN, none     next 8 along K           next chunk along M or N
MN, swizzled next row of chunks       next 8 along K
===========  =======================  ==========================================================

Swizzling exchanges the chunks of a row by its number: address bits 4–6 are combined, by exclusive or, with bits 7–9 (1,
2 or 3 bits for 32, 64 and 128 bytes). It is a function of the address, so a tile may be entered anywhere; rows are
counted from the pattern's start, which the base offset gives where it is not aligned to 8 rows of 128 bytes.

Source: PTX ISA, "Shared Memory Matrix Layout", "Strides", "Canonical Layouts", "Matrix Descriptor Format" of wgmma.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.record import dataclass

Array = npt.NDArray[Any]

CHUNK = 16
_ONE_CHUNK = np.dtype(f"V{CHUNK}")  # which makes one copy a chunk
# The descriptor's code -> bytes of a swizzled row.
SWIZZLE_BYTES = (0, 128, 64, 32)
PERIOD = 1024  # addresses this far apart are swizzled alike


@dataclass(frozen=True)
class Descriptor:
    """address, leading, stride: bytes. base: rows of 128 bytes from a multiple of 1024 to the pattern's start.

    swizzle: bytes of a row, 0 for none.
    """

    address: int
    leading: int
    stride: int
    base: int
    swizzle: int


def decode(value: int) -> Descriptor:
    swizzle = SWIZZLE_BYTES[value >> 62 & 3]
    return Descriptor(
        address=(value & 0x3FFF) << 4,
        leading=(value >> 16 & 0x3FFF) << 4,
        stride=(value >> 32 & 0x3FFF) << 4,
        base=(value >> 49 & 7) if swizzle else 0,
        swizzle=swizzle,
    )


@dataclass(frozen=True, eq=False)
class Tile:
    """Where the chunks of a matrix lie.

    offset: bytes from the descriptor's address to the memory that holds them. size: of that memory, in bytes. chunks:
    indices into it in units of 16 bytes. K-major: (rows, chunks along K); MN-major: (k, chunks along M or N).
    """

    offset: int
    size: int
    chunks: Array


def tile(descriptor: Descriptor, rows: int, k: int, bits: int, mn_major: bool = False) -> Tile:
    """The chunks of a matrix of ``rows`` (M or N) by k elements."""
    d = descriptor
    return _tile(d.address % PERIOD, d.leading, d.stride, d.base, d.swizzle, rows, k, bits, mn_major)


@lru_cache(maxsize=4096)
def _tile(
    phase: int, leading: int, stride: int, base: int, swizzle: int, rows: int, k: int, bits: int, mn_major: bool
) -> Tile:
    per_chunk = 8 * CHUNK // bits
    along, across = (rows, k) if mn_major else (k, rows)
    chunk = np.arange(-(-along // per_chunk))[None, :]
    line = np.arange(across)[:, None]
    width = swizzle or CHUNK
    in_row = width // CHUNK
    if mn_major and swizzle:
        offsets = chunk % in_row * CHUNK + chunk // in_row * leading + line % 8 * width + line // 8 * stride
    elif mn_major:
        offsets = chunk * stride + line % 8 * width + line // 8 * leading
    elif swizzle:
        offsets = chunk * CHUNK + line % 8 * width + line // 8 * stride
    else:
        offsets = chunk * leading + line % 8 * width + line // 8 * stride
    if swizzle:
        address = phase + offsets
        row = ((address >> 7) - base) & (in_row - 1)
        offsets = (address ^ (row << 4)) - phase
    first = int(offsets.min())
    indices = (offsets - first) // CHUNK
    return Tile(first, int(offsets.max()) - first + CHUNK, indices)


def elements(tile: Tile, octets: Array) -> Array:
    """The bytes of a matrix, a row of ``tile.chunks`` after the other, from the memory of the tile (size bytes)."""
    return octets.view(_ONE_CHUNK).take(tile.chunks).view(np.uint8)
