"""Kernels of the rows: operand pools with the values where instructions go wrong, and the PTX around each row."""

from __future__ import annotations

import zlib

import numpy as np
from card_rows import GROUPS, Row

LANES = 256  # elements of a row: one CTA of as many threads
# Bytes; of all others 4.
SIZES = {
    **dict.fromkeys(("b16", "f16", "bf16", "least16", "near16", "zero16"), 2),
    **dict.fromkeys(("b64", "f64", "nan64", "least64"), 8),
}

_SPECIAL_32 = (
    0,
    1,
    2,
    3,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xFFFFFFFF,
    0xFFFFFFFE,
    0xFFFF,
    0x10000,
    0x8000,
    0x7FFF,
    0xFF,
    0x80,
)
_FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 0.1, -0.3, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40,
    1.1754944e-38, -1.1754942e-38, 3.4028235e38, -3.4028235e38, 65504.0, 65520.0, 65536.0, 1e-8, 6e-8, 6.1e-5,
    448.0, 464.0, 480.0, 57344.0, 61440.0, 2147483648.0, -2147483648.0, 2147483520.0, 4294967296.0, 4294967040.0,
    9.223372e18, 1.8446744e19, 255.5, 127.5, -128.5, 32767.5, 8388607.5, 16777216.0, 1e10, -1e20,
)  # fmt: skip


def pool(kind: str, order: int) -> np.ndarray:
    """LANES operands as unsigned integers of their width. order: which of several operands of one type."""
    rng = np.random.default_rng(zlib.crc32(f"{kind} {order}".encode()))
    values = _values(kind, rng)
    return values if order == 0 else rng.permutation(values)


def _values(kind: str, rng: np.random.Generator) -> np.ndarray:
    n = LANES
    if kind == "shift":
        return rng.choice(np.array([*range(34), 47, 63, 64, 65, 255, 256, 2**31, 2**32 - 1], np.uint32), n)
    if kind == "byte":  # positions and lengths: the ISA speaks of 0 … 255
        return rng.choice(np.array([*range(34), 47, 63, 64, 65, 255], np.uint32), n)
    if kind == "lane":
        return rng.integers(0, 32, n).astype(np.uint32)
    if kind == "small":
        return rng.integers(-5, 6, n).astype(np.int32).view(np.uint32)
    if kind in ("b16", "b32", "b64"):
        width = int(kind[1:])
        special = [v & (2**width - 1) for v in _SPECIAL_32] + [1 << (width - 1), 2**width - 1, (1 << (width - 1)) - 1]
        wide = rng.integers(0, 2**width, n - 100, dtype=np.uint64)
        short = wide[:50] >> rng.integers(0, width, 50).astype(np.uint64)
        made = np.concatenate([rng.choice(np.array(special, np.uint64), 50), short, wide])
        return rng.permutation(made).astype(f"u{width // 8}")
    if kind == "near":  # about one, and a little apart: where rounding decides
        return (
            (rng.choice([1.0, -1.0], n) * (1 + rng.integers(0, 2**23, n) * 2.0**-23)).astype(np.float32).view(np.uint32)
        )
    if kind == "moderate":
        return (
            np.concatenate([rng.uniform(-30, 30, n - 32), rng.uniform(-140, 120, 28), [0.0, -0.0, 1.0, -1.0]])
            .astype(np.float32)
            .view(np.uint32)
        )
    if kind == "positive":
        return np.exp(rng.uniform(-40, 40, n)).astype(np.float32).view(np.uint32)
    if kind == "angle":
        return rng.uniform(-np.pi, np.pi, n).astype(np.float32).view(np.uint32)
    if kind in ("least", "least64"):  # about the smallest normal float32
        values = rng.choice([1.0, -1.0], n) * np.ldexp(
            1 + rng.integers(-8, 9, n) * 2.0**-24, rng.integers(-128, -124, n)
        )
        return values.astype(np.float32).view(np.uint32) if kind == "least" else values.view(np.uint64)
    if kind == "edge":  # the smallest normal number and its neighbours
        return rng.choice(np.array([0x00800000, 0x80800000, 0x00800001, 0x80800001, 0x00800002], np.uint32), n)
    if kind == "unit":
        return rng.choice(np.array([*range(0x3F7FFFFA, 0x3F800003)], np.uint32), n)
    if kind == "zero":
        return rng.choice(np.array([0, 0x80000000], np.uint32), n)
    if kind in ("least16", "near16", "zero16"):
        scale = {"least16": rng.integers(-16, -12, n), "near16": 0, "zero16": -100}[kind]
        values = rng.choice([1.0, -1.0], n) * np.ldexp(1 + rng.integers(-8, 9, n) * 2.0**-11, scale)
        return values.astype(np.float16).view(np.uint16)
    if kind in ("nan64", "nan32"):
        high, payload = (0x7FF0 << 48, 51) if kind == "nan64" else (0x7F80 << 16, 22)
        nans = rng.integers(1, 1 << payload, n, dtype=np.uint64) | np.uint64(high)
        nans |= rng.integers(0, 2, n, dtype=np.uint64) << np.uint64(payload)
        nans |= rng.integers(0, 2, n, dtype=np.uint64) << np.uint64(63 if kind == "nan64" else 31)
        ordinary = rng.standard_normal(n)
        numbers = ordinary.view(np.uint64) if kind == "nan64" else ordinary.astype(np.float32).view(np.uint32)
        return np.where(rng.random(n) < 0.7, nans, numbers).astype(np.uint64 if kind == "nan64" else np.uint32)
    if kind == "f64":
        bits = rng.integers(0, 2**64, n, dtype=np.uint64)
        special = np.array(
            [*_FLOATS, 5e-324, 1e-310, 1.7976931348623157e308, 2.0**63, -(2.0**63), 2.0**64, 2.0**31 - 0.5, 1 / 3]
        )
        ordinary = rng.standard_normal(n) * 10.0 ** rng.integers(-5, 6, n)
        return rng.permutation(np.concatenate([special.view(np.uint64), bits[:60], ordinary.view(np.uint64)])[:n])
    return _floats(kind, rng)


