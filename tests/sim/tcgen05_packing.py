"""Descriptors of ``tcgen05`` made of their fields."""

from __future__ import annotations

from ptxdsl.sim.tcgen05.descriptor import KINDS, SWIZZLES


def pack_instruction(kind: str, **fields: int) -> int:
    """A 32-bit instruction descriptor of raw fields; M and N are given as they are meant (``m=128``)."""
    row = KINDS[kind]
    value = 0
    for name, low, size in row.fields:
        raw = fields.pop(name, 0)
        raw //= {"m": row.m_unit, "n": row.n_unit}.get(name, 1)
        assert 0 <= raw < 1 << size, (name, raw)
        value |= raw << low
    assert not fields, fields
    return value


def pack_shared(address: int, leading: int, stride: int, swizzle: str) -> int:
    """A 64-bit shared-memory descriptor; the address may have a CTA's rank in its upper bits, as shared ones do."""
    code = next(code for code, name in SWIZZLES.items() if name == swizzle)

    def encode(value: int) -> int:
        assert value % 16 == 0
        return (value & 0x3FFFF) >> 4

    return encode(address) | encode(leading) << 16 | encode(stride) << 32 | 0b001 << 46 | code << 61
