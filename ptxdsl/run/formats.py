"""Element types as NumPy holds them: those that it has no dtype for are kept as their bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptxdsl.record import dataclass

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Format:
    """storage: NumPy's dtype of the elements' bits or values; exact: whether NumPy knows the type itself."""

    storage: str
    exact: bool = True
    ptx: str = ""  # the simulator's name of a type that NumPy does not know


FORMATS: dict[str, Format] = {
    "bool": Format("bool"),
    **{f"{kind}{bits}": Format(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "float16": Format("float16"),
    "float32": Format("float32"),
    "float64": Format("float64"),
    "bfloat16": Format("uint16", False, "bf16"),
    "float8_e4m3fn": Format("uint8", False, "e4m3"),
    "float8_e5m2": Format("uint8", False, "e5m2"),
}
SHORT_NAMES = {
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
}  # fmt: skip


def from_values(values: npt.ArrayLike, dtype: str) -> Array:
    """An array's storage from numbers; rounds to nearest even. What is too large becomes infinity, or the
    largest number of a type that has none."""
    numbers = np.asarray(values)
    if FORMATS[dtype].exact:
        with np.errstate(over="ignore", invalid="ignore"):
            return numbers.astype(FORMATS[dtype].storage)
    from ptxdsl.sim.numbers import encode

    return encode(numbers.astype(np.float64), FORMATS[dtype].ptx).astype(FORMATS[dtype].storage)


def to_values(storage: Array, dtype: str) -> Array:
    """Numbers that NumPy can compute with: the array itself, or float32 of the types that it does not know."""
    if FORMATS[dtype].exact:
        return storage
    from ptxdsl.sim.numbers import decode

    return decode(storage, FORMATS[dtype].ptx).astype(np.float32)
