"""Operands of host instructions as Python numbers: one if all active lanes agree, else one a lane."""

from __future__ import annotations

from functools import lru_cache

from ptxdsl.ptx.module import Operand
from ptxdsl.sim.host import Group
from ptxdsl.sim.layout import LANES

_FULL = (1 << LANES) - 1


@lru_cache(4096)
def lane_numbers(mask: int) -> tuple[int, ...]:
    """The lanes of a mask, in order."""
    return tuple(lane for lane in range(LANES) if mask >> lane & 1)


def each(group: Group, operand: Operand, type: str) -> list[int]:
    """The values of the active lanes, in their order. type: a PTX integer type."""
    values: list[int] = group.read(operand, type).tolist()
    if group.mask == _FULL:
        return values
    return [values[lane] for lane in lane_numbers(group.mask)]


def common(group: Group, operand: Operand, type: str) -> int | None:
    """The value that all active lanes have, None if they differ."""
    return group.common(operand, type)
