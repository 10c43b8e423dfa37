"""Tensor memory: where D and A lie, for each of the data path layouts A to G.

Source: PTX ISA 9.2, 9.7.16.1.1 "Tensor Memory Addressing", 9.7.16.10.4.1 (D is not packed), 9.7.16.10.5 "Data Path
Layout Organization" (table of layouts; the layouts are figures 205 to 218), 9.7.16.8.1 "Access restrictions".
Second: CUTLASS ``tmem_frg`` and ``tmem_frg_ws`` (A, B, D, E, F, G as CuTe layouts), JAX ``tmem_default_layout``,
``tmem_half_lane_layout``, ``tmem_m64_collective_layout`` (D, F, B).

A place is (cta, lane, column): cta is 0 for the CTA with the even rank in the pair. Column counts from the matrix's
base address. A CTA of a pair has half of the rows of A and D and half of the columns of B, and all columns of D.
"""

from __future__ import annotations

LANES, COLUMNS = 128, 512
LANE_SHIFT = 16  # an address is lane << 16 | column

# (M, cta_group, .ws, sparse A) -> layout. None: either. E is "2x3" in the ISA's table, which cannot be: 64 rows fill 2
# of 4 parts of the lanes, so that N is split in halves, as CUTLASS says ("2x2 datapath").
LAYOUTS: dict[tuple[int, int, bool | None, bool | None], str] = {
    (32, 1, True, None): "G",
    (64, 1, True, None): "E",
    (64, 1, False, None): "F",
    (128, 1, None, None): "D",
    (128, 2, False, False): "B",
    (128, 2, False, True): "C",
    (256, 2, False, None): "A",
}
# Layout -> the lanes at which D may begin.
ALIGNMENTS: dict[str, tuple[int, ...]] = {
    "A": (0,),
    "B": (0,),
    "C": (0, 16),
    "D": (0,),
    "E": (0,),
    "F": (0, 16),
    "G": (0,),
}


def layout_of(m: int, cta_group: int, *, ws: bool = False, sparse: bool = False) -> str:
    """The layout of a product."""
    for (rows, group, of_ws, of_sparse), name in LAYOUTS.items():
        if (rows, group) == (m, cta_group) and of_ws in (None, ws) and of_sparse in (None, sparse):
            return name
    raise KeyError((m, cta_group, ws, sparse))


def d_place(layout: str, i: int, j: int, n: int) -> tuple[int, int, int]:
    """Where D[i, j] is."""
    match layout:
        case "A":  # 4x1: 128 rows a CTA, one a lane
            return i // 128, i % 128, j
        case "B":  # 2x2: 64 rows a CTA; the upper half of N is 64 lanes further
            return i // 64, i % 64 + 64 * (j >= n // 2), j % (n // 2)
        case "C":  # 4x1, half of the lanes: 64 rows a CTA, as F
            return i // 64, i % 64 % 16 + i % 64 // 16 * 32, j
        case "D":  # 4x1
            return 0, i, j
        case "E":  # 2x2
            return 0, i + 64 * (j >= n // 2), j % (n // 2)
        case "F":  # 4x1, half of the lanes: 16 rows in each part of 32 lanes
            return 0, i % 16 + i // 16 * 32, j
        case "G":  # 1x4: N in quarters
            return 0, i + 32 * (j // (n // 4)), j % (n // 4)
    raise KeyError(layout)


def a_places(layout: str, i: int) -> tuple[tuple[int, int], ...]:
    """The (cta, lane)s that hold row i of an A in tensor memory. Its columns: K elements packed, the lowest first.

    Layout B: the pair's 64 rows a CTA stand twice, since either half of the lanes multiplies them with half of B
    (CUTLASS ``TmemAllocMode::Duplicated``, which lists the rows of all parts).
    """
    match layout:
        case "A":
            return ((i // 128, i % 128),)
        case "B":
            return ((i // 64, i % 64), (i // 64, i % 64 + 64))
        case "D":
            return ((0, i),)
        case "F":
            return ((0, i % 16 + i // 16 * 32),)
    raise KeyError(layout)


def warp_lanes(warp: int) -> range:
    """The lanes that a warp may load and store (9.7.16.8.1). warp: its number in the CTA; a warpgroup is 4 warps."""
    return range(warp % 4 * 32, warp % 4 * 32 + 32)


UNDECIDED = (
    "where the metadata of a sparse A lies with 64 rows in a block: figures alone, and no public source that puts them "
    "into numbers (with 128 rows CUTLASS does)",
    "data path layout C (figure 209): the ISA's table describes it as it describes F, CUTLASS uses the 2x2 fragment "
    "(B) for sparse pairs with M = 128 too, and TileLang calls 1x4 Layout C; here it is as F",
    "A in tensor memory for layout G (.ws with 32 rows): taken to be as with 64, where FlashMLA has it twice",
    "disable-output-lane of a pair: which CTA the upper four words are of (the ISA numbers one CTA's lanes alone)",
    "D of 16 bits: the upper half of the word",
)
