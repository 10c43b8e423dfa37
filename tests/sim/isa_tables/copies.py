"""tcgen05.cp: which bytes of shared memory come to which lane and column; tcgen05.shift and .ashift.

Source: PTX ISA 9.2, 9.7.16.9.2 "tcgen05.cp", 9.7.16.9.3 "tcgen05.shift", 9.7.16.2.3 "Data Movement Shape",
9.7.16.9.1 "Optional Decompression" (figures 194 to 198).
Second: CUTLASS ``Copy_Traits<SM100_UTCCP_*>``; JAX ``async_copy_scales_smem_to_tmem`` (strides of the source); for
4x256b also probes of a card that a fork of Triton published ("four source rows … across lanes separated by 32"). Which
way is down: CUTLASS example ``1cta_mma_a_from_tmem.py`` ("not in public PTX ISA 9.1, observed on B200") for .ashift.

The source is a K-major matrix of a shared memory descriptor, rows by bytes; a row goes to one lane, four bytes a
column. The ISA says of the multicasts that "each warp in the warp pair receive half of the data"; what it pairs are the
warps that receive the same half (CUTLASS: 02_13 repeats 64 rows 64 lanes further, 01_23 32 rows 32 lanes further).
"""

from __future__ import annotations

# Shape (with its multicast) -> (source rows, bytes of a row)
SOURCES: dict[str, tuple[int, int]] = {
    "128x256b": (128, 32),
    "4x256b": (4, 32),
    "128x128b": (128, 16),
    "64x128b.warpx2::02_13": (64, 16),
    "64x128b.warpx2::01_23": (64, 16),
    "32x128b.warpx4": (32, 16),
}


def lanes(shape: str, row: int) -> tuple[int, ...]:
    """The lanes, from the address's lane on, that receive a source row."""
    match shape:
        case "128x256b" | "128x128b":
            return (row,)
        case "4x256b":  # one lane in each part of 32
            return (32 * row,)
        case "64x128b.warpx2::02_13":
            return row, row + 64
        case "64x128b.warpx2::01_23":
            return row % 32 + row // 32 * 64, row % 32 + row // 32 * 64 + 32
        case "32x128b.warpx4":
            return row, row + 32, row + 64, row + 96
    raise KeyError(shape)


# Format of the source -> (bits of an element, bytes that hold 16 elements, bytes of padding after them). In tensor
# memory the 16 elements take 16 bytes.
COMPRESSED: dict[str, tuple[int, int, int]] = {"b4x16_p64": (4, 8, 8), "b6x16_p32": (6, 12, 4)}


def elements(chunk: bytes, source: str) -> list[int]:
    """The 16 elements of a compressed chunk of 16 bytes: contiguous, the first in the lowest bits."""
    bits, held, padding = COMPRESSED[source]
    assert len(chunk) == held + padding
    word = int.from_bytes(chunk[:held], "little")
    return [word >> bits * i & (1 << bits) - 1 for i in range(16)]


# tcgen05.shift moves 32 bytes (8 columns) a lane, in one part of 32 lanes ("for a warp"; its shape is 31x256b; the
# address's lane is a multiple of 32). .ashift moves A so, in every part, after the product has read A.
SHIFT_COLUMNS = 8
SHIFT_LANES = 32


def shifted(lane: int) -> int:
    """The lane from which a lane gets what it holds after a shift."""
    return lane if lane % SHIFT_LANES == SHIFT_LANES - 1 else lane + 1


UNDECIDED = (
    "tcgen05.shift: its direction is taken from .ashift; no public kernel uses it",
    "tcgen05.cp of compressed sources: where the 6 bits stand in their byte (see containers.py)",
)
