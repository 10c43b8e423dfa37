"""Where ``tcgen05`` puts things: tables of lanes and columns of tensor memory, and of chunks of shared memory.

Source: PTX ISA, "Memory Layout" of the data movement shapes, "Data Path Layout Organization" (layouts A to G), "Scale
Factor A ID", "Scale Factor B ID", "Packing formats of elements in Tensor and Shared memory", "Canonical Layouts",
"Shared Memory Layout and Swizzling", "Zero-Column Mask Descriptor". Where the ISA has a figure and no words, CUTLASS's
layouts for the same instructions say it in formulas that have run on the card: its copy traits (``tcgen05.ld``,
``.cp``) and its fragments (accumulators, A in tensor memory, scale factors).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.record import dataclass
from ptxdsl.sim import numbers
from ptxdsl.sim.matrix import wgmma_descriptor
from ptxdsl.sim.matrix.wgmma_descriptor import CHUNK, PERIOD, Tile
from ptxdsl.sim.tcgen05.descriptor import (
    NO_SWIZZLE,
    SWIZZLE_32,
    SWIZZLE_64,
    SWIZZLE_128,
    SWIZZLE_128_BASE32,
    SharedDescriptor,
)

Array = npt.NDArray[Any]

LANES_OF_WARP = 32


# Registers <-> tensor memory


@dataclass(frozen=True)
class Movement:
    """A shape of ``tcgen05.ld`` and ``.st``. lanes: that it reaches. columns: of one repetition. registers: of it.

    place: of arrays of register numbers and threads, the lane and the column, both from the address on.
    """

    lanes: int
    columns: int
    registers: int
    place: Callable[[Array, Array], tuple[Array, Array]]


MOVEMENTS: dict[str, Movement] = {
    # "Matrix fragments for shape .32x32b": a thread has a lane.
    "32x32b": Movement(32, 1, 1, lambda r, t: (t + 0 * r, r + 0 * t)),
    # "… .16x64b": of four threads, bit 0 goes 8 lanes down, bit 1 one column on.
    "16x64b": Movement(16, 2, 1, lambda r, t: (t // 4 + 8 * (t % 2) + 0 * r, 2 * r + t // 2 % 2)),
    # "… .16x128b": four threads are four columns; the second register of a repetition lies 8 lanes down.
    "16x128b": Movement(16, 4, 2, lambda r, t: (t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4)),
    # "… .16x256b": as the accumulators of mma: two columns a thread, then 8 lanes down, then the next 8 columns.
    "16x256b": Movement(16, 8, 4, lambda r, t: (t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2)),
    # "… .16x32bx2": threads 16-31 have the same lanes again; their columns are counted from the second address.
    "16x32bx2": Movement(16, 1, 1, lambda r, t: (t % 16 + 0 * r, r + 0 * t)),
}
REPETITIONS = {f"x{1 << i}": 1 << i for i in range(8)}
MOST_REGISTERS = 128


@lru_cache(None)
def movement(shape: str, repeats: int, packed: bool, split: int = 0) -> tuple[Array, Array]:
    """Lanes and columns, (registers, 32 threads), of a movement.

    packed: two neighbouring columns share a register (``.pack::16b``, ``.unpack::16b``); the columns are the first of
    each pair. split: ``immHalfSplitoff``, columns from the address to where threads 16-31 of ``.16x32bx2`` begin.
    """
    kind = MOVEMENTS[shape]
    register = np.arange(kind.registers * repeats)[:, None]
    thread = np.arange(LANES_OF_WARP)[None, :]
    lanes, columns = kind.place(register, thread)
    columns = columns * (2 if packed else 1) + np.where(thread >= 16, split, 0)
    return lanes, columns


# Accumulators and A in tensor memory


@dataclass(frozen=True)
class Strip:
    """Lanes [lane, lane + rows) hold the rows [row, row + rows) of a CTA's D, and of N the part of that number."""

    lane: int
    rows: int
    row: int
    part: int = 0


