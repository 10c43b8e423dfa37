"""Fences between proxies: ``fence.proxy.*``. Source: PTX ISA, "fence.proxy".

All proxies of the simulator see memory alike, so these fences change nothing. They are told to the trace.
"""

from __future__ import annotations

from ptxdsl.sim.host import Group, handles


@handles("fence.proxy")
def fence(group: Group) -> None:
    instruction = group.instruction
    group.machine.event("fence", instruction.opcode, instruction.line)
