"""The 32-bit instruction descriptor, the 64-bit shared memory descriptor and the 64-bit zero-column mask descriptor.

Source: PTX ISA 9.2, 9.7.16.4.1 "Shared memory descriptor", 9.7.16.4.2 "Instruction descriptor", 9.7.16.4.3
"Zero-Column Mask Descriptor", 9.7.16.2.1 "Matrix Shape" (table 39); ISA 9.3, table 45 (kind::f8f6f4 with D of f16).
Second: CUTLASS ``SmemDescriptor``, ``InstrDescriptor``, ``InstrDescriptorBlockScaled``, ``MaskAndShiftB``.
"""

from __future__ import annotations

Field = tuple[int, int]  # lowest bit, bits

_HEAD: dict[str, Field] = {"sparse": (2, 1), "a": (7, 3), "negate_a": (13, 1), "negate_b": (14, 1), "n": (17, 6)}
_TRANSPOSES: dict[str, Field] = {"transpose_a": (15, 1), "transpose_b": (16, 1)}
_PLAIN: dict[str, Field] = {
    **_HEAD,
    **_TRANSPOSES,
    "sparsity_selector": (0, 2),
    "saturate": (3, 1),
    "d": (4, 2),
    "b": (10, 3),
    "m": (24, 5),
    "max_shift": (30, 2),
}
_SCALED: dict[str, Field] = {**_HEAD, "b_scale_id": (4, 2), "scale": (23, 1), "m": (27, 2), "a_scale_id": (29, 2)}

# Kind -> field -> bits. What no field names is reserved and must be 0.
INSTRUCTION: dict[str, dict[str, Field]] = {
    "tf32": _PLAIN,
    "f16": _PLAIN,
    "f8f6f4": _PLAIN,
    "i8": _PLAIN,
    "mxf8f6f4": {**_SCALED, **_TRANSPOSES, "b": (10, 3)},
    "mxf4": {**_SCALED, "b": (10, 2), "k96": (31, 1)},
    "mxf4nvf4": {**_SCALED, "b": (10, 2), "k96": (31, 1)},
}
# M and N are written without their low bits, which are 0.
DROPPED_BITS: dict[str, dict[str, int]] = {
    kind: {"n": 3, "m": 7 if kind.startswith("mx") else 4} for kind in INSTRUCTION
}