@dataclass(frozen=True)
class Layout:
    """rows: of D, in each CTA. parts: of N, side by side in the lanes. alignments: lanes at which D may begin."""

    rows: int
    strips: tuple[Strip, ...]
    parts: int = 1
    alignments: tuple[int, ...] = (0,)

    def per_partition(self) -> tuple[Strip, ...]:
        """The strips, none of which crosses a partition of 32 lanes."""
        return tuple(
            Strip(strip.lane + at, min(strip.rows, LANES_OF_WARP), strip.row + at, strip.part)
            for strip in self.strips
            for at in range(0, strip.rows, LANES_OF_WARP)
        )


_HALF_LANES = tuple(Strip(32 * i, 16, 16 * i) for i in range(4))
# "Data Path Layout Organization": Layout ID -> where a CTA's rows and columns of D lie.
LAYOUTS: dict[str, Layout] = {
    "A": Layout(128, (Strip(0, 128, 0),)),
    "B": Layout(64, (Strip(0, 64, 0, 0), Strip(64, 64, 0, 1)), parts=2),
    "C": Layout(64, _HALF_LANES, alignments=(0, 16)),
    "D": Layout(128, (Strip(0, 128, 0),)),
    "E": Layout(64, (Strip(0, 64, 0, 0), Strip(64, 64, 0, 1)), parts=2),
    "F": Layout(64, _HALF_LANES, alignments=(0, 16)),
    "G": Layout(32, tuple(Strip(32 * i, 32, 0, i) for i in range(4)), parts=4),
}


def layout_id(m: int, cta_group: int, ws: bool, sparse: bool = False) -> str:
    """The table of "Data Path Layout Organization"."""
    if m == 256:
        return "A"
    if m == 128:
        return "D" if cta_group == 1 else "C" if sparse else "B"
    if m == 64:
        return "E" if ws else "F"
    return "G"


# Scale factors