def _floats(kind: str, rng: np.random.Generator) -> np.ndarray:
    special = np.array(_FLOATS, np.float32)
    ordinary = (rng.standard_normal(LANES) * 10.0 ** rng.integers(-4, 5, LANES)).astype(np.float32)
    bits32 = rng.integers(0, 2**32, LANES, dtype=np.uint32)
    made = np.concatenate([special.view(np.uint32), bits32[:60], ordinary.view(np.uint32)])[:LANES]
    made = rng.permutation(made)
    if kind == "f32":
        return made
    if kind == "bf16":
        return (made >> np.uint32(16)).astype(np.uint16)
    if kind == "f16":
        with np.errstate(over="ignore", invalid="ignore"):
            half = made.view(np.float32).astype(np.float16).view(np.uint16)
        half[::5] = rng.integers(0, 2**16, len(half[::5]))
        return half
    low, high = (pool(kind.removesuffix("x2"), order).astype(np.uint32) for order in (0, 3))
    return low | high << np.uint32(16)


def row_ptx(row: Row, index: int) -> str:
    """One row as a scope: operands from %in + offset, result to %out + index * LANES * 8."""
    lines, names = [], {}
    for name, kind in zip("abcd", row.operands, strict=False):
        names[f"%{name}"] = SIZES.get(kind, 4)
    registers = {"%r": SIZES.get(row.result, 4), "%s": 4, **names}
    declared = " ".join(f".reg .b{8 * size} {name};" for name, size in registers.items())
    lines.append(f"{{ .reg .pred %p; {declared}")
    for name, place in zip(names, offsets(row), strict=True):
        size = names[name]
        lines.append(f"  {_address(size, place, '%in')} ld.global.b{8 * size} {name}, [%w];")
    size = SIZES.get(row.result, 4)
    lines.append(f"  {row.text}")
    lines.append(f"  {_address(size, index * LANES * 8, '%out')} st.global.b{8 * size} [%w], %r; }}")
    return "\n".join(lines)


def _address(size: int, place: int, base: str) -> str:
    """%w: the thread's element of an array at a byte offset from a base."""
    return f"mad.lo.u32 %i, %t, {size}, {place}; cvt.u64.u32 %w, %i; add.u64 %w, %w, {base};"


_POOLS: dict[tuple[str, int], int] = {}
_IMAGE = bytearray()


def offsets(row: Row) -> list[int]:
    """Where each operand's pool stands in the common input array."""
    seen: dict[str, int] = {}
    found = []
    for kind in row.operands:
        order = seen.get(kind, 0)
        seen[kind] = order + 1
        if (kind, order) not in _POOLS:
            _POOLS[kind, order] = len(_IMAGE)
            _IMAGE.extend(pool(kind, order).tobytes())
            _IMAGE.extend(bytes(-len(_IMAGE) % 16))
        found.append(_POOLS[kind, order])
    return found


def kernel_ptx(name: str) -> str:
    body = "\n".join(row_ptx(row, i) for i, row in enumerate(GROUPS[name]))
    return f"""
.version 8.5
.target sm_90a
.address_size 64

.visible .entry {name}(.param .u64 {name}_in, .param .u64 {name}_out)
{{
.reg .u64 %in, %out, %w;
.reg .u32 %t, %i;
.reg .pred %q;
ld.param.u64 %in, [{name}_in];
ld.param.u64 %out, [{name}_out];
mov.u32 %t, %tid.x;
and.b32 %i, %t, 1;
setp.eq.u32 %q, %i, 1;
{body}
ret;
}}
"""


def inputs(name: str) -> np.ndarray:
    for row in GROUPS[name]:
        offsets(row)
    return np.frombuffer(bytes(_IMAGE), np.uint8).copy()


def result(name: str, index: int, output: np.ndarray) -> np.ndarray:
    """A row's results as unsigned integers of their width, from the kernel's output bytes."""
    size = SIZES.get(GROUPS[name][index].result, 4)
    start = index * LANES * 8
    return output[start : start + LANES * size].view(f"u{size}")
