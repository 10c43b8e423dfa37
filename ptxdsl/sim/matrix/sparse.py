"""Structured sparse A: half of each row is zero, and metadata in the registers of some lanes says which half.

A row's metadata is a chain of fields of 4 bits. Each is about four units of the row, of which two are not zero, and
holds the numbers of these two, the first in its low bits. A unit is an element of 16 or 8 bits, a pair of elements of
4 bits, or half an element of tf32. Who holds the metadata of the rows g and g + 8 (g = lane / 4), of four lanes:

- elements of 16 and 32 bits: in one lane, or in each of a pair, 16 bits for row g below 16 bits for row g + 8; the
  second lane continues the rows of the first;
- smaller elements: in a pair, or in each of two pairs, the first lane 32 bits for row g, the second for row g + 8; the
  second pair continues the rows of the first.

The instruction's selector chooses the lane or the pair.

Source: PTX ISA, "Sparse matrix storage", "Matrix fragments for multiply-accumulate operation with sparse matrix A".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.record import dataclass

Array = npt.NDArray[Any]
ROWS = 16  # of A in one warp


@dataclass(frozen=True)
class Sparsity:
    """How metadata gives the columns of an A with k columns. bits: of an element (packed: 4; in containers: 8)."""

    k: int
    bits: int

    @property
    def lanes(self) -> int:
        """Of four lanes, those that hold metadata."""
        row_bits = {32: 2 * self.k, 16: self.k, 8: self.k, 4: self.k // 2}[self.bits]
        return row_bits // 16

    @property
    def selectors(self) -> int:
        return 4 // self.lanes

    def columns(self, words: Array, selector: int) -> Array | None:
        """The column (16, k / 2) of each stored element. None where a field names one unit twice."""
        chosen = np.ascontiguousarray(words, np.uint32).reshape(8, 4)[:, selector * self.lanes :][:, : self.lanes]
        halves = np.ascontiguousarray(chosen).view(np.uint16).reshape(8, self.lanes, 2)
        rows: Array
        if self.bits >= 16:
            rows = halves.transpose(2, 0, 1)  # low or high half, g, lane of the pair
        else:
            rows = halves.reshape(8, -1, 2, 2).transpose(2, 0, 1, 3)  # lane of the pair, g, pair, half
        fields = np.ascontiguousarray(rows).reshape(ROWS, -1).view(np.uint8)
        fields = np.stack([fields & 15, fields >> 4], axis=-1).reshape(ROWS, -1)
        first, second = fields & 3, fields >> 2
        if (first == second).any():
            return None
        chunk = np.arange(fields.shape[1])
        if self.bits == 32:
            return 2 * chunk + (first >> 1)
        units = (4 * chunk[:, None] + np.stack([first, second], axis=-1)).reshape(ROWS, -1)
        if self.bits == 4:
            return (2 * units[:, :, None] + np.arange(2)).reshape(ROWS, -1)
        return units


def expand(stored: Array, columns: Array, k: int) -> Array:
    """A with its zeros, (rows, k), from what is stored of it, (rows, k / 2)."""
    whole = np.zeros((len(stored), k), stored.dtype)
    np.put_along_axis(whole, columns, stored, axis=1)
    return whole
