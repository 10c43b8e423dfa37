"""Metadata of a sparse A in tensor memory: which elements of a row the stored half are.

Two numbers of 2 bits each for four units of a row say which two of them are stored, the first one in the lower bits.
A unit is an element of 16 or 8 bits, two elements of 4 bits without padding, or half an element of tf32: there the two
are 0 and 1 or 2 and 3. Where they lie, with a lane for each row:

- elements of 16 and 32 bits: one column a product, the selector's of two. Of 16 lanes, lane 8s + l has numbers 8s to
  8s + 7 of row l in its lower half, and of row l + 8 in the upper one;
- smaller elements, in containers too: two columns a product; the lane of a row has its numbers in order.

The lane of a row is that of the row of D; with ``.ws``, where the lanes have the rows several times, each of them.

Source: PTX ISA, "Sparse Matrices", which has these places in figures alone. JAX and CUTLASS lay metadata out so for the
same instructions on the card with 128 rows in a CTA (``format_tcgen05_sparse_metadata`` of JAX's Mosaic GPU, elements
of 16 and 8 bits; ``TensorEAtom`` and ``tmem_e_frg`` of CUTLASS, all of them). CUTLASS has ``.ws`` so, too
(``tmem_e_frg_ws``). That 64 rows without it lie so follows from "Alignment restriction": the layouts that use half of
the lanes have the same alignment for A, D and the metadata.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
SELECTED = ("f16", "tf32")  # kinds whose selector chooses one of the columns
COLUMNS = 2  # that a metadata address stands for


def chosen_columns(words: Array, kind: str, selector: int) -> Array | None:
    """The column in A of each stored element, (rows, K / 2), from (as many lanes, 2 columns) of metadata.

    None where one element is named twice, or halves of two.
    """
    if kind in SELECTED:
        # 16 lanes -> numbers' half, row in 8; a word -> row's half, number in 8
        groups = np.ascontiguousarray(words[:, selector]).reshape(-1, 2, 8)
        fields = _numbers(groups).reshape(-1, 2, 8, 2, 8)
        numbers = fields.transpose(0, 3, 2, 1, 4).reshape(-1, 16)
    else:
        numbers = _numbers(words).reshape(-1, 32)
    pairs = numbers.reshape(len(words), -1, 2)
    if (pairs[..., 0] == pairs[..., 1]).any():
        return None
    units: Array = (pairs + 4 * np.arange(pairs.shape[1])[:, None]).reshape(len(words), -1)
    if kind == "tf32":
        first, second = units[:, ::2], units[:, 1::2]
        return first // 2 if ((first % 2 == 0) & (second == first + 1)).all() else None
    if kind in ("mxf4", "mxf4nvf4"):
        return np.stack([2 * units, 2 * units + 1], axis=-1).reshape(len(words), -1)
    return units


def _numbers(words: Array) -> Array:
    """The 16 numbers of each word, along a new last axis."""
    return (words[..., None] >> np.arange(0, 32, 2, dtype=np.uint32) & 3).astype(np.int64)
