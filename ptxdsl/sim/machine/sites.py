"""The instructions at which compiled code may come back to the machine."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ptxdsl.ptx.module import Instruction
from ptxdsl.record import dataclass, field
from ptxdsl.sim.host import HANDLERS, Handler, handler_prefix

if TYPE_CHECKING:
    from ptxdsl.sim.translate.warp_code import Site as CodeSite


@dataclass(slots=True, eq=False)
class Site:
    """A host instruction, or one at which compiled code may stop: with its handler, if it has one. executed: by any
    lane, once at least."""

    instruction: Instruction
    next_block: int
    handler: Handler | None
    warp_barrier: bool = field(default=False)
    executed: bool = field(default=False)


def site_of(site: CodeSite) -> Site:
    """What the machine has of a site of compiled code."""
    opcode = site.instruction.opcode
    barrier = opcode.startswith(("bar.warp", "barrier.warp"))
    return Site(site.instruction, site.next_block, _handler(opcode), barrier)


@lru_cache(4096)
def _handler(opcode: str) -> Handler | None:
    prefix = handler_prefix(opcode)
    return HANDLERS[prefix] if prefix is not None else None
