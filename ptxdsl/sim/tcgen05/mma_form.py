"""The forms of ``tcgen05.mma``: what an opcode says, which of them are simulated, and the operands by their meaning.

Source: PTX ISA, "tcgen05.mma", "tcgen05.mma.sp", "tcgen05.mma.ws".
"""

from __future__ import annotations

from functools import lru_cache

from ptxdsl.ptx.module import Immediate, Instruction, Operand, Vector
from ptxdsl.record import dataclass
from ptxdsl.sim.tcgen05.descriptor import KINDS
from ptxdsl.sim.tcgen05.form import misformed
from ptxdsl.sim.tcgen05.sync import cta_group

COLLECTOR_USES = ("fill", "use", "lastuse", "discard")


@dataclass(frozen=True)
class Form:
    """What an opcode says. scale_vec: scale factors a row of A, half as many more with K = 96; 0: no block scaling."""

    kind: str
    cta_group: int
    ws: bool
    sparse: bool
    ashift: bool
    scale_vec: int


@lru_cache(1024)
def parse(opcode: str) -> Form | str:
    """The meaning of an opcode, or what of it is not supported."""
    parts = opcode.split(".")[2:]
    kind = next((part[6:] for part in parts if part.startswith("kind::")), "")
    if kind not in KINDS:
        return f"tcgen05.mma of kind {kind or 'none'}"
    is_sparse = "sp" in parts
    if is_sparse and "ashift" in parts:  # what becomes of the metadata is said nowhere
        return "tcgen05.mma.sp with .ashift"
    row = KINDS[kind]
    scale_vec = row.scale_default
    collectors = ("b0", "b1", "b2", "b3") if "ws" in parts else ("a",)
    known = {
        "ws",
        "sp",
        "ashift",
        "block_scale",
        *(f"collector::{c}::{use}" for c in collectors for use in COLLECTOR_USES),
    }
    for part in parts:
        if part.startswith("scale_vec::") and row.block_scaled:
            scale_vec = int(part[11:-1])
        elif part in ("block16", "block32") and row.block_scaled:
            scale_vec = row.k // int(part[5:])
        elif part not in known and not part.startswith(("kind::", "cta_group::")):
            return f"tcgen05.mma with .{part}"
    if "ashift" in parts and {"collector::a::fill", "collector::a::use"}.intersection(parts):
        return "tcgen05.mma with .ashift and a collector buffer that is filled or used"
    if row.block_scaled != ("block_scale" in parts) or (row.block_scaled and not scale_vec):
        return f"this form of tcgen05.mma of kind {kind}"
    return Form(kind, cta_group(opcode), "ws" in parts, is_sparse, "ashift" in parts, scale_vec)


def unsupported(instruction: Instruction) -> str | None:
    form = parse(instruction.opcode)
    if isinstance(form, str):
        return form
    words = next((len(operand.items) for operand in instruction.operands if isinstance(operand, Vector)), 0)
    if words not in (0, 4 * form.cta_group):
        return f"disable-output-lane has {4 * form.cta_group} words with .cta_group::{form.cta_group}"
    return misformed(instruction)


@dataclass(frozen=True)
class Operands:
    """The operands of an instruction by their meaning."""

    d: Operand
    a: Operand
    b: Operand
    idesc: Operand
    metadata: Operand | None
    scales: tuple[Operand, ...]
    disabled: tuple[Operand, ...]
    enable: Operand
    scale_input: int
    zero_mask: Operand | None


def operands_of(instruction: Instruction, form: Form) -> Operands:
    d, a, b, *rest = instruction.operands
    metadata = rest.pop(0) if form.sparse else None
    idesc, *rest = rest
    scales = tuple(rest[:2]) if form.scale_vec else ()
    rest = rest[len(scales) :]
    disabled: tuple[Operand, ...] = ()
    if isinstance(rest[0], Vector):
        disabled = rest[0].items
        rest = rest[1:]
    enable, *last = rest
    scale_input = last[0].value if last and isinstance(last[0], Immediate) and not form.ws else 0
    return Operands(
        d, a, b, idesc, metadata, scales, disabled, enable, scale_input, last[0] if last and form.ws else None
    )
