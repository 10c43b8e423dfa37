"""Who has brought what to an mbarrier in a phase, and where: for the reports of those who wait for more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.diagnostics import counted
from ptxdsl.ptx.module import Instruction
from ptxdsl.record import dataclass, field
from ptxdsl.sim.machine.cta import AgentEntity
from ptxdsl.sim.machine.who import Entity, entities_text

if TYPE_CHECKING:
    from ptxdsl.sim.barriers.mbarrier import Barrier


@dataclass(slots=True, eq=False)
class Share:
    """What one instruction brought. by: the warps that executed it and the asynchronous work that it started, with the
    arrivals of each. expected, came: bytes."""

    origin: Instruction
    by: dict[Entity, int] = field(default_factory=dict)
    expected: int = 0
    came: int = 0

    @property
    def arrivals(self) -> int:
        return sum(self.by.values())


class Ledger:
    """Of one phase. shares: in the order in which they began."""

    __slots__ = ("shares",)

    def __init__(self) -> None:
        self.shares: dict[Instruction, Share] = {}

    def add(self, who: Entity, origin: Instruction, arrivals: int, expected: int, came: int) -> None:
        share = self.shares.get(origin)
        if share is None:
            share = self.shares[origin] = Share(origin)
        share.by[who] = share.by.get(who, 0) + arrivals
        share.expected += expected
        share.came += came

    def arrivals_of(self, who: Entity) -> int:
        return sum(share.by.get(who, 0) for share in self.shares.values())

    @property
    def arrivals(self) -> int:
        return sum(share.arrivals for share in self.shares.values())

    @property
    def expected(self) -> int:
        return sum(share.expected for share in self.shares.values())

    @property
    def came(self) -> int:
        return sum(share.came for share in self.shares.values())


def share_text(barrier: Barrier, share: Share, phase: int, alone: bool) -> str:
    """``warps 1, 5 arrived on bars[3] here in phase 0, 2 arrivals``."""
    who = entities_text(share.by, alone)
    agents = any(isinstance(entity, AgentEntity) for entity in share.by)
    what = []
    if share.arrivals and share.arrivals != len(share.by):
        what.append(f"{share.arrivals} arrivals")
    if share.expected:
        what.append(f"{share.expected} bytes expected")
    amounts = f" ({', '.join(what)})" if what else ""
    if share.came:
        times = f" by {len(share.by)} copies" if agents and len(share.by) > 1 else ""
        return f"{share.came} bytes came to {barrier.name} from here in phase {phase}{times}"
    if share.arrivals:
        return f"{who} arrived on {barrier.name} here in phase {phase}{amounts}"
    return f"{who} announced bytes on {barrier.name} here in phase {phase}{amounts}"


def history(barrier: Barrier, alone: bool, with_phase_before: bool = False) -> list[tuple[Instruction, str]]:
    """Where a barrier began its life, and what has come in the phase under way."""
    notes = [(barrier.origin, origin_text(barrier))]
    phases = [(barrier.phase, barrier.ledger)]
    if with_phase_before and barrier.before is not None:
        phases.insert(0, (barrier.phase - 1, barrier.before))
    for phase, ledger in phases:
        notes += [(share.origin, share_text(barrier, share, phase, alone)) for share in ledger.shares.values()]
    return notes


def origin_text(barrier: Barrier) -> str:
    count = counted(barrier.initial, "arrival")
    dropped = f", {barrier.expected} after arrive_drop" if barrier.expected != barrier.initial else ""
    return f"{barrier.name} is initialised here with {count} per phase{dropped}"
