"""Arrivals that an mbarrier does not expect, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.diagnostics import counted
from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.host import Fault
from ptxdsl.sim.machine.warn import warn
from ptxdsl.sim.machine.warp import Warp
from ptxdsl.sim.machine.who import entities_text

if TYPE_CHECKING:
    from ptxdsl.sim.barriers.mbarrier import Barrier

AHEAD = "W1196"

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


def runs_ahead(barrier: Barrier) -> bool:
    """Whether an arrival now would be in a phase that nobody can have reached by waiting."""
    return barrier.seen + 1 < barrier.phase


def ahead(barrier: Barrier) -> None:
    """An arrival that runs ahead. It counts for this phase (PTX ISA, "Phase of the
    mbarrier object": when one is complete the next begins), and is warned of, for it is rarely meant. Raises Fault for
    a RolePipeline's barrier, on whose phases each side waits in turn."""
    fault = Fault(
        "E1134" if barrier.role else AHEAD,
        f"an arrival in phase {barrier.phase} of the mbarrier {barrier.place}, though nobody has waited for phase "
        f"{barrier.phase - 1}, which is complete; it was initialised with "
        f"{counted(barrier.initial, 'arrival')} per phase",
        "more arrivals come than a phase has, or an arrival is made before the wait that must go before it",
        barrier.history(with_phase_before=True) + _waited_again(barrier),
    )
    if barrier.role:
        raise fault
    machine, origin = barrier.table.machine, arriving(barrier)
    if machine is not None and origin is not None:
        warn(machine, barrier.cluster.ctas[barrier.rank], fault, origin)


def arriving(barrier: Barrier) -> Instruction | None:
    """By which instruction whoever has the turn now works on a barrier, as far as that is known."""
    machine = barrier.table.machine
    who = machine.current if machine is not None else None
    if machine is None or who is None:
        return None
    return machine.touches.get(barrier, {}).get(who) if isinstance(who, Warp) else who.agent.origin


def _waited_again(barrier: Barrier) -> list[tuple[Instruction, str]]:
    """If whoever arrives has come here past a wait for a phase that it had waited for before."""
    machine = barrier.table.machine
    who = machine.current if machine is not None else None
    if machine is None or not isinstance(who, Warp) or AGAIN not in who.states:
        return []
    other, phase, at = who.states[AGAIN]
    name = entities_text([who], machine.cta_count == 1)
    return [(at, f"{name} passed this wait on phase {phase} of {other.name}, for which it had waited before")]
