"""What asynchronous reductions in memory compute: ``cp.reduce.async.bulk``, its tensor form, ``red.async``.

Source: PTX ISA, "cp.reduce.async.bulk" and "red.async" (operations and types; inc and dec). Where the ISA leaves room,
or says otherwise (it has f32 addition flush subnormal numbers), it is done as by an H200.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.sim import numbers

Array = npt.NDArray[Any]

# By PTX type, the unsigned NumPy type of its bits.
STORAGE: dict[str, Any] = {
    **{f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "bus" for bits in (8, 16, 32, 64)},
    "f16": np.dtype("u2"),
    "bf16": np.dtype("u2"),
    "f32": np.dtype("u4"),
    "f64": np.dtype("u8"),
}
_FLOATS = ("f16", "bf16", "f32", "f64")
OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def reduce(operation: str, type: str, old: Array, new: Array) -> Array:
    """The bits that memory holds after ``operation`` on what it held and a source's bits, both of ``STORAGE[type]``."""
    if type in _FLOATS:
        if operation == "add":
            return numbers.add(old, new, type)
        return (numbers.minimum if operation == "min" else numbers.maximum)(old, new, type)
    if operation == "add":
        return old + new
    if operation in ("min", "max"):
        signed = old.view(old.dtype.str.replace("u", "i")) if type[0] == "s" else old
        other = new.view(signed.dtype)
        picked: Array = np.minimum(signed, other) if operation == "min" else np.maximum(signed, other)
        return picked.view(old.dtype)
    if operation == "inc":  # wraps to zero at the source's value
        return np.where(old >= new, 0, old + old.dtype.type(1)).astype(old.dtype)
    if operation == "dec":
        return np.where((old == 0) | (old > new), new, old - old.dtype.type(1)).astype(old.dtype)
    return {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[operation](old, new)
