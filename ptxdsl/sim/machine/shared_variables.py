"""Addresses of shared memory by the variables that they lie in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ptxdsl.sim.layout import RANK_SHIFT
from ptxdsl.sim.program.symbols import Place, Symbols

if TYPE_CHECKING:
    from ptxdsl.artifact import SharedName

_OFFSET = (1 << RANK_SHIFT) - 1
_WORDS = ("b64", "u64", "s64")  # arrays of them are mostly mbarriers
_PIECE = "_$_"  # LLVM makes several variables of an array whose elements it can tell apart: kernel_tile_$_0


class SharedVariables:
    """names: by PTX symbol, what the source calls it."""

    def __init__(self, symbols: Symbols, names: Mapping[str, SharedName]) -> None:
        self._places = [place for place in symbols.places.values() if place.variable.space == "shared"]
        self._names = names

    def place(self, address: int) -> str:
        """``buffer+16``, ``dynamic shared memory+1024``, or the number; an element of the source's array, or of one of
        64-bit words, by its index: ``bars[1]``."""
        near = self._variable(address)
        offset = address & _OFFSET
        if near is None:
            return f"{offset:#x}"
        distance = offset - near.address
        variable, known = near.variable, self._names.get(near.variable.name)
        whole = self._names.get(variable.name.rpartition(_PIECE)[0])
        if known is None and whole is not None and whole.variable is not None:
            return whole.variable  # which of its elements is not known
        if known is None:
            name, element = variable.name, 8 * (variable.type in _WORDS and variable.shape != ())
        else:
            name, element = known.variable or "dynamic shared memory", known.element
        if element > 1 and (variable.size is None or element < variable.size):
            index, distance = divmod(distance, element)
            name += f"[{index}]"
        return name + (f"+{distance}" if distance else "")

    def role(self, address: int) -> str:
        """What the mbarrier at an address is to a RolePipeline (``consumer_mbar of stage 0``), or ""."""
        near = self._variable(address)
        known = self._names.get(near.variable.name) if near is not None else None
        if near is None or known is None:
            return ""
        return known.roles.get((address & _OFFSET) - near.address, "")

    def _variable(self, address: int) -> Place | None:
        offset = address & _OFFSET
        near = None
        for place in self._places:
            size = place.variable.size
            inside = place.address <= offset and (size is None or offset < place.address + size)
            if inside and (near is None or place.address > near.address):
                near = place
        return near
