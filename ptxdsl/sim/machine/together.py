"""Registers of neighbouring warps of a CTA, read and written at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Instruction, Operand
from ptxdsl.sim.machine.cta import Cta
from ptxdsl.sim.machine.group import WarpGroup
from ptxdsl.sim.machine.machine import Machine
from ptxdsl.sim.machine.warp import FULL

Array = npt.NDArray[Any]


class WarpRegisters:
    """All lanes of ``count`` warps of a CTA, from one on, at an instruction. Registers have 32 bits."""

    def __init__(self, machine: Machine, cta: Cta, first: int, count: int, instruction: Instruction) -> None:
        self._machine, self._instruction = machine, instruction
        self._warps = cta.warps[first : first + count]
        self._files = cta.storage.files[first : first + count].view(np.uint32).reshape(count, -1, 32)

    def _groups(self) -> list[WarpGroup]:
        """Of each warp alone."""
        return [WarpGroup(self._machine, warp, self._instruction, FULL) for warp in self._warps]

    def _rows(self, operands: Sequence[Operand]) -> slice | Array | None:
        """Where they are in each file, None if they are not all registers of 32 bits. operands: of the program."""
        key = "together", id(operands)
        rows = self._machine.row_numbers.get(key, False)
        if rows is False:
            rows = self._machine.row_numbers[key] = self._groups()[0].row_numbers("b32", operands)
            if rows is not None and (np.diff(rows) == 1).all():
                rows = self._machine.row_numbers[key] = slice(rows[0], rows[-1] + 1)
        found: slice | Array | None = rows
        return found

    def read(self, operands: Sequence[Operand]) -> Array:
        """(warps, operands, lanes)."""
        rows = self._rows(operands)
        if rows is None:
            return np.stack([group.read_many(operands, "b32") for group in self._groups()])
        if isinstance(rows, slice):
            return self._files[:, rows].copy()
        return self._files.take(rows, axis=1)

    def write(self, operands: Sequence[Operand], words: Array) -> None:
        rows = self._rows(operands)
        if rows is None:
            for group, its in zip(self._groups(), words, strict=True):
                group.write_many(operands, its, "b32")
        else:
            self._files[:, rows] = words
