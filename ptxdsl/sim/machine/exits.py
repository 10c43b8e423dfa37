"""What a CTA leaves behind when its last thread exits: what is a fault then, and what a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.sim.host import EXIT_CHECKS, EXIT_WARNINGS, Fault
from ptxdsl.sim.machine.cta import AgentEntity, Cta
from ptxdsl.sim.machine.faults import IN_FLIGHT, STRAY, SimulationFault, cta_text
from ptxdsl.sim.machine.waits import lanes_text
from ptxdsl.sim.machine.warn import add, warn
from ptxdsl.sim.machine.warp import Warp

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine


def check_exit(machine: Machine, cta: Cta) -> None:
    """Raises SimulationFault for what a family of instructions does not allow to be left (``host.EXIT_CHECKS``)."""
    for check in EXIT_CHECKS:
        found = check(machine, cta)
        if found is not None:
            fault, origin = found
            message = f"{fault.message} ({cta_text(cta)} of kernel '{machine.program.kernel.name}')"
            places = machine.places
            raise SimulationFault(places.diagnostic(fault.code, message, origin, help=fault.help, at=fault.notes))


def warn_at_exit(machine: Machine, cta: Cta) -> None:
    """Adds warnings, one an instruction: of work that nobody has waited for, and those of ``host.EXIT_WARNINGS``."""
    if cta.agents:
        _warn_in_flight(machine, cta)
    for warp in cta.warps:
        if warp.stray_site:
            warn(machine, cta, _stray(warp), machine.sites[warp.stray_site - 1].instruction)
    for look in EXIT_WARNINGS:
        for fault, origin in look(machine, cta):
            warn(machine, cta, fault, origin)


def _stray(warp: Warp) -> Fault:
    """A shuffle's source must be there and take part: else what it gives is undefined."""
    get = "gets" if warp.stray_lanes.bit_count() == 1 else "get"
    return Fault(
        STRAY,
        f"{lanes_text(warp.stray_lanes)} of warp {warp.index} {get} the value of a lane that does not take part in the "
        "shuffle: it is undefined",
        "let all lanes that are read come to the shuffle, also those that have nothing to do else",
    )


def _warn_in_flight(machine: Machine, cta: Cta) -> None:
    """On the card the CTA's shared memory may be another's by then."""
    for entity in _agents(machine, cta):
        if entity.agent.harmless_at_exit:
            continue
        found = machine.places.diagnostic(
            IN_FLIGHT,
            f"{cta_text(cta)} exited while its {entity.unit} operation was under way",
            entity.agent.origin,
            help="wait for its completion before the last thread exits",
        )
        add(machine, found)


def _agents(machine: Machine, cta: Cta) -> list[AgentEntity]:
    """Those of a CTA that are under way."""
    entities = [*cta.cluster.blocked, *machine.picker.waiting()]
    return [entity for entity in entities if isinstance(entity, AgentEntity) and entity.cta is cta]
