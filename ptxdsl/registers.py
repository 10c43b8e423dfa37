"""Registers that a thread has at the launch of a kernel which moves registers between its warps (``setmaxnreg``).

Source: PTX ISA, "setmaxnreg"; what ptxas 13.0 and 13.5 give such kernels.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, prod

STEP = 8  # registers of a thread are given in such steps
_WARP = 32
_PARTS = 4  # of an SM, each with warps and registers of its own
_REGISTERS = 16384  # of such a part, 32 bits each


def registers_at_launch(shape: tuple[int, ...] | None, blocks: int | None, limit: int | None) -> int | None:
    """As many as fit, where the kernel says how many threads (``.reqntid``, ``.maxntid``) and how many blocks an SM
    must hold (``.minnctapersm``), and no more than its limit (``.maxnreg``).

    None where it says neither: ptxas ignores ``setmaxnreg`` then.
    """
    found = [] if limit is None else [ceil(limit / STEP) * STEP]
    if shape is not None and blocks is not None:
        warps = ceil(ceil(prod(shape) / _WARP) * blocks / _PARTS)
        found.append(_REGISTERS // (_WARP * warps) // STEP * STEP)
    return min(found, default=None)


def given(at_launch: int, asked: Iterable[int]) -> int:
    """What a kernel gets of them that asks for these numbers: no more than the largest."""
    return min(at_launch, max(asked))
