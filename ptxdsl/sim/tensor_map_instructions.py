"""Tensor maps changed by the kernel: ``tensormap.replace`` and ``tensormap.cp_fenceproxy``.

Source: PTX ISA, "tensormap.replace" (fields, their values), "tensormap.cp_fenceproxy".
"""

from __future__ import annotations

from ptxdsl.ptx.module import Immediate, Instruction
from ptxdsl.sim.host import Group, handles
from ptxdsl.sim.tensor_map_bytes import TENSOR_MAP_BYTES, Words

_ALIGNMENT = 64
FIELDS = (
    "global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride", "elemtype",
    "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode",
)  # fmt: skip


def _unsupported(instruction: Instruction) -> str | None:
    parts = instruction.parts
    if parts[2] != "tile" or parts[3] not in FIELDS:
        return f"{instruction.opcode}: tensormap.replace.tile of " + ", ".join(FIELDS)
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
    for address, value in zip(group.values(address_operand, "u64"), values, strict=True):
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
    data = view(group.cta, "shared::cta", source, size, write=False, align=_ALIGNMENT)
    view(group.cta, "global", target, size, write=True, align=_ALIGNMENT)[...] = data
