"""What a tensor map says: element types, a tensor's and its tile's shape, and the rules that the driver has for them.

Rules: CUDA driver API, "Tensor Map Object Management", cuTensorMapEncodeTiled, and what a
driver was seen to do. Dimension 0 is the innermost here, as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ptxdsl.record import dataclass
from ptxdsl.sim.copies.swizzle import SWIZZLES

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
INTERLEAVES = {"none": 0, "16B": 16, "32B": 32}  # bytes of a slice of channels
PROMOTIONS = ("none", "64B", "128B", "256B")
FILLS = ("zero", "nan")
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

    @property
    def form(self) -> tuple[object, ...]:
        """What a copy by it moves, wherever the tensor lies: one object for all maps that are alike in this."""
        return _one((self.data_type, self.box, self.element_strides, self.interleave, self.swizzle))


@lru_cache(1024)
def _one(form: tuple[object, ...]) -> tuple[object, ...]:
    return form


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
