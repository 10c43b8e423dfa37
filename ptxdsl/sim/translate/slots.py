"""Where registers lie in a warp's register file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ptxdsl.record import dataclass
from ptxdsl.sim.translate.emitter import ELEMENTS, Unsupported, element_bits


@dataclass(frozen=True, slots=True)
class Slot:
    """A register's 32 lanes in the register file: offset in bytes, bits of a lane (``pred``: 32, 0 or -1)."""

    offset: int
    bits: int
    is_predicate: bool = False

    @property
    def dtype(self) -> np.dtype[np.signedinteger]:
        return np.dtype(f"i{min(self.bits, 64) // 8}")


def register_bits(type: str) -> int:
    """Bits of a lane of a register of a declared type, as it is kept: 1 for predicates, never 8."""
    if type == "pred":
        return 1
    if type == "b128":
        return 128
    element = ELEMENTS.get(type)
    if element is None:
        raise Unsupported(f"registers of type .{type}")
    return max(element_bits(element), 16)


def lay_out_slots(registers: Mapping[str, str], names: list[str]) -> tuple[dict[str, Slot], int]:
    """Slots of the register file and its size in bytes."""
    slots: dict[str, Slot] = {}
    offset = 0
    for name in names:
        type = registers[name]
        bits = register_bits(type)
        slots[name] = Slot(offset, 32 if bits == 1 else bits, bits == 1)
        offset += 32 * max(32 if bits == 1 else bits, 16) // 8
    return slots, offset
