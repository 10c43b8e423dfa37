"""Matrices for tests of tcgen05: codes and their values, put into shared memory and taken out of tensor memory byte by
byte and strip by strip, as the ISA's words and figures say."""

from __future__ import annotations

from typing import Any

import numpy as np
from tcgen05_bench import Bench
from tcgen05_packing import pack_shared

from ptxdsl.sim import numbers

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "u8": 8, "s8": 8, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}
STORAGE = {4: np.uint8, 6: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32}
CODES = {  # of each kind, the number of a type in the instruction descriptor
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "mxf8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "i8": {"u8": 0, "s8": 1},
    "mxf4": {"e2m1": 1},
    "mxf4nvf4": {"e2m1": 1},
}
K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
# bytes of a swizzled row; how many address bits from 7 on flip those from 4 on
SWIZZLES = {"none": (16, 0), "32B": (32, 1), "64B": (64, 2), "128B": (128, 3), "128B with 32B atoms": (128, 2)}


def random_codes(rng: np.random.Generator, type: str, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Codes of a type and their values, float64; no infinities or NaN, and sums of products exact in float64."""
    bits = BITS[type]
    if type in ("u8", "s8"):
        codes = rng.integers(0, 256, shape, np.uint8)
        return codes, codes.view(np.int8 if type == "s8" else np.uint8).astype(np.float64)
    if bits >= 16:
        codes = numbers.encode(rng.standard_normal(shape).astype(np.float32), type)
        return codes, numbers.decode(codes, type).astype(np.float64)
    codes = rng.integers(0, 1 << bits, shape, np.uint8)
    values = numbers.decode(codes, type).astype(np.float64)
    codes = np.where(np.isfinite(values), codes, np.uint8(1))
    return codes, numbers.decode(codes, type).astype(np.float64)


def row_bytes(codes: Any, bits: int, packed: bool) -> Any:
    """The bytes of each row of codes: (rows, bytes)."""
    rows = codes.shape[0]
    if bits >= 8:
        return np.ascontiguousarray(codes).view(np.uint8).reshape(rows, -1)
    if packed:
        return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
    chunks = codes.reshape(rows, -1, 16)
    octets = np.full((*chunks.shape[:2], 16), 0xA5, np.uint8)  # padding that must not be looked at
    for row, chunk in np.ndindex(chunks.shape[:2]):
        number = sum(int(code) << bits * i for i, code in enumerate(chunks[row, chunk]))
        octets[row, chunk, : 2 * bits] = np.frombuffer(number.to_bytes(2 * bits, "little"), np.uint8)
    return octets.reshape(rows, -1)


def put_matrix(
    bench: Bench, offset: int, codes: Any, type: str, swizzle: str = "128B", *,
    mn_major: bool = False, packed: bool = False, cta: int = 0,
) -> int:  # fmt: skip
    """Stores (M or N, K) codes at an offset, a multiple of 1024, of a CTA's shared memory; their descriptor.

    A line is what is contiguous: a row along K, or with mn_major a column along M or N. Lines are cut into rows of the
    swizzle's width, eight of which (four with atoms of 32 bytes) are one atom. Atoms follow one another along the lines
    first, with gaps.
    """
    width, flips = SWIZZLES[swizzle]
    lines = row_bytes(codes.T if mn_major else codes, BITS[type], packed)
    across = 4 if swizzle == "128B with 32B atoms" else 8
    shift = 2 if swizzle == "128B with 32B atoms" else 3
    atom = across * width
    pieces = -(-lines.shape[1] // width)
    next_piece = atom if pieces > 1 or swizzle == "none" else 16
    next_group = pieces * atom + (atom if swizzle != "none" else 64)  # a gap after each group of lines
    window = bench.ctas[cta].window
    for line in range(lines.shape[0]):
        for byte in range(lines.shape[1]):
            place = line // across * next_group + line % across * width + byte // width * next_piece + byte % width
            place = offset + place
            window[place ^ (place >> 7 & (1 << flips) - 1) << 7 - shift] = lines[line, byte]
    # The leading offset is the step along K without swizzling (K-major: the next chunk; MN-major: the next 8 of K), and
    # with it the step along M or N; K-major rows with swizzling have one piece alone.
    if swizzle == "none" and mn_major:
        leading, stride = next_group, next_piece
    else:
        leading, stride = next_piece, next_group
    return pack_shared(offset, leading, stride, swizzle)


def d_matrix(words: Any, layout: str, n: int, column: int = 0, lane: int = 0) -> Any:
    """(rows of the CTA, N) words of D, by the figures of "Data Path Layout Organization"."""
    if layout in "AD":
        return words[:, column : column + n]
    if layout in "BE":
        return np.hstack([words[64 * i : 64 * i + 64, column : column + n // 2] for i in range(2)])
    if layout in "CF":
        return np.vstack([words[32 * i + lane : 32 * i + lane + 16, column : column + n] for i in range(4)])
    return np.hstack([words[32 * i : 32 * i + 32, column : column + n // 4] for i in range(4)])


def put_d(words: Any, layout: str, d: Any, column: int = 0, lane: int = 0) -> None:
    """The inverse of ``d_matrix``."""
    n = d.shape[1]
    if layout in "AD":
        words[:, column : column + n] = d
    elif layout in "BE":
        for i in range(2):
            words[64 * i : 64 * i + 64, column : column + n // 2] = d[:, i * n // 2 : (i + 1) * n // 2]
    elif layout in "CF":
        for i in range(4):
            words[32 * i + lane : 32 * i + lane + 16, column : column + n] = d[16 * i : 16 * i + 16]
    else:
        for i in range(4):
            words[32 * i : 32 * i + 32, column : column + n // 4] = d[:, i * n // 4 : (i + 1) * n // 4]


def floats(words: Any, type: str = "f32") -> Any:
    """Values of words of D, float64."""
    if type == "f16":
        return words.astype(np.uint16).view(np.float16).astype(np.float64)
    return np.ascontiguousarray(words).view({"f32": np.float32, "s32": np.int32}[type]).astype(np.float64)


def words_of(values: Any, type: str = "f32") -> Any:
    """Words of D that hold values, rounded to nearest."""
    if type == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.uint32)
    return values.astype({"f32": np.float32, "s32": np.int32}[type]).view(np.uint32)


def put_scales(words: Any, column: int, codes: Any, id: int = 0) -> None:
    """(rows, blocks) codes of scale factors into all partitions of these lanes, from byte ``id`` on: row r in lane
    r % 32, column r / 32 ("Layout of the Scale Factor A Matrix …")."""
    octets = words.view(np.uint8).reshape(-1, 512, 4)
    for row in range(codes.shape[0]):
        for partition in range(len(octets) // 32):
            octets[32 * partition + row % 32, column + row // 32, id : id + codes.shape[1]] = codes[row]
