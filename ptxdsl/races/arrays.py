"""Arrays of shadow memory that become longer, or finer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def finer(array: Array, factor: int, used: int) -> Array:
    """With so many elements for each; but the first ``used`` rows (of one row: elements) they are zeros, which take no
    memory until they are written."""
    made = np.zeros((*array.shape[:-1], array.shape[-1] * factor), array.dtype)
    if used:
        part = array[:used]
        made[: len(part) if array.ndim > 1 else part.size * factor] = np.repeat(part, factor, axis=-1)
    return made


def longer(array: Array, more: int) -> Array:
    """With so many more rows of zeros, which take no memory until they are written."""
    grown = np.zeros((len(array) + more, array.shape[1]), array.dtype)
    grown[: len(array)] = array
    return grown
