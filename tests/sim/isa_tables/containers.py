"""Elements of A and B: formats, and the containers that 4- and 6-bit elements are in.

Source: PTX ISA 9.2, 5.2.3 "Alternate Floating-Point Data Formats", 9.7.16.10.4.3 to 9.7.16.10.4.6 (figures 199 to
204), 9.7.16.9.1 (figures 194 to 198), 9.7.16.10.7.1 (table 57); 9.7.14.5 (mma.sync with .kind::f8f6f4 says it in words:
e2m1 "in central 4 bits", e3m2 and e2m3 "in the lower 6 bits").
Second: measured (shared memory: sixteen 4-bit elements in 8 bytes, 6-bit ones in 12, the lowest element in the lowest
bits, padded to 16 bytes); CUTLASS example ``cp_narrow_a_to_tmem_mma.py`` and the transcription of figures 199 to 201
in "NVIDIA Blackwell Tensor Core Analysis (Part 1)" (tensor memory: e2m1 is ``00SEEM00``).
"""

from __future__ import annotations

# Type -> (bits, exponent bits, mantissa bits, bias). One sign bit, but for the two scale types.
FORMATS: dict[str, tuple[int, int, int, int]] = {
    "f32": (32, 8, 23, 127),
    "tf32": (32, 8, 23, 127),
    "bf16": (16, 8, 7, 127),
    "f16": (16, 5, 10, 15),
    "e4m3": (8, 4, 3, 7),
    "e5m2": (8, 5, 2, 15),
    "e2m3": (6, 2, 3, 1),
    "e3m2": (6, 3, 2, 3),
    "e2m1": (4, 2, 1, 1),
    "ue4m3": (7, 4, 3, 7),
}


def value(kind: str, word: int) -> float:
    """The value of a finite element. ue8m0: 2**(word - 127)."""
    if kind == "ue8m0":
        return 2.0 ** (word - 127)
    if kind in ("u8", "s8"):
        return float(word - 256 if kind == "s8" and word >= 128 else word)
    _, exponents, mantissas, bias = FORMATS[kind]
    mantissa = word & (1 << mantissas) - 1
    exponent = word >> mantissas & (1 << exponents) - 1
    sign = -1.0 if word >> mantissas + exponents & 1 else 1.0
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissas)
    return sign * (1 + mantissa / (1 << mantissas)) * 2.0 ** (exponent - bias)


def bits_of(kind: str) -> int:
    """Bits of an element."""
    return FORMATS[kind][0] if kind in FORMATS else 8


def shared_bytes(kind: str, multiplicand: str, elements: list[int]) -> bytes:
    """A row of K elements as the bytes that lie along K in shared memory."""
    bits = bits_of(multiplicand)
    packed = kind in ("mxf4", "mxf4nvf4")  # two e2m1 in a byte, no padding
    row = b""
    for start in range(0, len(elements), 16):
        word = sum(element << bits * i for i, element in enumerate(elements[start : start + 16]))
        held = word.to_bytes(len(elements[start : start + 16]) * bits // 8, "little")
        row += held if packed or bits >= 8 else held.ljust(16, b"\0")
    return row


# 4-bit elements of .kind::f8f6f4 and .kind::mxf8f6f4 in tensor memory: a byte each, the element in bits 2 to 5.
E2M1_SHIFT = 2


def tensor_memory_bytes(kind: str, multiplicand: str, elements: list[int]) -> bytes:
    """A row of K elements of A as the bytes of its lane."""
    if multiplicand == "e2m1" and kind in ("f8f6f4", "mxf8f6f4"):
        return bytes(element << E2M1_SHIFT for element in elements)
    assert bits_of(multiplicand) != 6, "undecided"
    return shared_bytes(kind, multiplicand, elements)


UNDECIDED = (
    "6-bit elements in tensor memory: ``00SEEEMM`` (that transcription; the words for mma.sync) or ``0SEEEMM0`` "
    "(CUTLASS's example, which cannot tell: tcgen05.mma reads what tcgen05.cp copied). Certain is that the two agree",
)
