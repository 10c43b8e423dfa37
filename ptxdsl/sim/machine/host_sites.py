"""Which host instructions turns in host code can execute, as records (``layout.SITE``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxdsl.ptx.module import Address, Immediate, Operand, Register, Symbol
from ptxdsl.sim.barriers.mbarrier_instructions import Form, parsed
from ptxdsl.sim.layout import ARRIVE, EXPECT, FENCE, SHARED_WINDOW, TEST_WAIT, TRY_WAIT

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.sites import Site

_KINDS = {"mbarrier.arrive": ARRIVE, "mbarrier.try_wait": TRY_WAIT, "mbarrier.test_wait": TEST_WAIT}


def host_site(machine: Machine, record: Any, number: int, site: Site) -> None:
    """Fills the record of one site."""
    instruction = site.instruction
    kind = _KINDS.get(".".join(instruction.parts[:2]))
    if site.instruction.opcode.startswith("fence.proxy.async"):
        record["number"], record["next"], record["kind"] = number, site.next_block, FENCE
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
    record["operand"], record["constant"] = -1, 1
    if operand is None:
        return kind == ARRIVE
    if isinstance(operand, Immediate) and operand.kind == "int":
        record["constant"] = operand.value & 0xFFFFFFFF
        return True
    slot = machine.code.slots.get(operand.name) if isinstance(operand, Register) else None
    if slot is None or slot.bits != 32 or slot.is_predicate:
        return False
    record["operand"] = slot.offset
    return True