_F8F6F4 = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
# Kind -> type of A and B -> code.
MULTIPLICANDS: dict[str, dict[str, int]] = {
    "tf32": {"tf32": 2},
    "f16": {"f16": 0, "bf16": 1},
    "f8f6f4": _F8F6F4,
    "i8": {"u8": 0, "s8": 1},
    "mxf8f6f4": _F8F6F4,
    "mxf4": {"e2m1": 1},
    "mxf4nvf4": {"e2m1": 1},
}
# Kind -> type of D -> code; block-scaled kinds have no such field and D is f32.
ACCUMULATORS: dict[str, dict[str, int]] = {
    "tf32": {"f32": 1},
    "f16": {"f16": 0, "f32": 1},
    "f8f6f4": {"f16": 0, "f32": 1},
    "i8": {"s32": 2},
}
# Kind -> type of the scale factors -> code.
SCALES: dict[str, dict[str, int]] = {
    "mxf8f6f4": {"ue8m0": 1},
    "mxf4": {"ue8m0": 1},
    "mxf4nvf4": {"ue4m3": 0, "ue8m0": 1},
}
# Kind -> K of a dense product (a sparse one has twice that). kind::mxf4 and mxf4nvf4 also have 96 on sm_103a.
DENSE_K: dict[str, int] = {"tf32": 8, "f16": 16, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
# (kind, cta_group) -> M of dense tcgen05.mma without .ws.
DENSE_M: dict[tuple[str, int], tuple[int, ...]] = {
    **{(kind, 1): (128,) if kind.startswith("mx") else (64, 128) for kind in INSTRUCTION},
    **{(kind, 2): (128, 256) for kind in INSTRUCTION},
}
WS_M = (32, 64, 128)
WS_N = (64, 128, 256)


def legal_n(kind: str, cta_group: int) -> tuple[int, ...]:
    """N of dense tcgen05.mma without .ws (table 39; the table of 9.7.16.10.1 narrows it for transposed 8-bit B)."""
    if kind == "i8":
        return tuple(range(32, 257, 32)) if cta_group == 2 else (8, 16, 24, *range(32, 257, 16))
    return tuple(range(16, 257, 16)) if cta_group == 2 else tuple(range(8, 257, 8))


def instruction(kind: str, **fields: int) -> int:
    """A descriptor. fields: as in ``INSTRUCTION``; m and n whole."""
    word = 0
    for name, value in fields.items():
        low, bits = INSTRUCTION[kind][name]
        dropped = DROPPED_BITS[kind].get(name, 0)
        assert value % (1 << dropped) == 0 and value >> dropped < 1 << bits, (name, value)
        word |= value >> dropped << low
    return word


def typed(kind: str, a: str, b: str, d: str = "f32", scale: str | None = None, **fields: int) -> int:
    """A descriptor with its types by name."""
    fields |= {"a": MULTIPLICANDS[kind][a], "b": MULTIPLICANDS[kind][b]}
    if kind in ACCUMULATORS:
        fields["d"] = ACCUMULATORS[kind][d]
    else:
        assert scale is not None
        fields["scale"] = SCALES[kind][scale]
    return instruction(kind, **fields)


# Shared memory descriptor. Addresses and strides are encoded as (bytes & 0x3FFFF) >> 4; version is the constant 0b001;
# bits 53-60 are the constant 0, all others are reserved.
SHARED: dict[str, Field] = {
    "start": (0, 14),
    "leading": (16, 14),
    "stride": (32, 14),
    "version": (46, 3),
    "base_offset": (49, 3),
    "leading_mode": (52, 1),
    "swizzle": (61, 3),
}
# Swizzling mode -> code. 3, 5 and 7 are invalid.
SWIZZLES: dict[str, int] = {"none": 0, "128b_atom32": 1, "128b": 2, "64b": 4, "32b": 6}
# Mode -> alignment in bytes of the repeating pattern (table 41); base_offset is 0 where the pattern starts there.
PATTERN_BYTES: dict[str, int] = {"128b": 1024, "64b": 512, "32b": 256}


def shared(start: int, leading: int, stride: int, swizzle: str) -> int:
    """A shared memory descriptor. start: a shared address; leading, stride: bytes."""
    word = 1 << 46 | SWIZZLES[swizzle] << 61
    for value, at in ((start, 0), (leading, 16), (stride, 32)):
        assert value % 16 == 0, value
        word |= (value & 0x3FFFF) >> 4 << at
    return word


ZERO_COLUMN_MASK: dict[str, Field] = {
    **{f"start_count_{i}": (8 * i, 8) for i in range(4)},
    **{f"first_span_{i}": (32 + i, 1) for i in range(4)},
    "non_zero_mask": (39, 1),
    "skip_span": (40, 8),
    "use_span": (48, 8),
    "column_shift": (56, 6),
}
# M -> how many sub-masks share the N columns, each of N / that many, the first for the lowest columns.
SUB_MASKS: dict[int, int] = {128: 1, 64: 2, 32: 4}


def zero_columns(
    m: int, n: int, starts: tuple[int, ...], first_spans: tuple[int, ...], skip_span: int, use_span: int
) -> list[int]:
    """The mask of a descriptor with a non-zero mask, a bit a column of B: 1 is "use 0s instead".

    Spans alternate: use_span + 1 columns of 0, skip_span + 1 columns of 1; first_span 1 begins with the latter, and the
    sub-mask begins start_count columns into that. (So the ISA's four examples, the names of the fields and CUTLASS; the
    ISA's table describes Skip Span and Use Span the other way round.)
    """
    width = n // SUB_MASKS[m]
    mask: list[int] = []
    for start, first in zip(starts, first_spans, strict=True):
        bits: list[int] = []
        zeroed = first
        while len(bits) < start + width:
            bits += [zeroed] * ((skip_span if zeroed else use_span) + 1)
            zeroed ^= 1
        mask += bits[start : start + width]
    return mask


def zero_column_descriptor(
    starts: tuple[int, ...],
    first_spans: tuple[int, ...],
    skip_span: int,
    use_span: int,
    non_zero_mask: int = 1,
    column_shift: int = 0,
) -> int:
    """A zero-column mask descriptor with these fields."""
    word = non_zero_mask << 39 | skip_span << 40 | use_span << 48 | column_shift << 56
    for i, (start, first) in enumerate(zip(starts, first_spans, strict=True)):
        word |= start << 8 * i | first << 32 + i
    return word


# The ISA's examples 2, 3 and 4: (M, starts, first spans, skip span, use span, sub-masks' low bits, lowest last).
ZERO_COLUMN_EXAMPLES: tuple[tuple[int, tuple[int, ...], tuple[int, ...], int, int, tuple[str, ...]], ...] = (
    (128, (0,), (0,), 2, 3, ("11100001110000",)),
    (64, (0, 0), (1, 0), 2, 3, ("11100001110000111", "00001110000111" + "0000")),
    (32, (0, 1, 2, 1), (1, 1, 0, 0), 2, 3, ("00001110000111", "0000111000011", "111000011100", "1110000111000")),
)

UNDECIDED = (
    "shared memory descriptor: K-major with 128-byte swizzling of 32-byte atoms (table 54 allows it, table 55 has no "
    "atom for it, CUTLASS says that it is invalid)",
    'instruction descriptor: what a reserved bit that is set does ("must be 0" from ISA 9.3 on)',
    "shared memory descriptor: how a base_offset that is not 0 enters the swizzle (the ISA gives its value alone)",
)
