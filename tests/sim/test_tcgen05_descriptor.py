"""Descriptors of tcgen05, by the bit tables of the PTX ISA ("Matrix Descriptors"), written out as numbers."""

import numpy as np
import pytest
from tcgen05_packing import pack_instruction, pack_shared

from ptxdsl.sim.host import Fault
from ptxdsl.sim.tcgen05.descriptor import (
    SWIZZLE_64,
    SWIZZLE_128,
    SWIZZLE_128_BASE32,
    check_scales,
    check_swizzle,
    decode_instruction,
    decode_shared,
)


def instruction(value: int, kind: str, cta_group: int = 1, ws: bool = False):
    return decode_instruction(value, kind, cta_group=cta_group, ws=ws)


# Kind, value (field by field at the bit that the ISA's tables give), what it says.
INSTRUCTIONS = [
    # bf16 x bf16 -> f32, 128 x 256: M >> 4 = 8, N >> 3 = 32, types 1, 1, 1
    ("f16", 0x08400490, {"m": 128, "n": 256, "k": 16, "a_type": "bf16", "b_type": "bf16", "d_type": "f32"}),
    ("f16", 4 << 24 | 1 << 17, {"m": 64, "n": 8, "a_type": "f16", "d_type": "f16"}),
    ("tf32", 8 << 24 | 16 << 17 | 2 << 10 | 2 << 7 | 1 << 4, {"k": 8, "n": 128, "a_type": "tf32", "d_type": "f32"}),
    (
        "f8f6f4",
        8 << 24 | 2 << 17 | 1 << 16 | 1 << 14 | 5 << 10 | 4 << 7 | 1 << 4,
        None,  # a transposed B of 4 bits
    ),
    (
        "f8f6f4",
        8 << 24 | 2 << 17 | 1 << 15 | 1 << 13 | 3 << 10 | 1 << 7 | 0 << 4,
        {"k": 32, "a_type": "e5m2", "b_type": "e2m3", "d_type": "f16", "negate_a": True, "transpose_a": True},
    ),
    ("i8", 8 << 24 | 4 << 17 | 1 << 10 | 2 << 4 | 1 << 3, {"a_type": "u8", "b_type": "s8", "saturate": True}),
    (
        "mxf8f6f4",
        2 << 29 | 1 << 27 | 1 << 23 | 32 << 17 | 3 << 10 | 0 << 7 | 1 << 4,
        {"m": 128, "n": 256, "scale_a_id": 2, "scale_b_id": 1, "scale_type": "ue8m0", "b_type": "e2m3", "k": 32},
    ),
    (
        "mxf4nvf4",
        1 << 27 | 0 << 23 | 16 << 17 | 1 << 10 | 1 << 7 | 2 << 4,
        {"k": 64, "a_type": "e2m1", "scale_type": "ue4m3", "scale_b_id": 2, "n": 128},
    ),
    ("mxf4nvf4", 1 << 31 | 1 << 27 | 16 << 17 | 1 << 10 | 1 << 7, {"k": 96, "n": 128}),
    ("mxf4nvf4", 1 << 31 | 1 << 27 | 15 << 17 | 1 << 10 | 1 << 7, None),  # N = 120 with K = 96
    ("mxf4", 1 << 27 | 16 << 17 | 5 << 10 | 5 << 7, None),  # e2m1 is 1 here, not 5
    ("f16", 0x08400490 | 1 << 6, None),  # reserved bits
    ("f16", 0x08400490 | 1 << 23, None),
    ("f16", 0x08400490 | 1 << 29, None),
    ("f16", 0x08400490 | 1 << 2, None),  # sparse, the instruction is not
    ("f16", 0x08400490 | 1 << 3, None),  # only integers saturate
    ("f16", 0x08400490 & ~(3 << 4), None),  # D of f16 with bf16
    ("i8", 8 << 24 | 4 << 17 | 2 << 4 | 1 << 13, None),  # integers are not negated
    ("i8", 8 << 24 | 5 << 17 | 2 << 4, None),  # N = 40: beyond 32 in steps of 16
]


@pytest.mark.parametrize(("kind", "value", "expected"), INSTRUCTIONS)
def test_instruction_descriptor(kind, value, expected):
    if expected is None:
        with pytest.raises(Fault) as fault:
            instruction(value, kind)
        assert fault.value.code == "E1164"
        return
    decoded = instruction(value, kind)
    assert {name: getattr(decoded, name) for name in expected} == expected


