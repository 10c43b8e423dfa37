"""The arithmetic of ``tcgen05.mma``: bytes of shared and tensor memory to numbers, results to words of tensor memory.

Products are exact and summed in float64; the accumulator is rounded once an instruction (``matrix_arithmetic`` says why
that is within what the ISA permits). Scale factors multiply elements before that, exactly too.

Source: PTX ISA, "TensorCore 5th Generation Matrix Multiply and accumulate Operations", "Packing formats of elements in
Tensor and Shared memory", "Block Scaling for tcgen05.mma.sync".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.sim import numbers
from ptxdsl.sim.matrix import arithmetic as matrix_arithmetic
from ptxdsl.sim.matrix.types import SCALES, TYPES, accumulator_codes, accumulator_values
from ptxdsl.sim.matrix.wgmma_descriptor import Tile, elements
from ptxdsl.sim.tcgen05.descriptor import BITS
from ptxdsl.sim.tcgen05.layout import CONTAINER_SHIFT, shared_bits, unpack_shared

Array = npt.NDArray[Any]


def _whole(octets: Array, type: str) -> Array:
    """float32 values of elements of 8 bits and more."""
    element = TYPES[type]
    return element.decode(octets.view(element.raw))


def shared_matrix(memory: Array, place: Tile, type: str, packed: bool, mn_major: bool) -> Array:
    """(M or N, K) values of a matrix in shared memory. memory: the tile's bytes. packed: 4 bits without padding."""
    octets = elements(place, memory)
    octets = octets.reshape(octets.shape[0], -1)
    bits = BITS[type]
    if bits >= 8:
        values = _whole(octets, type)
    elif packed:
        values = numbers.decode(numbers.unpack_nibbles(octets), type)
    else:
        values = numbers.decode(unpack_shared(octets, bits), type)
    return values.T if mn_major else values


def tensor_matrix(words: Array, type: str, packed: bool) -> Array:
    """(rows, K) values of A in tensor memory: of each lane the words in the order of the columns."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    bits = BITS[type]
    if bits >= 8:
        return _whole(octets, type)
    if packed:
        return numbers.decode(numbers.unpack_nibbles(octets), type)
    return numbers.decode(octets >> np.uint8(CONTAINER_SHIFT[bits]), type)


def tensor_columns(type: str, packed: bool, k: int) -> int:
    """Columns that a row of A takes in tensor memory."""
    return shared_bits(BITS[type], packed) * k // 32


def scale_values(codes: Array, type: str) -> Array:
    """float64 values of scale factors."""
    return SCALES[type].take(codes).astype(np.float64)


def scaled(values: Array, scales: Array) -> Array:
    """(rows, K) values times the factors (rows, blocks) of each row's blocks along K."""
    block = values.shape[1] // scales.shape[1]
    with np.errstate(invalid="ignore"):
        product: Array = values.astype(np.float64) * np.repeat(scales, block, axis=1)
    return product


def accumulator(words: Array, type: str) -> Array:
    """float64 values of words of D: one element a word, f16 in its low half."""
    codes = words.astype(np.uint16) if type == "f16" else np.ascontiguousarray(words)
    return accumulator_values(codes, type).reshape(words.shape)


def result_words(values: Array, type: str, saturate: bool = False) -> Array:
    """The words of D that hold float64 results (``accumulator_codes``). The upper half of f16's is zero."""
    return accumulator_codes(values, type, saturate).astype(np.uint32)


def multiply(
    a: Array, b: Array, d: Array | None, d_type: str, *, scale_input: int = 0, saturate: bool = False
) -> Array:
    """Words of A (rows, K) · B (N, K) transposed + D · 2^-scale_input. d: words (rows, N), or None: without D."""
    before = accumulator(d, d_type) if d is not None else None
    if before is not None and scale_input:
        before = np.ldexp(before, -scale_input)
    return result_words(matrix_arithmetic.multiply_accumulate(a, b.T, before), d_type, saturate)
