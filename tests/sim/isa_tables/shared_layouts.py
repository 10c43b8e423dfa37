"""Where an element of A or B lies in shared memory, for each major-ness and swizzling mode.

Source: PTX ISA 9.2, 9.7.16.3.1.1 "Relative offset mode", 9.7.16.3.2 "Stride Dimension Byte Offset", 9.7.16.3.3
"Canonical Layouts", 9.7.16.10.6 "Shared Memory Layout and Swizzling" (table 55), 9.7.16.10.3 (table 54).
Second: CUTLASS ``make_umma_desc``, ``Layout_MN_SW128_32B_Atom_Bits`` (the ISA gives no canonical layout for the
128-byte mode with 32-byte atoms, only its 8x4 atom).

In units of 16 bytes an atom has 8 rows (K-major: rows of the matrix; MN-major: k), each as wide as the swizzle. No
swizzle: it is 8 pieces of 16 bytes. Between atoms run the descriptor's two strides:

============  ========================================  ==============================================
              leading                                   stride
============  ========================================  ==============================================
K, none       next 16 bytes of K                        next 8 rows
K, swizzled   not used (all K of a product in an atom)  next 8 rows
MN, none      next 8 k                                  next 16 bytes of M or N
MN, swizzled  next atom along M or N                    next 8 k (32-byte atoms: 4 k)
============  ========================================  ==============================================

The swizzle exchanges bits of the address itself, not of the offset in the matrix: a start address that is advanced
within an atom addresses the elements further along K. CuTe: Swizzle<1,4,3>, <2,4,3>, <3,4,3>; Swizzle<2,5,2>.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Mode -> (bytes of a row of the atom, lowest address bit that changes, bits, distance to the bits it is xor-ed with)
SWIZZLE_BITS: dict[str, tuple[int, int, int, int]] = {
    "none": (16, 4, 0, 3),
    "32b": (32, 4, 1, 3),
    "64b": (64, 4, 2, 3),
    "128b": (128, 4, 3, 3),
    "128b_atom32": (128, 5, 2, 2),
}
K_MODES = ("none", "32b", "64b", "128b")
MN_MODES = ("none", "32b", "64b", "128b")
MN_MODES_OF_32_BITS = ("128b_atom32",)  # table 54: 32-bit elements are MN-major in this mode alone, others never

Offset = Callable[[int, int], int]


def swizzled(address: int, mode: str) -> int:
    """The shared address of a byte of which the canonical layout says address. All of these take arrays too."""
    _, low, bits, distance = SWIZZLE_BITS[mode]
    return address ^ (address >> distance & ((1 << bits) - 1) << low)


def k_major(row: int, byte: int, mode: str, leading: int, stride: int) -> int:
    """Byte offset, not swizzled, of a byte of a row. byte: of the row's K extent."""
    width = SWIZZLE_BITS[mode][0]
    if mode == "none":
        return row % 8 * 16 + row // 8 * stride + byte // 16 * leading + byte % 16
    assert np.all(byte < width)
    return row % 8 * width + row // 8 * stride + byte


def mn_major(byte: int, k: int, mode: str, leading: int, stride: int) -> int:
    """Byte offset, not swizzled, of a byte of row k. byte: of the extent along M or N."""
    width = SWIZZLE_BITS[mode][0]
    if mode == "none":
        return byte % 16 + byte // 16 * stride + k % 8 * 16 + k // 8 * leading
    rows = 4 if mode == "128b_atom32" else 8
    return byte % width + byte // width * leading + k % rows * width + k // rows * stride


def nested(shape: tuple, stride: tuple, index: tuple[int, int]) -> int:
    """A CuTe layout ((…),(…)):((…),(…)) at (row, column): a coordinate runs through its mode's parts, first fastest."""
    at = 0
    for extents, steps, position in zip(shape, stride, index, strict=True):
        for extent, step in zip(extents, steps, strict=True):
            at += position % extent * step
            position //= extent
        assert position == 0
    return at


# The worked examples of 9.7.16.3.3 (the second as far as an atom of 32 bytes goes: the ISA prints (4,4):(1,4) for k, of
# which the upper half would lie on other rows): name -> (mode, bytes of an element, leading and stride in bytes, CuTe
# shape, CuTe stride in elements); of (row, k), where row runs along M or N.
EXAMPLES: dict[str, tuple[str, int, int, int, tuple, tuple]] = {
    "K, none, tf32": ("none", 4, 256, 128, ((8, 2), (4, 4)), ((4, 32), (1, 64))),
    "K, 32b, tf32": ("32b", 4, 0, 256, ((8, 2), (4, 2)), ((8, 64), (1, 4))),
    "MN, none, bf16": ("none", 2, 256, 128, ((8, 1, 2), (8, 2)), ((1, 8, 64), (8, 128))),
    "MN, 32b, bf16": ("32b", 2, 256, 512, ((8, 2, 2), (8, 2)), ((1, 8, 128), (16, 256))),
    "MN, 64b, bf16": ("64b", 2, 512, 1024, ((8, 4, 2), (8, 2)), ((1, 8, 256), (32, 512))),
}
# Encodings of the strides in a descriptor that the same examples state: name -> (leading, stride); None: "NA".
EXAMPLE_ENCODINGS: dict[str, tuple[int | None, int]] = {
    "K, none, tf32": (16, 8),
    "K, 32b, tf32": (None, 16),
    "MN, none, bf16": (16, 8),
    "MN, 32b, bf16": (16, 32),
    "MN, 64b, bf16": (32, 64),
}
