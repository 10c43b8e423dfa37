"""What the elements of matrix operands mean: bits of a register or of shared memory to numbers, and results to bits.

Multiplicands become float32, which holds every value of every type up to 32 bits (tf32 after its truncation), or
float64 for f64. Accumulators become float64, which holds f16, f32 and s32 exactly. A host of little-endian byte order
is assumed, as everywhere in the simulator.

Source: PTX ISA, "Alternate Floating-Point Data Formats", "Matrix Data-types", "Packing format used in matrices" and
the descriptions of ``mma`` and ``wgmma.mma_async``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.record import dataclass
from ptxdsl.sim import numbers

Array = npt.NDArray[Any]

_CODES = np.arange(256, dtype=np.uint8)
# The values of all codes of scale factors.
SCALES = {
    "ue8m0": numbers.decode(_CODES, "ue8m0"),
    "ue4m3": numbers.decode(_CODES & np.uint8(0x7F), "e4m3"),  # the highest bit is padding
}


@dataclass(frozen=True, eq=False)
class ElementType:
    """A type of multiplicands. bits: of one element where it lies. raw: the unsigned NumPy type of one element.

    decode: raw elements, in any shape, to float32 (f64: float64).
    """

    name: str
    bits: int
    raw: type[np.unsignedinteger[Any]]
    decode: Callable[[Array], Array]

    @property
    def per_register(self) -> int:
        """Elements in a register (of 32 bits, of 64 for f64)."""
        return max(32 // self.bits, 1)

    def values(self, data: Array) -> Array:
        """The elements of a contiguous array of registers or bytes, lowest first, as a flat array of numbers."""
        flat = data.reshape(-1)
        if self.bits >= 8:
            return self.decode(flat.view(self.raw))
        octets = flat.view(np.uint8)
        return self.decode(
            np.unpackbits(octets, bitorder="little") if self.bits == 1 else numbers.unpack_nibbles(octets)
        )


def _float32(raw: Array) -> Array:
    return raw.astype(np.float32)


def _float(name: str) -> Callable[[Array], Array]:
    return partial(numbers.decode, name=name)


def _table(name: str, shift: int = 0) -> Callable[[Array], Array]:
    """Looks codes up that lie ``shift`` bits above the lowest bit of their container; padding bits are ignored."""
    values: Array = numbers.decode(_CODES >> np.uint8(shift), name)
    return lambda raw: values.take(raw)


TYPES: dict[str, ElementType] = {
    type.name: type
    for type in (
        ElementType("f16", 16, np.uint16, _float("f16")),
        ElementType("bf16", 16, np.uint16, _float("bf16")),
        ElementType("tf32", 32, np.uint32, _float("tf32")),
        ElementType("f64", 64, np.uint64, _float("f64")),
        ElementType("e4m3", 8, np.uint8, _table("e4m3")),
        ElementType("e5m2", 8, np.uint8, _table("e5m2")),
        ElementType("e2m1", 4, np.uint8, _table("e2m1")),
        ElementType("s8", 8, np.uint8, lambda raw: _float32(raw.view(np.int8))),
        ElementType("u8", 8, np.uint8, _float32),
        ElementType("s4", 4, np.uint8, lambda raw: (raw ^ np.uint8(8)).astype(np.float32) - np.float32(8)),
        ElementType("u4", 4, np.uint8, _float32),
        ElementType("b1", 1, np.uint8, _float32),
    )
}

# Types of 6 and 4 bits in containers of 8, as kind::f8f6f4 and kind::mxf8f6f4 have them.
CONTAINED: dict[str, ElementType] = {
    "e4m3": TYPES["e4m3"],
    "e5m2": TYPES["e5m2"],
    "e3m2": ElementType("e3m2", 8, np.uint8, _table("e3m2")),
    "e2m3": ElementType("e2m3", 8, np.uint8, _table("e2m3")),
    "e2m1": ElementType("e2m1", 8, np.uint8, _table("e2m1", shift=2)),
}


def accumulator_values(words: Array, type: str) -> Array:
    """Accumulator registers (uint32, f64: uint64) as a flat float64 array, elements lowest first."""
    flat = words.reshape(-1)
    if type == "f32":
        return flat.view(np.float32).astype(np.float64)
    if type == "f16":
        return flat.view(np.float16).astype(np.float64)
    if type == "s32":
        return flat.view(np.int32).astype(np.float64)
    return flat.view(np.float64)


def accumulator_codes(values: Array, type: str, saturate: bool = False) -> Array:
    """The codes (unsigned, of the type's width) of float64 results, each rounded once, to nearest even.

    Sums of integers are exact here; they wrap, or with ``saturate`` stop at the ends of s32. NumPy's warnings of
    overflow are the caller's to switch off (``matrix_arithmetic.quiet``).
    """
    if type == "s32":
        if saturate:
            values = np.clip(values, -(2.0**31), 2.0**31 - 1)
        return values.astype(np.int64).astype(np.uint32)
    form = numbers.FORMATS[type]
    rounded = values.astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[type])
    codes: Array = rounded.view(form.storage)
    missing = rounded != rounded
    if missing.any():
        codes[missing] = form.nan
    return codes


def accumulator_words(values: Array, type: str, saturate: bool = False) -> Array:
    """The flat registers (uint32, f64: uint64) that hold float64 results (``accumulator_codes``)."""
    codes = accumulator_codes(values.reshape(-1), type, saturate)
    return codes.view(np.uint32) if type == "f16" else codes
