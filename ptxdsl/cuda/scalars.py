"""Python numbers to the bytes of a kernel's scalar parameters."""

from __future__ import annotations

import math
import numbers
import struct
from typing import Any, Literal

from ptxdsl.record import dataclass


@dataclass(frozen=True)
class ScalarFormat:
    """size in bytes; format: the letter of ``struct``, empty where ``struct`` has none; mantissa: explicit bits."""

    kind: Literal["int", "uint", "float", "bool"]
    size: int
    format: str = ""
    exponent: int = 0
    mantissa: int = 0
    infinities: bool = True

    @property
    def range(self) -> tuple[int, int]:
        """The least and greatest integer of an integer format."""
        bits = 8 * self.size
        return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if self.kind == "int" else (0, 2**bits - 1)


SCALARS: dict[str, ScalarFormat] = {
    "bool": ScalarFormat("bool", 1),
    "int": ScalarFormat("int", 8, "q"),
    "uint": ScalarFormat("uint", 8, "Q"),
    "int8": ScalarFormat("int", 1, "b"),
    "int16": ScalarFormat("int", 2, "h"),
    "int32": ScalarFormat("int", 4, "i"),
    "int64": ScalarFormat("int", 8, "q"),
    "uint8": ScalarFormat("uint", 1, "B"),
    "uint16": ScalarFormat("uint", 2, "H"),
    "uint32": ScalarFormat("uint", 4, "I"),
    "uint64": ScalarFormat("uint", 8, "Q"),
    "float16": ScalarFormat("float", 2, "", 5, 10),
    "bfloat16": ScalarFormat("float", 2, "", 8, 7),
    "float32": ScalarFormat("float", 4, "f", 8, 23),
    "float64": ScalarFormat("float", 8, "d", 11, 52),
    "float8_e4m3fn": ScalarFormat("float", 1, "", 4, 3, infinities=False),
    "float8_e5m2": ScalarFormat("float", 1, "", 5, 2),
}


def is_real(value: Any) -> bool:
    """Whether a value is a real number: no bool, no text, no array."""
    if isinstance(value, bool):
        return False
    # ml_dtypes' scalars (bfloat16, float8) are not registered as numbers
    return isinstance(value, numbers.Real) or type(value).__module__.partition(".")[0] == "ml_dtypes"


def encode_integer(value: int, dtype: str) -> bytes:
    """Raises OverflowError where the value is outside of the type's range."""
    form = SCALARS[dtype]
    low, high = form.range
    if not low <= value <= high:
        shown = f"{value}" if value.bit_length() <= 128 else f"a number of {value.bit_length()} bits"
        raise OverflowError(f"{shown} is outside of {dtype}'s range {low} … {high}")
    return value.to_bytes(form.size, "little", signed=form.kind == "int")


def encode_float(value: float, dtype: str) -> bytes:
    """Rounds to nearest, ties to even. Raises OverflowError where a finite value is too large for the type."""
    form = SCALARS[dtype]
    if form.format == "d":
        return struct.pack("<d", value)
    if form.format == "f":
        try:
            return struct.pack("<f", value)
        except OverflowError:
            raise OverflowError(f"{value!r} is too large for {dtype}") from None
    return _encode_small(value, dtype, form).to_bytes(form.size, "little")


def _encode_small(value: float, dtype: str, form: ScalarFormat) -> int:
    """The bits of a format of at most 16 bits, straight from the double: rounded once."""
    sign = int(math.copysign(1.0, value) < 0) << (form.exponent + form.mantissa)
    top = (1 << form.exponent) - 1
    if math.isnan(value):
        # without infinities the largest exponent holds numbers too, and only the last code is NaN
        quiet = 1 << (form.mantissa - 1) if form.infinities else (1 << form.mantissa) - 1
        return sign | (top << form.mantissa) | quiet
    if math.isinf(value):
        if form.infinities:
            return sign | (top << form.mantissa)
        raise OverflowError(f"{dtype} has no infinity")
    bias = (1 << (form.exponent - 1)) - 1
    exponent = max(math.frexp(value)[1] - 1, 1 - bias) if value else 1 - bias
    # the spacing of numbers at this exponent is 2 ** (exponent - mantissa); Python's round is to even
    units = round(math.ldexp(abs(value), form.mantissa - exponent))
    magnitude = units + ((exponent + bias - 1) << form.mantissa)
    largest = (top << form.mantissa) - 1 if form.infinities else (top << form.mantissa) + (1 << form.mantissa) - 2
    if magnitude > largest:
        raise OverflowError(f"{value!r} is too large for {dtype}")
    return sign | magnitude
