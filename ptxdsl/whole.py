"""Whole numbers that a caller has given."""

from __future__ import annotations

import operator

from ptxdsl.hints import Any


def whole(value: Any) -> int:
    """An integer of any kind, NumPy's too, as an int. Raises TypeError for all else, a bool too."""
    if isinstance(value, bool):
        raise TypeError("a bool is not a whole number")
    return operator.index(value)
