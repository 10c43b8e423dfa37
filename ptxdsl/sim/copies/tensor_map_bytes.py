"""The 128 bytes of a tensor map, as the card has them.

Where its fields lie is what ``tensormap.replace`` changes in ptxas' code, and what the driver makes was measured.
"""

from __future__ import annotations

import numpy as np

from ptxdsl.sim.copies.swizzle import SWIZZLES
from ptxdsl.sim.copies.tensor_description import (
    ELEMENT_TYPES,
    FILLS,
    INTERLEAVES,
    MOST_DIMENSIONS,
    PROMOTIONS,
    Description,
)

TENSOR_MAP_BYTES = 128
_BY_CODE = {(element.code, element.tf32): element for element in ELEMENT_TYPES.values()}
# Swizzles by their two fields, mode and atomicity.
_SWIZZLE_FIELDS = {
    "none": (0, 0),
    "32B": (1, 0),
    "64B": (2, 0),
    "128B": (3, 0),
    "128B_atom_32B": (3, 1),
    "128B_atom_32B_flip_8B": (3, 2),
    "128B_atom_64B": (3, 3),
    "96B": (4, 0),
}
_SWIZZLES_BY_FIELDS = {fields: name for name, fields in _SWIZZLE_FIELDS.items()}

# The element types as ``tensormap.replace`` numbers them: not as cuTensorMapEncodeTiled does.
_REPLACED_TYPES = (
    "u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz", "b4x16",
    "b4x16_p64", "b6x16_p32",
)  # fmt: skip

# The 128 bytes: byte offset of the 32-bit word, lowest bit, bits.
_RANK = (8, 4, 3)
_ELEMENT = (8, 7, 4)
_INTERLEAVE = (8, 11, 2)
_SWIZZLE = (8, 13, 2)
_FILL = (8, 15, 1)
_TF32 = (8, 16, 1)
_PROMOTION = (8, 17, 2)
_ATOMICITY = (8, 19, 2)
_SWIZZLE_HIGH = (8, 22, 1)
_STRIDE_HIGH = 28  # 4 bits each of what a stride / 16 has beyond 32 bits
_ELEMENT_STRIDES = 52  # 3 bits each, less one
_TILE_BYTES = (64, 0, 32)  # the last two are for the driver's own use
_PATTERN_BYTES = (72, 0, 32)
Field = tuple[int, int, int]


