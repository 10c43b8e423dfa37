"""Which host instructions turns in host code can execute, as records (``layout.SITE``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxdsl.ptx.module import Address, Immediate, Instruction, Operand, Register, Symbol, Vector
from ptxdsl.sim.barriers.cta_barriers import form
from ptxdsl.sim.barriers.mbarrier_instructions import Form, parsed
from ptxdsl.sim.layout import (
    ARRIVE,
    COME,
    EXPECT,
    FENCE,
    GROUP_COMMIT,
    GROUP_FENCE,
    GROUP_WAIT,
    PART,
    SHARED_WINDOW,
    SYNC,
    TEST_WAIT,
    TRY_WAIT,
)

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.sites import Site

_BARRIERS = ("bar", "barrier")
_GROUPS = {"fence": GROUP_FENCE, "commit_group": GROUP_COMMIT, "wait_group": GROUP_WAIT, "mma_async": PART}
_KINDS = {"mbarrier.arrive": ARRIVE, "mbarrier.try_wait": TRY_WAIT, "mbarrier.test_wait": TEST_WAIT}


def host_site(machine: Machine, record: Any, number: int, site: Site) -> None:
    """Fills the record of one site."""
    instruction = site.instruction
    kind = _KINDS.get(".".join(instruction.parts[:2]))
    if site.instruction.opcode.startswith("fence.proxy.async"):
        record["number"], record["next"], record["kind"] = number, site.next_block, FENCE
        return
    if instruction.parts[0] in _BARRIERS and "cluster" not in instruction.parts and site.handler is not None:
        _named(machine, record, number, site)
        return
    if instruction.parts[0] == "wgmma":
        _warpgroup(machine, record, number, site)
        return
    if kind is None or site.handler is None:
        return
    form, result, address, operand = parsed(instruction)
    slots = machine.code.slots
    if kind == ARRIVE:
        if not form.complete:
            return
        kind = EXPECT if form.expects else ARRIVE
    elif not form.parity:
        return
    if not _address(machine, record, form, address) or not _operand(machine, record, operand, kind):
        return
    record["local"] = form.local or kind in (TRY_WAIT, TEST_WAIT)
    slot = slots.get(result.name) if isinstance(result, Register) else None
    record["result"] = -1 if slot is None else slot.offset
    record["number"], record["next"], record["kind"] = number, site.next_block, kind


def _named(machine: Machine, record: Any, number: int, site: Site) -> None:
    """``bar.sync`` and ``bar.arrive``."""
    made, operands = form(site.instruction.opcode), site.instruction.operands
    if made.name == "bar.red" or (made.operation == "arrive" and len(operands) < 2):
        return
    id, count = _number(machine, operands[0]), _number(machine, operands[1] if len(operands) > 1 else None)
    if id is None or count is None or (len(operands) > 1 and count == (-1, 0)):
        return
    record["address"], record["plus"] = id
    record["operand"], record["constant"] = count
    record["aligned"], record["result"] = made.aligned, -1
    record["number"], record["next"] = number, site.next_block
    record["kind"] = COME if made.operation == "arrive" else SYNC


def _warpgroup(machine: Machine, record: Any, number: int, site: Site) -> None:
    """``wgmma`` but products of a sparse A."""
    instruction = site.instruction
    kind, operands = _GROUPS.get(instruction.parts[1], 0), instruction.operands
    record["address"] = record["operand"] = record["result"] = -1
    if kind == GROUP_WAIT and isinstance(operands[0], Immediate):
        record["constant"] = operands[0].value
    elif kind == GROUP_WAIT or (kind == PART and not _part(machine, record, instruction)):
        return
    record["number"], record["next"], record["kind"] = number, site.next_block, kind


def _part(machine: Machine, record: Any, instruction: Instruction) -> bool:
    slots = machine.code.slots
    _, a, b, scale = instruction.operands[:4]
    if instruction.parts[2] == "sp":
        return False
    for name, operand in (("address", a), ("operand", b)):
        slot = slots.get(operand.name) if isinstance(operand, Register) else None
        if slot is not None and slot.bits == 64:
            record[name] = slot.offset
        elif name == "operand" or not isinstance(operand, Vector):
            return False
    if isinstance(scale, Immediate):
        record["constant"] = scale.value & 1
        return True
    slot = slots.get(scale.name) if isinstance(scale, Register) else None
    if slot is None or not slot.is_predicate:
        return False
    record["result"] = slot.offset
    return True


def _address(machine: Machine, record: Any, form: Form, address: Operand) -> bool:
    if not isinstance(address, Address):
        return False
    base = address.base
    plus = address.offset if form.space else address.offset - SHARED_WINDOW
    if isinstance(base, Register):
        slot = machine.code.slots.get(base.name)
        if slot is None or slot.bits not in (32, 64) or (slot.bits == 32 and not form.space):
            return False
        record["address"], record["wide"] = slot.offset, slot.bits == 64
    elif machine.cluster_size > 1:  # the address of a symbol has the CTA's rank
        return False
    else:
        record["address"] = -1
        if isinstance(base, Symbol):
            plus += machine.symbols.places[base.name].address + base.offset
    record["plus"] = plus
    return True


def _operand(machine: Machine, record: Any, operand: Operand | None, kind: int) -> bool:
    found = (-1, 1) if operand is None and kind == ARRIVE else None if operand is None else _number(machine, operand)
    if found is not None:
        record["operand"], record["constant"] = found
    return found is not None


def _number(machine: Machine, operand: Operand | None) -> tuple[int, int] | None:
    """Where an operand of 32 bits is found in the register file, or -1 and what it is, 0 if there is none."""
    if operand is None:
        return -1, 0
    if isinstance(operand, Immediate) and operand.kind == "int":
        return -1, operand.value & 0xFFFFFFFF
    slot = machine.code.slots.get(operand.name) if isinstance(operand, Register) else None
    if slot is None or slot.bits != 32 or slot.is_predicate:
        return None
    return slot.offset, 1
