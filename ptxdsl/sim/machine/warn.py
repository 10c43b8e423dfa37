"""Warnings of a run: what a program may do and is hardly meant. One an instruction; the run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.ptx.module import Instruction
from ptxdsl.record import replace
from ptxdsl.sim.host import Fault
from ptxdsl.sim.machine.faults import cta_text

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.machine import Machine


def warn(machine: Machine, cta: Cta, fault: Fault, origin: Instruction) -> None:
    """origin: the instruction to blame."""
    message = f"{fault.message} ({cta_text(cta)} of kernel '{machine.program.kernel.name}')"
    add(machine, machine.places.diagnostic(fault.code, message, origin, help=fault.help, at=fault.notes))


def add(machine: Machine, found: Diagnostic) -> None:
    if all((known.code, known.span) != (found.code, found.span) for known in machine.warnings):
        machine.warnings.append(replace(found, severity="warning"))
