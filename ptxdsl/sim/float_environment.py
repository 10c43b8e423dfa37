"""The host's floating-point environment while a simulation runs: the default one, whatever the process had before.

A library that was built with ``-ffast-math`` lets the processor flush subnormal numbers, in the whole thread that loads
it; compiled code and NumPy would then compute something else than the card. Source: C11, 7.6 ``fenv.h``; FE_DFL_ENV
resets the flushing too, in the GNU library (x86-64, AArch64), musl and macOS.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_ROOM = 256  # bytes; no ``fenv_t`` is larger


@contextmanager
def default_floats() -> Iterator[None]:
    """Round to nearest, subnormal numbers as they are; what was before is back at the end. Nothing where the host's C
    library is not known."""
    library, default = _library()
    if library is None:
        yield
        return
    before = ctypes.create_string_buffer(_ROOM)
    library.fegetenv(before)
    library.fesetenv(default)
    try:
        yield
    finally:
        library.fesetenv(before)


@cache
def _library() -> tuple[Any, Any]:
    """The C library, and FE_DFL_ENV."""
    try:
        if sys.platform == "darwin":
            library = ctypes.CDLL(None)
            return library, ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))
        if sys.platform == "linux":
            library = ctypes.CDLL("libm.so.6")
            return (library if hasattr(library, "fesetenv") else None), ctypes.c_void_p(-1)
    except (OSError, ValueError):  # another C library, with another name
        pass
    return None, None
