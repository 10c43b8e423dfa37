"""The shared memory that matrix products read, from their descriptors.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout", "Matrix Descriptor Format"; of tcgen05
"Shared memory descriptor", "Instruction descriptor". A descriptor
has the address of a matrix in units of 16 bytes, two offsets between its parts, and the swizzle. Where the offsets are
not constants the place has no width: any byte from there on.
"""

from __future__ import annotations

from ptxdsl.protocol.expressions import Expr, apply, const
from ptxdsl.protocol.model import Place
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


def product_places(
    a: Expr | None, b: Expr, kind: str, cta_group: int, instruction: int, *, sparse: bool = False
) -> tuple[Place, ...]:
    """What a product of tcgen05 reads in each CTA: A (None: it is in tensor memory) and B, 32 bytes of K of each.

    Where A is sparse it is 64 bytes of B's K.
    """
    size = {"f16": 2, "tf32": 4}.get(kind, 1)
    scaled = kind.startswith("mx")
    m = (instruction >> 27 & 3) * 128 if scaled else (instruction >> 24 & 31) * 16
    n = (instruction >> 17 & 63) * 8
    places: list[Place] = []
    if a is not None:
        places += matrix_places(a, m // cta_group, 32 // size, size, bool(instruction >> 15 & 1), True)
    b_k = (64 if sparse else 32) // size
    places += matrix_places(b, n // cta_group, b_k, size, bool(instruction >> 16 & 1), True)
    return tuple(places)


def copied_places(source: Expr, shape: str) -> tuple[Place, ...]:
    """What a copy to tensor memory reads: rows of 16 or 32 bytes."""
    rows, bits = (int(number) for number in shape.lstrip(".").split("b")[0].split("x"))
    return tuple(matrix_places(source, max(rows, _ROWS), bits // 8, 1, False, True))


def matrix_places(
    descriptor: Expr, rows: int, k: int, element: int, mn_major: bool, tcgen05: bool = False
) -> list[Place]:
    """The bytes of rows by k elements; mn_major: K is not the direction in which they are neighbours."""
    first = apply("mul", apply("and", descriptor, const(_ADDRESS, 64), bits=64), const(_UNIT, 64), bits=64)
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
