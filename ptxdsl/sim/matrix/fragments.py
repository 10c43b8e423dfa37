"""Which element of a matrix lies in which register of which lane.

A fragment is the registers of one operand in the 32 lanes of a warp. Its elements are numbered flat: register, lane,
element within the register (lowest bits first), which is the order of ``ElementType.values`` of an array (registers,
lanes). With g = lane / 4 and t = lane % 4, ``mma`` and ``wgmma`` have one scheme for all types: a register of A holds
consecutive elements of one row, four lanes make a strip of that row, the rows 8 below follow in the next register, then
the next strip; B likewise by columns; accumulators in pairs.

Source: PTX ISA, "Matrix Fragments for mma…", "Matrix Fragments for wgmma.mma_async…".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.record import dataclass

Array = npt.NDArray[Any]
LANES = 32


@dataclass(frozen=True, eq=False)
class Fragment:
    """rows, columns: of each flat element, by (register, lane, element). An element may lie in several places.

    to_matrix: of each matrix element (rows x columns) the place in the flat fragment. from_matrix: of each flat element
    the place in the row-major matrix.
    """

    rows: Array
    columns: Array
    to_matrix: Array
    from_matrix: Array

    @property
    def registers(self) -> int:
        return int(self.rows.shape[0])


def fragment(rows: Array, columns: Array, shape: tuple[int, int]) -> Fragment:
    rows, columns = np.broadcast_arrays(rows, columns)
    from_matrix = (rows * shape[1] + columns).reshape(-1)
    to_matrix = np.full(shape[0] * shape[1], -1, np.intp)
    to_matrix[from_matrix[::-1]] = np.arange(from_matrix.size)[::-1]
    assert to_matrix.min() >= 0
    return Fragment(rows, columns, to_matrix.reshape(shape), from_matrix.astype(np.intp))


def _axes(registers: int, per_register: int) -> tuple[Array, Array, Array, Array]:
    """Index arrays that broadcast to (register, lane, element): register, g, t, element."""
    lane = np.arange(LANES)[None, :, None]
    return (
        np.arange(registers)[:, None, None],
        lane >> 2,
        lane & 3,
        np.arange(per_register)[None, None, :],
    )


@lru_cache(None)
def multiplicand_a(m: int, k: int, per_register: int) -> Fragment:
    """A of ``mma`` (m 8 or 16) and of one warp of ``wgmma`` (m 16), rows by k columns."""
    register, g, t, i = _axes(m * k // (LANES * per_register), per_register)
    blocks = m // 8
    row = g + 8 * (register % blocks)
    column = (register // blocks) * 4 * per_register + t * per_register + i
    return fragment(row, column, (m, k))


@lru_cache(None)
def multiplicand_b(k: int, n: int, per_register: int) -> Fragment:
    """B of ``mma`` (n 8), k rows by n columns."""
    register, g, t, i = _axes(k * n // (LANES * per_register), per_register)
    return fragment(register * 4 * per_register + t * per_register + i, g, (k, n))


@lru_cache(None)
def accumulator(m: int, n: int, per_register: int) -> Fragment:
    """C and D of ``mma`` (n 8), and of one warp of ``wgmma`` (m 16, any n)."""
    register, g, t, i = _axes(m * n // (LANES * per_register), per_register)
    element = register * per_register + i
    blocks = m // 8
    row = g + 8 * (element // 2 % blocks)
    column = 8 * (element // (2 * blocks)) + 2 * t + element % 2
    return fragment(row, column, (m, n))


@lru_cache(None)
def quad_pairs(operand: str, layout: str) -> Fragment:
    """Operands of ``mma.m8n8k4`` with f16, that computes four products: matrices 0–3 one below the other.

    operand: ``a``, ``b``, ``c16`` or ``c32`` (an f16 or f32 accumulator). layout: ``row`` or ``col``, of A and B.
    """
    lane = np.arange(LANES)[None, :, None]
    high = (lane >= 16).astype(np.intp)  # each product is made by four lanes of either half of the warp
    product = lane % 16 // 4
    if operand == "c32":
        i = np.arange(8)[:, None, None]
        rows = (lane & 1) + (i & 2) + 4 * high
        return fragment(8 * product + rows, (i & 4) + (lane & 2) + (i & 1), (32, 8))
    i = 2 * np.arange(4 if operand == "c16" else 2)[:, None, None] + np.arange(2)[None, None, :]
    along, across = i, lane % 4 + 4 * high
    if operand == "c16" or (operand, layout) == ("a", "row"):
        return fragment(8 * product + across, along, (32, 8 if operand == "c16" else 4))
    if (operand, layout) == ("a", "col"):
        return fragment(8 * product + along + 4 * high, lane % 4, (32, 4))
    if (operand, layout) == ("b", "col"):
        return fragment(4 * product + along, across, (16, 8))
    return fragment(4 * product + lane % 4, along + 4 * high, (16, 8))