def scale_step(rows: int) -> int:
    """Columns from a word of four factors of each row to the next one: rows are counted by 128."""
    return -(-rows // 128) * 128 // LANES_OF_WARP


def scale_rows(words: Array, rows: int, first: int, count: int, byte: int, step: int = 0) -> Array:
    """(rows, count) codes of scale factors from one partition's words, (32 lanes, columns).

    The factors of row r lie in lane r % 32 of column r / 32, ``count`` bytes from ``byte`` on; those that do not fit
    that word go on in that of ``step`` columns further. first: the first row.

    Of the going on, with K = 96, the ISA has figures alone, for up to 128 rows and for more; CUTLASS has it so.
    """
    octets = np.ascontiguousarray(words).view(np.uint8).reshape(LANES_OF_WARP, -1, 4)
    row = (first + np.arange(rows))[:, None]
    at = byte + np.arange(count)
    found: Array = octets[row % LANES_OF_WARP, row // LANES_OF_WARP + at // 4 * step, at % 4]
    return found


# Shared memory

_BYTES = {NO_SWIZZLE: 0, SWIZZLE_32: 32, SWIZZLE_64: 64, SWIZZLE_128: 128}


def tile(descriptor: SharedDescriptor, rows: int, k: int, bits: int, mn_major: bool = False) -> Tile:
    """The chunks of a matrix of ``rows`` (M or N) by k elements; bits: that an element takes in shared memory.

    The layouts are wgmma's, and two more: 128-byte swizzling of 32-byte atoms, MN-major; rows of 48 bytes.
    """
    d = descriptor
    if d.absolute:
        line = d.address & ~127
        return _tile_of_long_rows(line % PERIOD, d.address - line, d.leading - line, d.stride, rows, k * bits // 128)
    if d.swizzle == SWIZZLE_128_BASE32:
        return _tile_of_32_byte_atoms(d.address % PERIOD, d.leading, d.stride, rows, k, bits)
    plain = wgmma_descriptor.Descriptor(d.address, d.leading, d.stride, 0, _BYTES[d.swizzle])
    return wgmma_descriptor.tile(plain, rows, k, bits, mn_major)


@lru_cache(maxsize=1024)
def _tile_of_32_byte_atoms(phase: int, leading: int, stride: int, rows: int, k: int, bits: int) -> Tile:
    """An atom ("Layout for swizzle atoms") is 8 chunks along M or N by 4 along K; pairs of chunks change places."""
    chunk = np.arange(rows * bits // (8 * CHUNK))[None, :]
    line = np.arange(k)[:, None]
    offsets = chunk % 8 * CHUNK + chunk // 8 * leading + line % 4 * 128 + line // 4 * stride
    address = phase + offsets
    offsets = (address ^ ((address >> 7) & 3) << 5) - phase
    first = int(offsets.min())
    return Tile(first, int(offsets.max()) - first + CHUNK, (offsets - first) // CHUNK)


@lru_cache(maxsize=1024)
def _tile_of_long_rows(phase: int, first: int, rest: int, stride: int, rows: int, chunks: int) -> Tile:
    """Rows that begin ``first`` bytes behind the start of 128 bytes, and go on at that of others, ``rest`` further."""
    chunk = first // CHUNK + np.arange(chunks)[None, :]
    row = np.arange(rows)[:, None]
    address = phase + row % 8 * 128 + row // 8 * stride + np.where(chunk < 8, 0, rest) + chunk % 8 * CHUNK
    offsets = (address ^ ((address >> 7) & 7) << 4) - phase - first
    least = int(offsets.min())
    return Tile(least, int(offsets.max()) - least + CHUNK, (offsets - least) // CHUNK)


def shared_bits(type_bits: int, packed: bool) -> int:
    """Bits of shared memory that an element takes: 4 and 6 bits lie 16 in 16 bytes, with padding, unless packed."""
    return type_bits if packed or type_bits >= 8 else 8


def unpack_shared(octets: Array, type_bits: int) -> Array:
    """Codes of 4 or 6 bits of a row's chunks: 16 codes without gaps at the start of each 16 bytes, then padding.

    "Packing format used for matrix A and B by .kind::mxf8f6f4 in Shared Memory"; ``.b4x16_p64`` and ``.b6x16_p32``.
    """
    chunks = octets.reshape(*octets.shape[:-1], -1, CHUNK)
    if type_bits == 4:
        codes = numbers.unpack_nibbles(chunks[..., :8])
    else:
        codes = numbers.unpack_six_bits(chunks[..., :12])
    return codes.reshape(*octets.shape[:-1], -1)


# "Packing format used for matrix A by .kind::mxf8f6f4 in Tensor Memory": a byte an element. Of mma.sync the ISA says it
# in words: 4 bits lie in the middle of the byte, 6 bits in its low bits.
CONTAINER_SHIFT = {4: 2, 6: 0, 8: 0}


# The zero-column mask of .ws


def zero_columns(descriptor: int, m: int, n: int) -> Array:
    """Which columns of B count as zero: n booleans.

    The ISA's examples and its table name the two spans the other way round; this follows the examples: the mask begins
    with "use" columns that are 0 (B is used), then come "skip" columns that are 1 (zeros).
    """
    mask = np.zeros(n, bool)
    if not descriptor >> 39 & 1:
        return mask
    skip, use = (descriptor >> 40 & 0xFF) + 1, (descriptor >> 48 & 0xFF) + 1
    pieces = 128 // m
    for i in range(pieces):
        start, skip_first = descriptor >> 8 * i & 0xFF, descriptor >> 32 + i & 1
        at = start + np.arange(n // pieces)
        at = at % (skip + use)
        piece = at < skip if skip_first else at >= use
        mask[i * n // pieces : (i + 1) * n // pieces] = piece
    return mask


def column_shift(descriptor: int) -> int:
    """By how many columns B begins later than its descriptor says."""
    return descriptor >> 56 & 0x3F
