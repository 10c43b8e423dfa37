"""tcgen05.ld and tcgen05.st: which register of which thread holds which lane and column.

Source: PTX ISA 9.2, 9.7.16.2.3.1 "Memory Layout" (figures 183 to 187), 9.7.16.8.1 to 9.7.16.8.4 (tables 49 and 50;
figure 193).
Second: CUTLASS ``Copy_Traits<SM100_TMEM_LOAD_*>`` (all shapes and counts, packed too), TileLang, Tilus.

Lanes count from the address's lane: a shape of 16 lanes takes those 16 of the warp's 32 where the address is. A
register holds a column, or with .pack::16b the low halves of two adjacent columns, the lower column in its low bits;
.unpack::16b is the reverse. Columns count from the address's column.
"""

from __future__ import annotations

SHAPES = ("16x64b", "16x128b", "16x256b", "32x32b", "16x32bx2")
# Shape -> registers of a thread for .x1; table 49: times the count, at most 128.
REGISTERS: dict[str, int] = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1, "16x32bx2": 1}
MAX_REGISTERS = 128
LANES: dict[str, int] = {shape: int(shape.split("x")[0]) for shape in SHAPES}


def counts(shape: str) -> tuple[int, ...]:
    """.xN that the shape has."""
    return tuple(c for c in (1, 2, 4, 8, 16, 32, 64, 128) if c * REGISTERS[shape] <= MAX_REGISTERS)


def word(shape: str, thread: int, register: int, half_split: int = 0) -> tuple[int, int]:
    """(lane, column) of a thread's register. half_split: the immediate of .16x32bx2, in columns."""
    match shape:
        case "32x32b":
            return thread, register
        case "16x64b":  # rows 0-7 in the even threads, 8-15 in the odd ones
            return thread // 4 + 8 * (thread % 2), thread // 2 % 2 + 2 * register
        case "16x128b":
            return thread // 4 + 8 * (register % 2), thread % 4 + 4 * (register // 2)
        case "16x256b":
            return thread // 4 + 8 * (register // 2 % 2), 2 * (thread % 4) + register % 2 + 8 * (register // 4)
        case "16x32bx2":  # the second 16 threads have the second access
            return thread % 16, register + half_split * (thread // 16)
    raise KeyError(shape)


def halves(shape: str, thread: int, register: int, half_split: int = 0) -> tuple[tuple[int, int], tuple[int, int]]:
    """(lane, column) of the low and of the high half of a register with .pack::16b or .unpack::16b.

    half_split stays in columns: the second access of .16x32bx2 begins at taddr + immHalfSplitoff, packed or not.
    """
    if shape == "16x32bx2":
        lane, column = thread % 16, 2 * register + half_split * (thread // 16)
    else:
        lane, column = word(shape, thread, register)
        column *= 2
    return (lane, column), (lane, column + 1)


# Corners of the figures, as CUTLASS's layouts give them too: (shape, thread, register) -> (lane, column).
CORNERS: dict[tuple[str, int, int], tuple[int, int]] = {
    ("32x32b", 31, 2): (31, 2),
    ("16x64b", 0, 0): (0, 0),
    ("16x64b", 1, 0): (8, 0),
    ("16x64b", 2, 0): (0, 1),
    ("16x64b", 3, 0): (8, 1),
    ("16x64b", 4, 0): (1, 0),
    ("16x64b", 31, 1): (15, 3),
    ("16x128b", 1, 0): (0, 1),
    ("16x128b", 4, 1): (9, 0),
    ("16x128b", 31, 3): (15, 7),
    ("16x256b", 1, 1): (0, 3),
    ("16x256b", 4, 2): (9, 0),
    ("16x256b", 31, 7): (15, 15),
    ("16x32bx2", 15, 1): (15, 1),
}