class Words:
    """The 32 words of a map, by field."""

    def __init__(self, data: bytes = bytes(TENSOR_MAP_BYTES)) -> None:
        self.words = np.frombuffer(data, "<u4").copy()

    def get(self, field: Field) -> int:
        at, low, bits = field
        return int(self.words[at // 4]) >> low & (1 << bits) - 1

    def set(self, field: Field, value: int) -> None:
        at, low, bits = field
        mask = (1 << bits) - 1 << low
        self.words[at // 4] = int(self.words[at // 4]) & ~mask & 0xFFFFFFFF | value << low & mask

    # What tensormap.replace sets, too

    @property
    def address(self) -> int:
        return self.get((0, 0, 32)) | self.get((4, 0, 32)) << 32

    @address.setter
    def address(self, value: int) -> None:
        self.set((0, 0, 32), value & 0xFFFFFFFF)
        self.set((4, 0, 32), value >> 32 & 0xFFFFFFFF)

    def dim(self, number: int) -> Field:
        return 32 + 4 * number, 0, 32

    def box(self, number: int) -> Field:
        return (56, 8 * (number - 1), 8) if number else (52, 24, 8)

    def element_stride(self, number: int) -> Field:
        return _ELEMENT_STRIDES, 3 * number, 3

    def set_stride(self, number: int, value: int) -> None:
        self.set((12 + 4 * number, 0, 32), value >> 4 & 0xFFFFFFFF)
        self.set((_STRIDE_HIGH, 4 * number, 4), value >> 36 & 15)

    def stride(self, number: int) -> int:
        return self.get((12 + 4 * number, 0, 32)) << 4 | self.get((_STRIDE_HIGH, 4 * number, 4)) << 36

    def set_swizzle(self, mode: int) -> None:
        self.set(_SWIZZLE, mode & 3)
        self.set(_SWIZZLE_HIGH, mode >> 2)

    def replace(self, field: str, ordinal: int, value: int) -> None:
        """What ``tensormap.replace`` does. Sizes are given as they are, the rank less one, the rest by table."""
        if field == "global_address":
            self.address = value
        elif field == "rank":
            self.set(_RANK, value)
        elif field == "box_dim":
            self.set(self.box(ordinal), value - 1)
        elif field == "global_dim":
            self.set(self.dim(ordinal), value - 1)
        elif field == "global_stride":
            self.set_stride(ordinal, value)
        elif field == "element_stride":
            self.set(self.element_stride(ordinal), value - 1)
        elif field == "elemtype":
            element = ELEMENT_TYPES[_REPLACED_TYPES[value]]
            self.set(_ELEMENT, element.code)
            if element.tf32:  # the code that ptxas makes sets the mark and never clears it
                self.set(_TF32, 1)
        elif field == "interleave_layout":
            self.set(_INTERLEAVE, value)
        elif field == "swizzle_mode":
            self.set_swizzle(value)
        elif field == "swizzle_atomicity":
            self.set(_ATOMICITY, value)
        elif field == "fill_mode":
            self.set(_FILL, value)
        else:
            raise ValueError(field)


def encode(said: Description) -> bytes:
    """The 128 bytes. The rules are not checked."""
    made = Words()
    made.address = said.address
    made.set(_RANK, said.rank - 1)
    made.set(_ELEMENT, said.element.code)
    made.set(_TF32, said.element.tf32)
    made.set(_INTERLEAVE, list(INTERLEAVES).index(said.interleave))
    mode, atomicity = _SWIZZLE_FIELDS[said.swizzle]
    made.set_swizzle(mode)
    made.set(_ATOMICITY, atomicity)
    made.set(_PROMOTION, PROMOTIONS.index(said.l2_promotion))
    made.set(_FILL, FILLS.index(said.fill))
    for number in range(said.rank):
        made.set(made.dim(number), said.dims[number] - 1 & 0xFFFFFFFF)
        made.set(made.box(number), said.box[number] - 1)
        made.set(made.element_stride(number), said.element_strides[number] - 1)
    for number, stride in enumerate(said.strides):
        made.set_stride(number, stride)
    size = said.element.bits
    for box, step in zip(said.box, said.element_strides, strict=True):
        size *= box // step
    made.set(_TILE_BYTES, size // 8)
    made.set(_PATTERN_BYTES, SWIZZLES[said.swizzle].pattern)
    return made.words.tobytes()


def decode(data: bytes) -> Description:
    """What 128 bytes say. Raises ValueError where they cannot be a tensor map."""
    words = Words(data)
    rank = words.get(_RANK) + 1
    element = _BY_CODE.get((words.get(_ELEMENT), bool(words.get(_TF32)))) or _BY_CODE.get((words.get(_ELEMENT), False))
    swizzle = _SWIZZLES_BY_FIELDS.get(
        (words.get(_SWIZZLE) | words.get(_SWIZZLE_HIGH) << 2, words.get(_ATOMICITY) if words.get(_SWIZZLE) == 3 else 0)
    )
    interleave = words.get(_INTERLEAVE)
    if rank > MOST_DIMENSIONS or element is None or swizzle is None or interleave >= len(INTERLEAVES):
        raise ValueError("no tensor map has such a dimension count, element type, swizzle or interleave")
    return Description(
        element.name,
        words.address,
        tuple(words.get(words.dim(n)) + 1 for n in range(rank)),
        tuple(words.stride(n) for n in range(rank - 1)),
        tuple(words.get(words.box(n)) + 1 for n in range(rank)),
        tuple(words.get(words.element_stride(n)) + 1 for n in range(rank)),
        list(INTERLEAVES)[interleave],
        swizzle,
        PROMOTIONS[words.get(_PROMOTION)],
        FILLS[words.get(_FILL)],
    )
