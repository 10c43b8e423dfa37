"""Tensor maps: what a 128-byte descriptor says of a tensor in global memory and of the tile that a TMA copy moves.

The form of the 128 bytes is the card's: where its fields lie is what ``tensormap.replace`` changes in ptxas' code, and
what the driver makes is measured (tests/device/dump_tensor_maps.py). Rules: CUDA driver API, "Tensor Map Object
Management", cuTensorMapEncodeTiled. Dimension 0 is the innermost here, as there; ``TensorMap`` takes NumPy's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.cuda.errors import launch_error
from ptxdsl.record import dataclass, replace
from ptxdsl.sim.swizzle import SWIZZLES

TENSOR_MAP_BYTES = 128
MOST_DIMENSIONS = 5
MOST_SHARED = 227 * 1024  # not documented; between 192 and 256 KiB the driver begins to refuse


@dataclass(frozen=True, slots=True)
class ElementType:
    """code: in the 128 bytes. bits: of an element in global memory. packed: bytes of a group of 16 elements in global
    memory and in shared memory, for types whose elements are smaller than a byte. numpy: the array types it fits."""

    name: str
    code: int
    bits: int
    floating: bool = False
    tf32: bool = False
    packed: tuple[int, int] | None = None
    numpy: tuple[str, ...] = ()


ELEMENT_TYPES: dict[str, ElementType] = {
    element.name: element
    for element in (
        ElementType("u8", 0, 8, numpy=("uint8", "int8", "bool")),
        ElementType("u16", 1, 16, numpy=("uint16", "int16")),
        ElementType("u32", 2, 32, numpy=("uint32",)),
        ElementType("s32", 3, 32, numpy=("int32",)),
        ElementType("u64", 4, 64, numpy=("uint64",)),
        ElementType("s64", 5, 64, numpy=("int64",)),
        ElementType("f16", 6, 16, floating=True, numpy=("float16",)),
        ElementType("f32", 7, 32, floating=True, numpy=("float32",)),
        ElementType("f32.ftz", 8, 32, floating=True),
        ElementType("f64", 9, 64, floating=True, numpy=("float64",)),
        ElementType("bf16", 10, 16, floating=True),
        ElementType("tf32", 7, 32, floating=True, tf32=True),
        ElementType("tf32.ftz", 8, 32, floating=True, tf32=True),
        ElementType("b4x16", 11, 4, packed=(8, 8)),
        ElementType("b4x16_p64", 12, 4, packed=(8, 16)),
        ElementType("b6x16_p32", 13, 6, packed=(12, 16)),
    )
}
_BY_CODE = {(element.code, element.tf32): element for element in ELEMENT_TYPES.values()}
INTERLEAVES = {"none": 0, "16B": 16, "32B": 32}  # bytes of a slice of channels
PROMOTIONS = ("none", "64B", "128B", "256B")
FILLS = ("zero", "nan")
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
_PACKED_SWIZZLES = {
    "b4x16_p64": ("none", "128B", "128B_atom_32B"),
    "b6x16_p32": ("none", "128B", "128B_atom_32B", "128B_atom_64B"),
}


@dataclass(frozen=True, slots=True)
class Description:
    """What a tensor map says. strides: bytes from one element of dimension 1, 2 … to the next."""

    data_type: str
    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: str = "none"
    swizzle: str = "none"
    l2_promotion: str = "none"
    fill: str = "zero"

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def element(self) -> ElementType:
        return ELEMENT_TYPES[self.data_type]


def broken_rules(said: Description) -> Iterator[str]:
    """What the driver would refuse, one sentence a rule, without a dot."""
    rank, element = said.rank, said.element
    padded = element.name in _PACKED_SWIZZLES
    slice_bytes = INTERLEAVES[said.interleave]
    if not 1 <= rank <= MOST_DIMENSIONS:
        yield f"a tensor map has 1 to {MOST_DIMENSIONS} dimensions, not {rank}"
        return
    for what, given, wanted in (
        ("strides", said.strides, rank - 1),
        ("box sizes", said.box, rank),
        ("element strides", said.element_strides, rank),
    ):
        if len(given) != wanted:
            yield f"a tensor map of {rank} dimensions has {wanted} {what}, not {len(given)}"
            return
    if slice_bytes and rank < 3:
        yield f"interleave {said.interleave} needs at least 3 dimensions, not {rank}"
    alignment = 32 if slice_bytes == 32 or padded else 16
    if said.address % alignment:
        yield f"the address {said.address:#x} is not a multiple of {alignment} bytes"
    for number, size in enumerate(said.dims):
        if not 1 <= size <= 1 << 32:
            yield f"dimension {number} has {size} elements; 1 to 2^32 are possible"
    multiple = 128 if padded else 2 if element.name == "b4x16" else 1
    if said.dims[0] % multiple:
        yield f"the innermost dimension of {element.name} must be a multiple of {multiple} elements, not {said.dims[0]}"
    for number, stride in enumerate(said.strides):
        if stride % alignment or not 0 <= stride < 1 << 40:
            yield f"stride {number} is {stride} bytes; it must be a multiple of {alignment} and less than 2^40"
    for number, size in enumerate(said.box):
        if not 1 <= size <= 256:
            yield f"the box has {size} elements in dimension {number}; 1 to 256 are possible"
    if padded and said.box[0] != 128:
        yield f"the box of {element.name} must have 128 elements in the innermost dimension, not {said.box[0]}"
    row = said.box[0] * element.bits
    if row % 128:
        yield f"a row of the box has {row / 8:g} bytes; it must be a multiple of 16"
    size = row // 8
    for box, step in zip(said.box[1:], said.element_strides[1:], strict=True):
        size *= max(1, box // max(1, step))
    if size > MOST_SHARED and not slice_bytes:
        yield f"the box has {size} bytes, more than the {MOST_SHARED} of shared memory that a CTA can have"
    for number, step in enumerate(said.element_strides):
        if not 1 <= step <= 8:
            yield f"the element stride of dimension {number} is {step}; 1 to 8 are possible"
    swizzle = SWIZZLES[said.swizzle]
    if not slice_bytes and swizzle.span and not padded and row > swizzle.span * 8:
        yield f"a row of the box has {row / 8:g} bytes, more than the {swizzle.span} of swizzle {said.swizzle}"
    if slice_bytes == 32 and said.swizzle != "32B":
        yield f"interleave 32B needs swizzle 32B, not {said.swizzle}"
    if said.swizzle not in _PACKED_SWIZZLES.get(element.name, (said.swizzle,)):
        yield f"{element.name} cannot be swizzled by {said.swizzle}"
    if element.name == "b6x16_p32" and slice_bytes:
        yield f"{element.name} cannot be interleaved"
    if said.fill == "nan" and not element.floating:
        yield f"elements of {element.name} cannot be filled with NaN"


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


class TensorMap:
    """A tensor map on a NumPy array, to be given to a launch as a kernel's ``TensorMap`` argument.

    box: the tile's elements in each of the array's dimensions. shape and strides (bytes) are the array's unless given;
    the strides' last entry, of the innermost dimension, is the element. All in NumPy's order, outermost first.
    data_type: an element type's name where the array's dtype does not tell it (``bf16`` on uint16, ``tf32``).
    interleave: ``none``, ``16B``, ``32B``. swizzle: ``none``, ``32B``, ``64B``, ``128B``, ``128B_atom_32B``,
    ``128B_atom_32B_flip_8B``, ``128B_atom_64B``. l2_promotion: ``none``, ``64B``, ``128B``, ``256B``. fill: of elements
    outside the tensor, ``zero`` or ``nan``. Raises LaunchError for what the card's driver would refuse.
    """

    def __init__(
        self,
        array: npt.NDArray[Any],
        box: Sequence[int],
        element_strides: Sequence[int] | None = None,
        interleave: str = "none",
        swizzle: str = "none",
        l2_promotion: str = "none",
        fill: str = "zero",
        *,
        data_type: str | None = None,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
    ) -> None:
        self.array = array
        for what, value, known in (
            ("interleave", interleave, tuple(INTERLEAVES)),
            ("swizzle", swizzle, tuple(_SWIZZLE_FIELDS)),
            ("l2_promotion", l2_promotion, PROMOTIONS),
            ("fill", fill, FILLS),
            ("data_type", data_type, (None, *ELEMENT_TYPES)),
        ):
            if value not in known:
                names = ", ".join(f"'{name}'" for name in known if name)
                raise launch_error("E0920", f"{what}={value!r} of a tensor map is none of {names}")
        element = ELEMENT_TYPES[data_type] if data_type else _element_of(array.dtype)
        shape = array.shape if shape is None else tuple(shape)
        strides = array.strides if strides is None else tuple(strides)
        steps = (1,) * len(shape) if element_strides is None else tuple(element_strides)
        if not element.packed and shape and len(strides) == len(shape) and strides[-1] * 8 != element.bits:
            raise launch_error(
                "E0920",
                f"the innermost dimension of a tensor map must be contiguous: its stride is {strides[-1]} bytes, an "
                f"element of {element.name} has {element.bits // 8}",
            )
        self.description = Description(
            element.name,
            0,
            tuple(map(int, reversed(shape))),
            tuple(map(int, reversed(strides[:-1]))),
            tuple(map(int, reversed(box))),
            tuple(map(int, reversed(steps))),
            interleave,
            swizzle,
            l2_promotion,
            fill,
        )
        self._check(self.description)

    def encode(self, address: int) -> bytes:
        """The 128 bytes for the array's memory at an address. Raises LaunchError where it is not aligned."""
        said = replace(self.description, address=address)
        self._check(said)
        return encode(said)

    def _check(self, said: Description) -> None:
        broken = list(broken_rules(said))
        if broken:
            more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
            raise launch_error("E0920", f"a tensor map that the card does not take: {broken[0]}{more}")


def _element_of(dtype: np.dtype[Any]) -> ElementType:
    for element in ELEMENT_TYPES.values():
        if dtype.name in element.numpy:
            return element
    if dtype.name == "bfloat16":
        return ELEMENT_TYPES["bf16"]
    if dtype.itemsize == 1:
        return ELEMENT_TYPES["u8"]
    raise launch_error(
        "E0920",
        f"an array of {dtype} has no element type of a tensor map",
        help="give data_type=: " + ", ".join(ELEMENT_TYPES),
    )
