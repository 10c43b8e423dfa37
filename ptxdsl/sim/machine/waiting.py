"""Who waits for what when nothing can move: one entry for each group of lanes and each asynchronous agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.ptx.module import Instruction
from ptxdsl.record import dataclass, field
from ptxdsl.sim.barriers.mbarrier import Barrier
from ptxdsl.sim.host import WaitsFor
from ptxdsl.sim.machine.cta import AgentEntity
from ptxdsl.sim.machine.faults import DIVERGENT
from ptxdsl.sim.machine.waits import GATHER, POLL, Blocked, lanes_text
from ptxdsl.sim.machine.warp import Warp
from ptxdsl.sim.machine.who import Entity, plural

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine


_READS = ("ld", "ldu", "atom", "mbarrier", "tex", "tld4", "suld", "multimem")


@dataclass(slots=True, eq=False)
class Waiting:
    """One group or agent that waits. lanes: 0 of an agent."""

    entity: Entity
    lanes: int
    instruction: Instruction
    waits: WaitsFor
    kind: str


@dataclass(slots=True, eq=False)
class Alike:
    """Those that wait at one instruction for the same."""

    first: Waiting
    members: list[Waiting] = field(default_factory=list)


def place(one: Waiting) -> tuple[int, int]:
    """For an order that no schedule has a part in: the CTA's number and the warp's."""
    return one.entity.cta.linear, one.entity.index if isinstance(one.entity, Warp) else 0


def all_waiting(machine: Machine) -> Iterable[Waiting]:
    for cluster in machine.resident.values():
        for entity in cluster.blocked:
            if isinstance(entity, AgentEntity):
                yield Waiting(entity, 0, entity.agent.origin, entity.agent.describe(), "agent")
                continue
            for blocked in entity.waits:
                yield Waiting(entity, blocked.mask, blocked.instruction, _describe(entity, blocked), blocked.kind)


def _describe(warp: Warp, blocked: Blocked) -> WaitsFor:
    if blocked.wait is not None:
        return blocked.wait.describe()
    if blocked.kind == POLL:
        # Of a loop without a host instruction it is known what it reads.
        if blocked.site < 0 and blocked.instruction.parts[0] not in _READS:
            return WaitsFor("nothing", "", "a loop that changes nothing has no end")
        held = blocked.watched.text(blocked.group.machine.memory) if blocked.watched is not None else ""
        held = f" ({held})" if held else ""
        return WaitsFor("memory", "", f"a loop that reads the same again and again{held}, and nobody writes any more")
    if blocked.kind == GATHER:
        missing = blocked.members & warp.live & ~blocked.mask
        return WaitsFor("lanes", lanes_text(missing).partition(" ")[2], "named in its member mask", by=(warp,))
    return WaitsFor(
        "lanes", lanes_text(warp.live & ~blocked.mask).partition(" ")[2], "as it needs the whole warp", by=(warp,)
    )


def divergent(machine: Machine, warp: Warp) -> Diagnostic:
    """E1180: lanes of a warp that wait for one another at different places."""
    first, *others = warp.waits
    missing = (first.members & warp.live if first.kind == GATHER else warp.live) & ~first.mask
    needs = f"names {lanes_text(first.members)}" if first.kind == GATHER else "needs all lanes of its warp"
    notes = [
        (machine.places.span(other.instruction), f"{lanes_text(other.mask)} wait at this '{other.instruction.opcode}'")
        for other in others
    ]
    return machine.places.diagnostic(
        DIVERGENT,
        f"'{first.instruction.opcode}' {needs}, but {lanes_text(missing)} will never come",
        first.instruction,
        warp,
        first.mask,
        "let all lanes reach the same instruction: move it out of the branch",
        tuple(notes),
    )


def alike_ones(waiting: list[Waiting]) -> list[Alike]:
    """Those who wait at one instruction for the same thing together."""
    groups: dict[object, Alike] = {}
    for one in sorted(waiting, key=place):
        waits = one.waits
        key = (one.instruction.line, waits.what, waits.place, waits.parity, waits.state, one.entity.unit)
        groups.setdefault(key, Alike(one)).members.append(one)
    return list(groups.values())


def name_of(waits: WaitsFor) -> str:
    """``mbarrier bars[3] (consumer_mbar of stage 0)``, ``bar.sync 1``."""
    return f"{waits.what} {waits.place}".strip()


def short_name(waits: WaitsFor) -> str:
    """The name that is good enough where the whole one stands nearby."""
    return f"mbarrier {waits.key.name}" if isinstance(waits.key, Barrier) else name_of(waits)


def lack_text(entities: Sequence[Entity], waits: WaitsFor) -> str:
    """What those have not done who are waited for."""
    if isinstance(entities[0], AgentEntity):
        return "is not done"
    has = "have" if plural(entities) else "has"
    if all(isinstance(entity, Warp) and not entity.live for entity in entities):
        return f"{has} exited"
    return f"{has} given none back" if waits.what == "registers" else f"{has} not come"


def what_text(one: Waiting) -> str:
    """The name with the parity and the state of what is waited for."""
    waits = one.waits
    parity = f", parity {waits.parity}" if waits.parity is not None else ""
    return name_of(waits) + parity + (f": {waits.state}" if waits.state else "")
