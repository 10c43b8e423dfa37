"""Scale factors of block-scaled products in tensor memory.

Source: PTX ISA 9.2, 9.7.16.10.7 "Block Scaling for tcgen05.mma.sync" (tables 56, 57; figure 230), 9.7.16.10.7.2 "Scale
Factor A ID" (figures 231 to 233), 9.7.16.10.7.3 "Scale Factor B ID" (figures 240 to 242).
Second: CUTLASS ``tmem_sf_frg``; JAX ``scales_layout``; TileLang ``mxfp8_illustrated.md``; CuTe DSL example
``2cta_mma_blockscale_m128.py`` (pairs with M = 128).

A factor is a byte. Row i of A (column j of B) has its factors in lane i % 32 of every part of 32 lanes, in column i //
32 from the base address; the ID says from which byte of the word. Each CTA of a pair has the factors of its own rows of
A and those of all columns of B; with M = 128 (layout B) a half of the lanes has the factors of its half of the columns.
"""

from __future__ import annotations

# Vector size -> (factors of a row, IDs that are legal); the ID is the first byte of the word that is used.
VECTORS: dict[str, tuple[int, tuple[int, ...]]] = {"1X": (1, (0, 1, 2, 3)), "2X": (2, (0, 2)), "4X": (4, (0,))}
# Kind -> (vector size, types of the factor); the names .block32 and .block16 are aliases for K other than 96.
KINDS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "mxf8f6f4": (("1X", ("ue8m0",)),),
    "mxf4": (("2X", ("ue8m0",)),),
    "mxf4nvf4": (("2X", ("ue8m0",)), ("4X", ("ue8m0", "ue4m3"))),
}
ALIASES: dict[tuple[str, str], str] = {
    ("mxf8f6f4", "block32"): "1X",
    ("mxf4", "block32"): "2X",
    ("mxf4nvf4", "block32"): "2X",
    ("mxf4nvf4", "block16"): "4X",
}
# .kind::mxf4 without a vector size means .block32; .kind::mxf4nvf4 must have one.
DEFAULTS: dict[str, str] = {"mxf4": "2X"}


def block(kind_k: int, vector: str) -> int:
    """How many elements along K a factor is for."""
    return kind_k // VECTORS[vector][0]


def a_places(row: int, block_number: int, scale_id: int) -> tuple[tuple[int, int, int], ...]:
    """(lane, column, byte) of a factor of A in the CTA that has the row. row: within the CTA."""
    return tuple((row % 32 + 32 * part, row // 32, scale_id + block_number) for part in range(4))


def b_places(column: int, block_number: int, scale_id: int, layout: str, n: int) -> tuple[tuple[int, int, int], ...]:
    """(lane, column, byte) of a factor of B, the same in both CTAs of a pair. layout: of D."""
    if layout != "B":
        return a_places(column, block_number, scale_id)
    half, within = divmod(column, n // 2)
    return tuple((within % 32 + 64 * half + 32 * part, within // 32, scale_id + block_number) for part in range(2))


UNDECIDED = (
    "scale factors with K = 96 (.block16 and .block32 on sm_103a): figures 234 to 239 and 243 to 258 alone, which tell "
    "N up to 128 from more; taken as CUTLASS lays them out",
    "whether all four copies of a factor are read, and from which part (programs write all of them)",
)
