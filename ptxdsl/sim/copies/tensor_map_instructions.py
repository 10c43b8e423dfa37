"""Tensor maps changed by the kernel: ``tensormap.replace`` and ``tensormap.cp_fenceproxy``.

Source: PTX ISA, "tensormap.replace" (fields, their values), "tensormap.cp_fenceproxy".
"""

from __future__ import annotations

import numpy as np

from ptxdsl.ptx.module import Immediate, Instruction
from ptxdsl.sim.copies.tensor_map_bytes import TENSOR_MAP_BYTES, Words
from ptxdsl.sim.host import Group, handles

_ALIGNMENT = 64
# Fields, and how many of each a map has.
FIELDS = {
    "global_address": 1, "rank": 1, "box_dim": 5, "global_dim": 5, "global_stride": 4, "element_stride": 5,
    "elemtype": 1, "interleave_layout": 1, "swizzle_mode": 1, "swizzle_atomicity": 1, "fill_mode": 1,
}  # fmt: skip
# How many values those have that are chosen by number.
CHOICES = {
    "rank": 5, "elemtype": 16, "interleave_layout": 3, "swizzle_mode": 5, "swizzle_atomicity": 4, "fill_mode": 2,
}  # fmt: skip


def _unsupported(instruction: Instruction) -> str | None:
    parts = instruction.parts
    if parts[2] != "tile" or parts[3] not in FIELDS:
        return f"{instruction.opcode}: tensormap.replace.tile of " + ", ".join(FIELDS)
    _, *ordinal, _ = instruction.operands
    if bool(ordinal) != (FIELDS[parts[3]] > 1):
        return f"{parts[3]} takes {'a number of its dimension and ' * (not ordinal)}a value"
    if ordinal and not (isinstance(ordinal[0], Immediate) and 0 <= ordinal[0].value < FIELDS[parts[3]]):
        return f"{parts[3]} of a dimension that is not 0 to {FIELDS[parts[3]] - 1}"
    return None


@handles("tensormap.replace", check=_unsupported)
def replace(group: Group) -> None:
    parts = group.instruction.parts
    field = parts[3]
    address_operand, *rest = group.instruction.operands
    ordinal = 0
    if len(rest) == 2:
        assert isinstance(rest[0], Immediate)
        ordinal = rest[0].value
    values = group.values(rest[-1], "u64" if parts[-1] == "b64" else "u32")
    space = parts[4] if parts[4] in ("global", "shared", "shared::cta") else "generic"
    addresses = group.values(address_operand, "u64")
    group.machine.accesses(group.cta, space, np.array(addresses, np.uint64), TENSOR_MAP_BYTES, "write")
    for address, value in zip(addresses, values, strict=True):
        if value >= CHOICES.get(field, value + 1):
            raise group.fault("E1153", f"tensormap.replace of {field} by {value}: 0 to {CHOICES[field] - 1} exist")
        data = group.machine.memory.view(group.cta, space, address, TENSOR_MAP_BYTES, write=True, align=_ALIGNMENT)
        words = Words(data.tobytes())
        words.replace(field, ordinal, value)
        data[...] = words.words.view("u1")


@handles("tensormap.cp_fenceproxy")
def copy_and_fence(group: Group) -> None:
    """Copies 128 bytes from shared to global memory, once a warp."""
    group.require_whole_warp()
    target, source, size = (group.uniform(operand, "u64") for operand in group.instruction.operands)
    view = group.machine.memory.view
    group.machine.accesses(group.cta, "shared::cta", source, size, "read")
    group.machine.accesses(group.cta, "global", target, size, "write")
    data = view(group.cta, "shared::cta", source, size, write=False, align=_ALIGNMENT)
    view(group.cta, "global", target, size, write=True, align=_ALIGNMENT)[...] = data
