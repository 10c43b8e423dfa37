"""Fields of the records of ``layout`` as attributes of the objects whose records they are, by ctypes: there is no
quicker way to a number in memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_TYPES: dict[str, Any] = {
    "int32": ctypes.c_int32, "uint32": ctypes.c_uint32, "int64": ctypes.c_int64, "uint64": ctypes.c_uint64,
}  # fmt: skip


def fields_of(record: np.dtype, first: str, last: str) -> list[tuple[str, Any]]:
    """Of a ctypes.Structure those from one field to another, all of them numbers. The first one is aligned for any."""
    names = record.names
    assert names is not None
    return [(name, _TYPES[record[name].name]) for name in names[names.index(first) : names.index(last) + 1]]
