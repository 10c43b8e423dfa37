"""The shared memory that matrix products read, from their descriptors.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout", "Matrix Descriptor Format"; of tcgen05
"Shared memory descriptor", "Instruction descriptor". A descriptor
has the address of a matrix in units of 16 bytes, two offsets between its parts, and the swizzle. Where the offsets are
not constants the place has no width: any byte from there on.
"""

from __future__ import annotations

from ptxdsl.protocol.expressions import Expr, apply, const
from ptxdsl.protocol.model import Place
from ptxdsl.protocol.product_form import ProductForm
from ptxdsl.protocol.tir_integers import plus

_ADDRESS = 0x3FFF
_UNIT = 16
_SPANS = {0: 16, 1: 128, 2: 64, 3: 32}  # swizzle mode → bytes of a row
_TCGEN05_SPANS = {0: 16, 1: 128, 2: 128, 4: 64, 6: 32}
_ELEMENTS = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}
_ROWS = 8  # of a core matrix
_CORE = 128  # bytes of one without swizzle
_M = 64


def operand_places(name: str, a: Expr | None, b: Expr, n: int, k: int, types: str, tail: str) -> tuple[Place, ...]:
    """What a ``wgmma`` row reads: A (None: it is in registers) and B by their descriptors."""
    parts = types.split(".")
    majors = [flag.strip() for flag in tail.split(",") if flag.strip()]
    places: list[Place] = []
    sparse = "sparse" in name
    if a is not None:
        size = _ELEMENTS.get(parts[1], 2)
        places += matrix_places(a, _M, k // 2 if sparse else k, size, len(majors) == 4 and majors[2] == "1")
    size = _ELEMENTS.get(parts[2], 2)
    places += matrix_places(b, n, k, size, len(majors) >= 3 and majors[-1] == "1")
    return tuple(places)


def product_places(a: Expr | None, b: Expr, form: ProductForm, shift: int) -> tuple[Place, ...]:
    """What a product of tcgen05 reads in each CTA: A (None: it is in tensor memory), and B from its first column on.

    shift: columns of B that are left out at its start.
    """
    size = form.element
    places: list[Place] = []
    if a is not None:
        places += _of_product(a, form.rows, form.row_bytes // size, form, form.a_mn_major)
    b_k = form.row_bytes * (2 if form.sparse else 1) // size
    places += _of_product(b, form.n // form.cta_group + shift, b_k, form, form.b_mn_major)
    return tuple(places)


def _of_product(descriptor: Expr, rows: int, k: int, form: ProductForm, mn_major: bool) -> list[Place]:
    """A matrix of tcgen05. With K = 96 the place of the leading offset has the address where the rows end: they are
    read in the lines of 128 bytes in which they begin and those in which they end, which may be the same ones."""
    lows = [descriptor, apply("shr.u", descriptor, const(16, 64), bits=64)] if form.k96 else [descriptor]
    return [
        place for low in lows for place in matrix_places(descriptor, rows, k, form.element, mn_major, True, address=low)
    ]


def copied_places(source: Expr, shape: str) -> tuple[Place, ...]:
    """What a copy to tensor memory reads: rows of 16 or 32 bytes."""
    rows, bits = (int(number) for number in shape.lstrip(".").split("b")[0].split("x"))
    return tuple(matrix_places(source, max(rows, _ROWS), bits // 8, 1, False, True))


def matrix_places(
    descriptor: Expr,
    rows: int,
    k: int,
    element: int,
    mn_major: bool,
    tcgen05: bool = False,
    *,
    address: Expr | None = None,
) -> list[Place]:
    """The bytes of rows by k elements; mn_major: K is not the direction in which they are neighbours.

    address: has where they begin in its lowest 14 bits, unless the descriptor does.
    """
    low = apply("and", descriptor if address is None else address, const(_ADDRESS, 64), bits=64)
    first = apply("mul", low, const(_UNIT, 64), bits=64)
    fields = _fixed(descriptor)
    if fields is None:
        return [Place(first, None)]
    leading, stride = (fields >> 16 & _ADDRESS) * _UNIT, (fields >> 32 & _ADDRESS) * _UNIT
    span = _TCGEN05_SPANS.get(fields >> 61 & 7, 128) if tcgen05 else _SPANS[fields >> 62 & 3]
    if span > _UNIT:  # columns begin within a row: take whole rows
        first = apply("and", first, const(-span, 64), bits=64)
    if not mn_major and span == _UNIT:
        starts = [j * leading + i * stride for i in range(rows // _ROWS) for j in range(max(k * element // _UNIT, 1))]
        return _joined(first, starts, _CORE)
    if not mn_major:
        return _joined(first, [i * stride for i in range(rows // _ROWS)], _ROWS * span)
    boxes = -(-rows * element // span)
    across, down = (stride, leading) if span == _UNIT else (leading, stride)
    group_rows = 4 if tcgen05 and fields >> 61 & 7 == 1 else _ROWS  # chunks of 32 bytes
    starts = [box * across + group * down for box in range(boxes) for group in range(max(k // group_rows, 1))]
    return _joined(first, starts, group_rows * span)


def _joined(first: Expr, starts: list[int], width: int) -> list[Place]:
    """Places at these offsets, neighbours in one."""
    made: list[tuple[int, int]] = []
    for start in sorted(set(starts)):
        if made and start <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], start + width)
        else:
            made.append((start, start + width))
    return [Place(plus(first, start), end - start) for start, end in made]


def _fixed(descriptor: Expr) -> int | None:
    """The constant fields of a descriptor: what is put into it by ``or`` or added."""
    if descriptor.op == "const":
        return int(descriptor.value) & ((1 << 64) - 1)
    pending, found = [descriptor], None
    while pending:
        expr = pending.pop()
        if expr.op in ("or", "add"):
            for arg in expr.args:
                if arg.op == "const" and (expr.op == "or" or arg.value > 0):
                    found = (found or 0) | arg.value & ((1 << 64) - 1)
        if expr.op in ("or", "add", "ext.u", "ext.s", "trunc"):
            pending.extend(arg for arg in expr.args if arg.op != "const")
    return found
