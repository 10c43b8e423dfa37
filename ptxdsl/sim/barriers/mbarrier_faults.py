"""Arrivals that an mbarrier does not expect, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.diagnostics import counted
from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.host import Fault
from ptxdsl.sim.machine.warp import Warp
from ptxdsl.sim.machine.who import entities_text

if TYPE_CHECKING:
    from ptxdsl.sim.barriers.mbarrier import Barrier

AGAIN = "waited for a phase again"  # a warp's state: the barrier, the phase, the wait


def too_many(barrier: Barrier, lanes: int, count: int) -> Fault:
    """``lanes`` arrive, ``count`` times each, where fewer arrivals are pending."""
    who = f"{lanes} lanes arrive" if lanes > 1 and count == 1 else f"an arrival of {lanes * count}"
    if lanes > 1 and count > 1:
        who = f"{lanes} lanes arrive, each {count} times,"
    every = f"initialised with {counted(barrier.initial, 'arrival')} per phase"
    if barrier.expected != barrier.initial:
        every += f", {barrier.expected} after arrive_drop"
    left = f"{barrier.pending} of {counted(barrier.expected, 'arrival')}" if barrier.pending else "no arrival"
    return Fault(
        "E1134",
        f"{who} on the mbarrier {barrier.place}, where {left} {'is' if barrier.pending < 2 else 'are'} pending in "
        f"phase {barrier.phase} ({every})",
        "let one lane arrive, or initialise the barrier with the number of arrivals that a phase gets",
        barrier.history(),
    )


def ahead(barrier: Barrier) -> Fault:
    """An arrival in a phase that nobody can have reached by waiting."""
    return Fault(
        "E1134",
        f"an arrival in phase {barrier.phase} of the mbarrier {barrier.place}, though nobody has waited for phase "
        f"{barrier.phase - 1}, which is complete; it was initialised with "
        f"{counted(barrier.initial, 'arrival')} per phase",
        "more arrivals come than a phase has, or an arrival is made before the wait that must go before it",
        barrier.history(with_phase_before=True) + _waited_again(barrier),
    )


def _waited_again(barrier: Barrier) -> list[tuple[Instruction, str]]:
    """If whoever arrives has come here past a wait for a phase that it had waited for before."""
    machine = barrier.table.machine
    who = machine.current if machine is not None else None
    if machine is None or not isinstance(who, Warp) or AGAIN not in who.states:
        return []
    other, phase, at = who.states[AGAIN]
    name = entities_text([who], machine.cta_count == 1)
    return [(at, f"{name} passed this wait on phase {phase} of {other.name}, for which it had waited before")]
