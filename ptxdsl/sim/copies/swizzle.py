"""Swizzles of shared memory: where a byte lies that a plain layout has at another address.

A swizzle exchanges chunks of 8, 16, 32 or 64 bytes within a line of 128 bytes; which ones depends on the line's number
within a pattern of up to eight lines, 1024 bytes. Both are bits of the shared address, so a swizzle is an exclusive or
of some address bits with higher ones, and is its own inverse. Source: PTX ISA, "Tensors: Swizzling Modes".
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from ptxdsl.record import dataclass


@dataclass(frozen=True, slots=True)
class Swizzle:
    """span: bytes that a row of the tile takes, 0 for as many as it has. terms: (source bits, shift): the address bits
    of the mask ``source`` are moved right by ``shift`` and flip the bits there. pattern: bytes after which it repeats.
    chunk: bytes that stay together."""

    name: str
    span: int
    terms: tuple[tuple[int, int], ...]
    pattern: int
    chunk: int = 16


def _bits(low: int, high: int) -> int:
    return (1 << high + 1) - (1 << low)


SWIZZLES: dict[str, Swizzle] = {
    swizzle.name: swizzle
    for swizzle in (
        Swizzle("none", 0, (), 16),
        Swizzle("32B", 32, ((_bits(7, 7), 3),), 256),
        Swizzle("64B", 64, ((_bits(7, 8), 3),), 512),
        Swizzle("128B", 128, ((_bits(7, 9), 3),), 1024),
        Swizzle("128B_atom_32B", 128, ((_bits(7, 8), 2),), 1024, 32),
        Swizzle("128B_atom_32B_flip_8B", 128, ((_bits(7, 8), 2), (_bits(7, 7), 4)), 1024, 8),
        Swizzle("128B_atom_64B", 128, ((_bits(7, 7), 1),), 1024, 64),
        Swizzle("96B", 96, ((_bits(7, 7), 3),), 256),
    )
}


def swizzled(addresses: npt.NDArray[Any], swizzle: Swizzle) -> npt.NDArray[Any]:
    """The addresses at which a swizzled layout has what a plain one has at ``addresses`` (shared addresses)."""
    result = addresses
    for source, shift in swizzle.terms:
        result = result ^ ((addresses & source) >> shift)
    return result
