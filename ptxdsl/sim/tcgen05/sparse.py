"""Metadata of a sparse A in tensor memory: which elements of a row the stored half are.

Two numbers of 2 bits each for four elements say which two of them are stored, the first one in the lower bits. Known is
where they lie with 128 rows in a CTA:

- elements of 16 bits: one column a product, the selector's of two. Of 16 lanes, lane 8s + l has numbers 8s to 8s + 7 of
  row l in its lower half, and of row l + 8 in the upper one;
- elements of 8 bits, 4 and 6 bits in their containers too: two columns a product; lane r has row r's numbers in order.

Source: PTX ISA, "Sparse Matrices", which has these places in figures alone; JAX lays metadata out so for the same
instructions on the card (``format_tcgen05_sparse_metadata`` of its Mosaic GPU).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
KINDS = ("f16", "f8f6f4", "i8")
COLUMNS = 2  # that a metadata address stands for


def chosen_columns(words: Array, kind: str, selector: int) -> Array | None:
    """The column in A of each stored element, (128 rows, K / 2), from (128 lanes, 2 columns) of metadata.

    None where one element is named twice.
    """
    if kind == "f16":
        # 16 lanes -> numbers' half, row in 8; a word -> row's half, number in 8
        groups = np.ascontiguousarray(words[:, selector]).reshape(8, 2, 8)
        fields = _numbers(groups).reshape(8, 2, 8, 2, 8)
        numbers = fields.transpose(0, 3, 2, 1, 4).reshape(128, 16)
    else:
        numbers = _numbers(words).reshape(128, 32)
    pairs = numbers.reshape(128, -1, 2)
    if (pairs[..., 0] == pairs[..., 1]).any():
        return None
    columns: Array = (pairs + 4 * np.arange(pairs.shape[1])[:, None]).reshape(128, -1)
    return columns


def _numbers(words: Array) -> Array:
    """The 16 numbers of each word, along a new last axis."""
    return (words[..., None] >> np.arange(0, 32, 2, dtype=np.uint32) & 3).astype(np.int64)