def test_sizes_of_a_pair_and_of_ws():
    assert instruction(16 << 24 | 32 << 17 | 0x490, "f16", 2).m == 256
    assert instruction(2 << 24 | 8 << 17 | 0x490, "f16", ws=True).m == 32
    for value, cta_group, ws in (
        (16 << 24 | 32 << 17 | 0x490, 1, False),  # M = 256 needs a pair
        (4 << 24 | 32 << 17 | 0x490, 2, False),  # M = 64 is too small for one
        (8 << 24 | 1 << 17 | 0x490, 2, False),  # N = 8: steps of 16
        (8 << 24 | 4 << 17 | 0x490, 1, True),  # N = 32: 64, 128, 256 with .ws
        (8 << 24 | 32 << 17 | 0x490, 2, True),  # no .ws for pairs
    ):
        with pytest.raises(Fault):
            instruction(value, "f16", cta_group, ws)
    with pytest.raises(Fault):  # no block scaling with .ws
        instruction(1 << 27 | 1 << 23 | 8 << 17, "mxf8f6f4", ws=True)


def test_transposed_b_of_8_bits_needs_more_columns():
    """Table "Various combinations of N shape with .cta_group qualifier for 8bit transpose B"."""
    with pytest.raises(Fault):
        instruction(8 << 24 | 1 << 17 | 1 << 16 | 1 << 4, "f8f6f4")
    assert instruction(8 << 24 | 2 << 17 | 1 << 16 | 1 << 4, "f8f6f4").n == 16


@pytest.mark.parametrize(
    ("kind", "scale_vec", "type", "ids", "right"),
    [
        ("mxf8f6f4", 1, 1, (3, 1), True),
        ("mxf4", 2, 1, (2, 0), True),
        ("mxf4", 2, 1, (1, 0), False),
        ("mxf4nvf4", 4, 0, (0, 0), True),
        ("mxf4nvf4", 4, 1, (0, 0), True),
        ("mxf4nvf4", 4, 0, (0, 2), False),
        ("mxf4nvf4", 2, 0, (0, 0), False),  # ue4m3 with blocks of 32
        ("mxf4", 4, 1, (0, 0), False),
    ],
)
def test_scale_vectors(kind, scale_vec, type, ids, right):
    """Tables "Valid combinations of scale_vectorsize …" and the rules for the ids."""
    ab = 0 if kind == "mxf8f6f4" else 1 << 10 | 1 << 7
    decoded = instruction(ids[0] << 29 | 1 << 27 | type << 23 | 16 << 17 | ids[1] << 4 | ab, kind)
    if right:
        check_scales(decoded, scale_vec)
    else:
        with pytest.raises(Fault):
            check_scales(decoded, scale_vec)


def test_pack_instruction_is_the_inverse():
    value = pack_instruction("f16", m=128, n=256, a_type=1, b_type=1, d_type=1)
    assert value == 0x08400490


def test_shared_descriptor():
    # start 0x8400, LBO 16, SBO 1024, version 1, 128-byte swizzling
    value = 0x840 | 1 << 16 | 64 << 32 | 1 << 46 | 2 << 61
    decoded = decode_shared(value, "A")
    assert (decoded.address, decoded.leading, decoded.stride, decoded.swizzle) == (0x8400, 16, 1024, SWIZZLE_128)
    assert pack_shared(0x8400, 16, 1024, SWIZZLE_128) == value
    assert pack_shared(1 << 24 | 0x8400, 16, 1024, SWIZZLE_128) == value  # (x & 0x3FFFF) >> 4
    assert decode_shared(value & ~(7 << 61) | 4 << 61, "A").swizzle == SWIZZLE_64


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda v: v & ~(7 << 46), "wgmma"),
        (lambda v: v | 3 << 61, "swizzling mode 3"),
        (lambda v: v | 5 << 49, "a matrix base offset (bits 49-51) of 5 is not supported"),
        (lambda v: v | 1 << 53, "reserved"),
        (lambda v: v | 1 << 14, "reserved"),
    ],
)
def test_wrong_shared_descriptor(change, says):
    with pytest.raises(Fault) as fault:
        decode_shared(change(0x840 | 1 << 16 | 64 << 32 | 1 << 46 | 2 << 61), "B")
    assert fault.value.code == "E1163"
    assert says in fault.value.message + (fault.value.help or "")


def test_swizzling_modes_of_transposed_operands():
    """Table "Valid Combinations of Type-Size, Major-ness and Swizzling"."""

    def shared(code: int):
        return decode_shared(0x840 | 1 << 46 | code << 61, "A")

    for code in (0, 2, 4, 6):
        check_swizzle(shared(code), 16, True, "A")
        check_swizzle(shared(code), 32, False, "A")
        with pytest.raises(Fault):
            check_swizzle(shared(code), 32, True, "A")
    assert shared(1).swizzle == SWIZZLE_128_BASE32
    check_swizzle(shared(1), 32, True, "A")
    with pytest.raises(Fault):
        check_swizzle(shared(1), 16, True, "A")


def test_every_pair_of_types_of_f8f6f4_decodes():
    names = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
    for a, b in np.ndindex(8, 8):
        value = 8 << 24 | 2 << 17 | b << 10 | a << 7 | 1 << 4
        if a in names and b in names:
            decoded = instruction(value, "f8f6f4")
            assert (decoded.a_type, decoded.b_type) == (names[a], names[b])
        else:
            with pytest.raises(Fault):
                instruction(value, "f8f6f4")
