"""Whether a tensor map is what the kernel's copies take it for: another one moves other bytes, and nothing tells."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from ptxdsl.diagnostics import counted
from ptxdsl.signature import TensorBox, TensorMapParam

# The element types of a map whose elements a copy combines as those of the kernel's type.
_COMBINED = {
    "float16": ("f16",), "bfloat16": ("bf16",), "float32": ("f32", "f32.ftz"),
    "int32": ("s32",), "uint32": ("u32",), "int64": ("s64",), "uint64": ("u64",),
}  # fmt: skip


def misfit(param: TensorMapParam, said: Any) -> tuple[str, str | None] | None:
    """What of a map is not as the parameter's copies need it, and how to make it; None where nothing is.

    said: the map's ``Description`` (``sim/copies/tensor_description.py``).
    """
    if param.ranks and said.rank not in param.ranks:
        wanted = " or ".join(map(str, param.ranks))
        return f"{counted(said.rank, 'dimension')} instead of {wanted}", _like(param)
    phrases = min((list(_differences(box, said)) for box in param.boxes), key=len, default=[])  # of the nearest one
    return (", ".join(phrases), _like(param)) if phrases else None


def _differences(box: TensorBox, said: Any) -> Iterator[str]:
    """A phrase for each."""
    from ptxdsl.sim.copies.tile import tile_of

    element, tile = said.element, tile_of(said)
    rows, row = prod(tile.counts[1:]), box.cols * box.size
    if said.rank != box.rank:
        yield f"{counted(said.rank, 'dimension')} instead of {box.rank}"
    if element.packed is None and element.bits != 8 * box.size:
        yield f"elements of {element.bits} bits ({element.name}) instead of {8 * box.size} ({box.dtype})"
    elif box.combines and element.name not in _COMBINED.get(box.dtype, (element.name,)):
        yield f"elements of {element.name} instead of {box.dtype}, which are combined"
    if tile.row != row:
        yield f"rows of {tile.row} bytes instead of {row}"
    if rows != box.rows:
        yield f"{counted(rows, 'row')} instead of {box.rows}"
    if said.swizzle not in box.swizzles:
        yield f"the swizzle '{said.swizzle}' instead of '{box.swizzles[0]}'"
    if said.interleave != "none":
        yield f"the interleave '{said.interleave}' instead of 'none'"


def _like(param: TensorMapParam) -> str | None:
    """What map the kernel takes, if its boxes are known."""
    made = (f"one of {box.dtype} with box={box.shape}, swizzle='{box.swizzles[0]}'" for box in param.boxes)
    return f"make {' or '.join(made)}" if param.boxes else None
