"""Tensor memory as the model has it, and what instructions of tcgen05 touch of it.

An allocation is an array of 32-bit columns for each group of 16 lanes: byte ``group << 20 | column`` of it, which is
what an address of PTX (lane << 16 | column) has of the group's first lane. Its base stands for what ``tcgen05.alloc``
gives; who reads the slot where that was noted has it.

Source: PTX ISA, "Tensor Memory Addressing", "Data Movement Shape", "Scale Factor layouts".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptxdsl.protocol.expressions import TENSOR, TENSOR_GROUP, Expr, apply, const, tensor_address
from ptxdsl.protocol.model import Array, Place
from ptxdsl.protocol.product_form import ProductForm
from ptxdsl.protocol.tir_integers import plus
from ptxdsl.source import Span

_GROUPS = 8  # of 16 lanes
_GROUP_BITS = 20
COLUMNS = 512
# Columns of a shape that is not repeated, by bits.
_WIDTHS = {32: 1, 64: 2, 128: 4, 256: 8}


def allocation(number: int, columns: int, span: Span | None) -> Array:
    """Its last byte is the last column of the last group."""
    return Array("tensor memory", TENSOR + tensor_address(number), (_GROUPS - 1 << _GROUP_BITS) + columns, 4, span)


def columns_of(array: Array) -> int:
    """How many columns an allocation has."""
    assert array.bytes is not None
    return array.bytes % TENSOR_GROUP


def column_of(array: Array, address: int) -> int:
    """The column of an allocation at an address; negative in front of all of them."""
    offset = address - array.base
    return offset if offset < 0 else offset % TENSOR_GROUP


def quarter_of(array: Array, address: int) -> int:
    """Which quarter of the lanes an address is in."""
    return (address - array.base) >> _GROUP_BITS + 1


def whole(number: int, columns: int) -> tuple[Place, ...]:
    """All of an allocation."""
    return _places(const(tensor_address(number)), columns)


def _places(address: Expr, columns: int, groups: int = _GROUPS) -> tuple[Place, ...]:
    """Columns of so many groups of lanes from an address on."""
    at = plus(apply("ext.u", address, bits=64), TENSOR)
    return tuple(Place(plus(at, group << _GROUP_BITS), columns) for group in range(groups))


def moved(address: Expr, shape: str, split: str) -> tuple[Place, ...]:
    """What ``tcgen05.ld`` and ``.st`` of a shape as PTX writes it (``.32x32b.x4``) touch for one warp."""
    import re  # for tensor memory only

    found = re.match(r"\.(\d+)x(\d+)b(x2)?\.x(\d+)", shape)
    assert found is not None
    lanes, bits, halves, times = int(found[1]), int(found[2]), found[3], int(found[4])
    columns = _WIDTHS[bits] * times * (2 if "pack" in shape else 1)
    if halves:
        columns += max(int(split.strip(", ") or 0), columns)
    return _places(address, columns, lanes // 16)


def product(form: ProductForm, operands: Sequence[Expr]) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
    """What ``tcgen05.mma`` reads and writes of tensor memory in each CTA. operands: as ``intrinsics/`` has them."""
    reads: tuple[Place, ...] = ()
    writes = _places(operands[0], form.columns)
    if form.a_in_tensor_memory:
        a = _places(operands[1], form.row_bytes // 4)
        reads += a
        writes += a if form.shifts_a else ()
    if form.sparse:
        reads += _places(operands[3], 2)
    if form.scaled:
        scales = operands[5:7] if form.sparse else operands[4:6]
        for address, rows, first in zip(scales, (form.rows, form.columns), form.scale_ids, strict=True):
            reads += _places(address, _scale_columns(form, rows, first))
    return reads, writes


def _scale_columns(form: ProductForm, rows: int, first: int) -> int:
    """Of a product's factors; first: their first byte in a word of four. With K = 96 they go on in the next word."""
    count = (3 if form.kind == "mxf4" else 6) if form.k96 else 1
    words = (first + count - 1) // 4
    return words * -(-rows // 128) * 4 + -(-rows // 32)


def copied(address: Expr, shape: str) -> tuple[Place, ...]:
    """What ``tcgen05.cp`` writes."""
    import re  # for tensor memory only

    found = re.match(r"\.(\d+)x(\d+)b", shape)
    assert found is not None
    return _places(address, int(found[2]) // 32)


def shifted(address: Expr) -> tuple[Place, ...]:
    """What ``tcgen05.shift`` moves: 8 columns."""
    return _places(address, 8)


def row_places(
    name: str, operands: Sequence[Expr], attrs: Mapping[str, object]
) -> tuple[tuple[Place, ...], tuple[Place, ...]] | None:
    """Reads and writes of tensor memory by a row of ``intrinsics/``; None of another."""
    if name in ("tcgen05_load_row", "tcgen05_load_reduced_row"):
        return moved(operands[0], str(attrs["shape"]), str(attrs.get("split", ""))), ()
    if name == "tcgen05_store_row":
        return (), moved(operands[0], str(attrs["shape"]), str(attrs.get("split", "")))
    if name == "tcgen05_dealloc_row":
        return (), _places(operands[0], int(str(attrs["columns"])))
    if name == "tcgen05_shift_row":
        return (), shifted(operands[0])
    return None
