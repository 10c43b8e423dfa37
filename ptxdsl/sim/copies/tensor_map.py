"""Tensor maps made on NumPy arrays, for the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.diagnostics import launch_error
from ptxdsl.record import replace
from ptxdsl.shown import shown
from ptxdsl.sim.copies.swizzle import SWIZZLES
from ptxdsl.sim.copies.tensor_description import (
    ELEMENT_TYPES,
    FILLS,
    INTERLEAVES,
    PROMOTIONS,
    Description,
    ElementType,
    broken_rules,
)
from ptxdsl.sim.copies.tensor_map_bytes import encode
from ptxdsl.whole import whole

_MOST_BITS = 64  # of a number that a rule can still be told of


class TensorMap:
    """A tensor map on a NumPy array, to be given to a launch as a kernel's ``TensorMap`` argument.

    box: the tile's elements in each of the array's dimensions. shape and strides (bytes) are the array's unless given;
    the strides' last entry, of the innermost dimension, is the element. All in NumPy's order, outermost first.
    data_type: an element type's name where the array's dtype does not tell it (``bf16`` on uint16, ``tf32``).
    interleave: ``none``, ``16B``, ``32B``. swizzle: ``none``, ``32B``, ``64B``, ``128B``, ``128B_atom_32B``,
    ``128B_atom_32B_flip_8B``, ``128B_atom_64B``. l2_promotion: ``none``, ``64B``, ``128B``, ``256B``. fill: of elements
    outside the tensor, ``zero`` or ``nan``. Raises LaunchError for what the card's driver would refuse.
    """

    def __init__(
        self,
        array: npt.NDArray[Any],
        box: Sequence[int],
        element_strides: Sequence[int] | None = None,
        interleave: str = "none",
        swizzle: str = "none",
        l2_promotion: str = "none",
        fill: str = "zero",
        *,
        data_type: str | None = None,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
    ) -> None:
        self.array = array
        for what, value, known in (
            ("interleave", interleave, tuple(INTERLEAVES)),
            ("swizzle", swizzle, tuple(SWIZZLES)),
            ("l2_promotion", l2_promotion, PROMOTIONS),
            ("fill", fill, FILLS),
            ("data_type", data_type, (None, *ELEMENT_TYPES)),
        ):
            if not isinstance(value, str | None) or value not in known:
                names = ", ".join(f"'{name}'" for name in known if name)
                raise launch_error("E0920", f"{what}={shown(value)} of a tensor map is not one of {names}")
        element = ELEMENT_TYPES[data_type] if data_type else _element_of(array.dtype)
        box = _integers("box", box)
        shape = _integers("shape", array.shape if shape is None else shape)
        strides = _integers("strides", array.strides if strides is None else strides)
        steps = (1,) * len(shape) if element_strides is None else _integers("element_strides", element_strides)
        if not element.packed and shape and len(strides) == len(shape) and strides[-1] * 8 != element.bits:
            raise launch_error(
                "E0920",
                f"the innermost dimension of a tensor map must be contiguous: its stride is {strides[-1]} bytes, an "
                f"element of {element.name} has {element.bits // 8}",
            )
        self.description = Description(
            element.name,
            0,
            shape[::-1],
            strides[:-1][::-1],
            box[::-1],
            steps[::-1],
            interleave,
            swizzle,
            l2_promotion,
            fill,
        )
        self._check(self.description)
        self.form = self.description.form  # an attribute: quick launches ask for it

    def encode(self, address: int) -> bytes:
        """The 128 bytes for the array's memory at an address. Raises LaunchError where it is not aligned."""
        said = replace(self.description, address=address)
        self._check(said)
        return encode(said)

    def __repr__(self) -> str:
        said = self.description
        form = f"{said.data_type}, shape {said.dims[::-1]}, box {said.box[::-1]}, swizzle '{said.swizzle}'"
        return f"<ptxdsl tensor map: {form}>"

    def _check(self, said: Description) -> None:
        broken = list(broken_rules(said))
        if broken:
            more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
            raise launch_error("E0920", f"an invalid tensor map: {broken[0]}{more}")


def _integers(what: str, values: Sequence[int]) -> tuple[int, ...]:
    try:
        numbers = tuple(map(whole, values))
    except TypeError:
        raise launch_error("E0920", f"{what}={shown(values)} of a tensor map is not a sequence of integers") from None
    for number in numbers:
        if number.bit_length() > _MOST_BITS:
            raise launch_error("E0920", f"{what} of a tensor map has a number of {number.bit_length()} bits")
    return numbers


def _element_of(dtype: np.dtype[Any]) -> ElementType:
    for element in ELEMENT_TYPES.values():
        if dtype.name in element.numpy:
            return element
    if dtype.name == "bfloat16":
        return ELEMENT_TYPES["bf16"]
    if dtype.itemsize == 1:
        return ELEMENT_TYPES["u8"]
    raise launch_error(
        "E0920",
        f"an array of {dtype} has no element type of a tensor map",
        help="give data_type=: " + ", ".join(ELEMENT_TYPES),
    )
