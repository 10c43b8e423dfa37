"""What a kernel's tensor copies need of its tensor maps: told while they are elaborated, put into the signature.

A map that is a kernel's parameter keeps its value wherever it is handed on. Of a map that is one of several, or that
lies in memory, nothing is known, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxdsl import tir
from ptxdsl.elaborate.types import DType
from ptxdsl.record import replace
from ptxdsl.signature import Param, StructParam, TensorBox, TensorMapParam


class MapNeeds:
    """By the map's value, in the order of the text: dimensions of its copies, and the boxes that they move."""

    def __init__(self) -> None:
        self._ranks: dict[tir.Value, list[int]] = {}
        self._boxes: dict[tir.Value, list[TensorBox]] = {}

    def rank(self, map: tir.Value, rank: int) -> None:
        """A copy gives so many coordinates."""
        known = self._ranks.setdefault(map, [])
        if rank not in known:
            known.append(rank)

    def box(self, map: tir.Value, box: TensorBox) -> None:
        """A copy moves such a box."""
        known = self._boxes.setdefault(map, [])
        if box not in known:
            known.append(box)

    def told(self, params: Iterable[Param], values: Iterable[tir.Value]) -> tuple[Param, ...]:
        """The parameters of a kernel with what its maps must be like. values: of their leaves."""
        leaves = iter(values)
        return tuple(self._told(param, leaves) for param in params)

    def _told(self, param: Param, values: Iterator[tir.Value]) -> Param:
        if isinstance(param, StructParam):
            return replace(param, fields=tuple(self._told(field, values) for field in param.fields))
        value = next(values)
        if not isinstance(param, TensorMapParam):
            return param
        return replace(param, ranks=tuple(self._ranks.get(value, ())), boxes=tuple(self._boxes.get(value, ())))


def box_of(
    rank: int, rows: int, cols: int, dtype: DType, span: int, atom: int, *, in_one_line: bool, combines: bool
) -> TensorBox:
    """The box of a tile. span, atom: of its swizzle, as ``TensorMapSwizzle`` has them. in_one_line: it begins at the
    start of the swizzle's pattern and ends in its first 128 bytes, which no swizzle changes."""
    own = "none" if span == 16 else f"{span}B" if atom == 16 else f"{span}B_atom_{atom}B"
    swizzles = (own, "none") if in_one_line and own != "none" else (own,)
    return TensorBox(rank, rows, cols, dtype.name, dtype.bytes, swizzles, combines)
