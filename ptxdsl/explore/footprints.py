"""Takes down what each turn of a run does (``steps``), from what the simulator tells."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.explore.steps import (
    ARRIVE,
    BEGIN,
    BLOCK,
    COME,
    DO,
    END,
    EXPECT,
    FATAL,
    JOIN,
    LEAVE,
    LOOK,
    TAKE,
    USE,
    WAIT,
    Access,
    Object,
    Operation,
    Part,
)
from ptxdsl.ptx.module import Immediate
from ptxdsl.races.accesses import LOAD, Key, Spaces, tensor_words
from ptxdsl.sim.barriers.mbarrier_faults import runs_ahead
from ptxdsl.sim.copies.transfer import BULK, CP_ASYNC, After, Transfer
from ptxdsl.sim.layout import COUNT_LIMIT, RANK_SHIFT
from ptxdsl.sim.matrix.warpgroup import WARPS
from ptxdsl.sim.matrix.wgmma import Product
from ptxdsl.sim.watch import How, Watch

if TYPE_CHECKING:
    from ptxdsl.sim.barriers.mbarrier import Barrier
    from ptxdsl.sim.host import Group
    from ptxdsl.sim.machine.cta import AgentEntity, Cta
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.warp import Warp

Array = npt.NDArray[Any]

_EXCLUSIVE = ("tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish")


class Groups:
    """Of one warp and kind: the work that is not committed, and that of each group."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.committed: deque[list[str]] = deque()


class Footprints(Watch):
    """parts: of the turn under way; ``take`` gives them and begins the next one. ran_ahead: whether it had an arrival
    in a phase that nobody has reached by waiting: who waits later may take one phase for another."""

    def begin(self, machine: Machine) -> None:
        self.machine = machine
        self.spaces: Spaces[Key] = Spaces(machine.memory, lambda key, size, own: key)
        self.parts: list[Part] = []
        self.ran_ahead = False
        self.touched: Object | None = None  # the barrier that the turn under way works on
        self.group: Group | None = None
        self.entity: AgentEntity | None = None
        self.cta: Cta | None = None
        self.groups: dict[tuple[Warp, str], Groups] = {}
        self.names: dict[object, str] = {}  # of asynchronous work
        self.products: dict[tuple[Cta, int], int] = {}  # of a warpgroup, those that are carried out
        self.issued_products: dict[Warp, int] = {}

    def take(self) -> list[Part]:
        parts, self.parts = [part for part in self.parts if part], []
        self.touched, self.ran_ahead = None, False
        return parts

    def fault(self) -> list[Part]:
        """What the turn under way, which has ended in a fault, depends on."""
        if self.touched is None:
            return [FATAL]
        self._do(self.touched, END)
        return [part for part in self.parts if part]

    def _part(self) -> Part:
        if not self.parts:
            self.parts.append(Part())
        return self.parts[-1]

    def _do(
        self, object: Object, name: str, phase: int = 0, blocks: bool = True, count: int = 0, room: int = 0
    ) -> None:
        self._part().operations.append(Operation(object, name, phase, blocks, count, room))

    # Memory

    def ran(self, warp: Warp) -> None:
        self.parts.append(Part())
        self.cta = warp.cta
        log = self.machine.log
        records = log.take() if log is not None else None
        if records is None:
            return
        for piece in self.spaces.pieces(warp.cta, records):
            self._access(piece.cells, piece.starts, piece.size, piece.kind != LOAD)

    def _access(self, key: Key, starts: int | Array, size: int, write: bool) -> None:
        if isinstance(starts, int):
            bytes: Array = np.arange(starts, starts + size)
        else:
            bytes = (starts[:, None] + np.arange(size)).reshape(-1)
        self._part().accesses.append(Access(key, bytes, write))
        if key[0] != "global" and self.cta is not None and key[1] != self.cta.linear:
            self._do(("exit", key[1]), COME)

    def touches(self, cta: Cta, space: str, starts: int | Array, size: int, how: How) -> None:
        for key, offsets in self.spaces.places(cta, space, starts, size):
            self._access(key, offsets, size, how != "read")

    def tensor(self, cta: Cta, lanes: int, first: int, end: int, how: How) -> None:
        self._access(self.spaces.tensor(cta), tensor_words(lanes, first, end), 1, how != "read")

    # Who

    def stands(self, group: Group) -> None:
        self.parts.append(Part())
        self.group, self.entity, self.cta = group, None, group.cta
        opcode = group.instruction.opcode
        if opcode.startswith("wgmma.mma_async"):
            number = self._issued_part(group)
            self._do(("product", group.cta.linear, group.warp.index // WARPS, number), COME)
        elif opcode.startswith(_EXCLUSIVE):
            self._do((".".join(group.instruction.parts[:1]), group.cta.cluster.index), USE)
        elif opcode.startswith(("bar.", "barrier.")) and not opcode.startswith("barrier.cluster"):
            at = group.instruction.operands[1 if "red" in group.instruction.parts else 0]
            self.touched = "bar", group.cta.linear, group.values(at, "u32")[0]

    def _issued_part(self, group: Group) -> int:
        warpgroup = group.cta.states.get(("wgmma", group.warp.index // WARPS))
        number: int = warpgroup.issued[group.warp.index % WARPS] if warpgroup is not None else 0
        self.issued_products[group.warp] = number + 1
        return number

    def turn(self, entity: AgentEntity) -> None:
        self.parts.append(Part())
        self.group, self.entity, self.cta = None, entity, entity.cta
        agent = entity.agent
        if isinstance(agent, Product):
            key = (entity.cta, agent.warpgroup.index)
            number = self.products.get(key, 0)
            self.products[key] = number + 1
            self._do(("product", entity.cta.linear, agent.warpgroup.index, number), LEAVE)
            self._do(("product", entity.cta.linear, agent.warpgroup.index, number, "done"), DO)
            return
        reading = isinstance(agent, Transfer) and not agent.read_done
        self._do(("work", entity.name, "read" if reading else "done"), DO)
        if entity.unit == "tcgen05":
            self._do(("pipe", entity.cta.linear), DO)
        if isinstance(agent, After):
            for transfer in agent._transfers:
                self._do(("work", self.names[transfer], "done"), JOIN)
        if not getattr(agent, "harmless_at_exit", False):
            self._do(("exit", entity.cta.linear), COME)

    def issued(self, entity: AgentEntity) -> None:
        agent, group = entity.agent, self.group
        self.names[agent] = entity.name
        if not isinstance(agent, Transfer) or group is None:
            return
        if entity.unit == "cp.async":
            self._groups(group.warp, CP_ASYNC).open.append(entity.name)
        elif agent.leaves and entity.unit == "tma":
            self._groups(group.warp, BULK).open.append(entity.name)

    def _groups(self, warp: Warp, kind: str) -> Groups:
        found = self.groups.get((warp, kind))
        if found is None:
            found = self.groups[warp, kind] = Groups()
        return found

    # Groups of asynchronous work

    def executed(self, group: Group) -> None:
        parts = group.instruction.parts
        if parts[0] == "cp" and len(parts) > 2:
            self._copies(group, parts)
        elif parts[0] == "wgmma":
            self._wgmma(group, parts[1])

    def _copies(self, group: Group, parts: tuple[str, ...]) -> None:
        bulk = parts[2] == "bulk"
        what = parts[3] if bulk and len(parts) > 3 else parts[2]
        if what not in ("commit_group", "wait_group", "wait_all"):
            return
        groups = self._groups(group.warp, BULK if bulk else CP_ASYNC)
        if what != "wait_group":
            groups.committed.append(groups.open)
            groups.open = []
        if what == "commit_group":
            return
        keep = _kept(group) if what == "wait_group" else 0
        reads = parts[-1] == "read"
        for names in list(groups.committed)[: max(len(groups.committed) - keep, 0)]:
            for name in names:
                self._do(("work", name, "read"), JOIN)
                if not reads:
                    self._do(("work", name, "done"), JOIN)
            if not reads:
                groups.committed.popleft()

    def _wgmma(self, group: Group, what: str) -> None:
        groups = self._groups(group.warp, "wgmma")
        if what == "commit_group":
            groups.committed.append([str(self.issued_products.get(group.warp, 0))])
        elif what == "wait_group":
            keep = _kept(group)
            while len(groups.committed) > keep:
                (last,) = groups.committed.popleft()
                if int(last):
                    key = ("product", group.cta.linear, group.warp.index // WARPS, int(last) - 1, "done")
                    self._do(key, JOIN)

    # mbarriers

    def _key(self, barrier: Barrier) -> Object:
        cta = self.cta
        assert cta is not None
        owner = cta.cluster.ctas[barrier.address >> RANK_SHIFT]
        if owner is not cta:
            self._do(("exit", owner.linear), COME)
        return "mbarrier", owner.linear, barrier.address

    def initialised(self, barrier: Barrier) -> None:
        self._do(self._key(barrier), BEGIN)

    def invalidated(self, barrier: Barrier) -> None:
        self._do(self._key(barrier), END)

    def used(self, barrier: Barrier) -> None:
        self.touched = self._key(barrier)
        group = self.group
        if group is None:
            return
        parts = group.instruction.parts
        if parts[1] == "expect_tx":
            self._do(self._key(barrier), EXPECT, barrier.phase)
        elif parts[1] == "test_wait":
            self._do(self._key(barrier), LOOK, barrier.phase)
        elif parts[1] == "try_wait":  # unless it passes: ``saw``
            self._do(self._key(barrier), BLOCK, barrier.phase)

    def arrives(self, barrier: Barrier, count: int) -> None:
        drops = self.group is not None and "arrive_drop" in self.group.instruction.parts
        room = barrier.pending - count
        self._do(self._key(barrier), ARRIVE, barrier.phase, count=COUNT_LIMIT if drops else count, room=room)
        if runs_ahead(barrier):
            self.ran_ahead = True
            self._do(self._key(barrier), END)

    def saw(self, group: Group, barrier: Barrier) -> None:
        key = self._key(barrier)
        part = self._part()
        part.operations = [o for o in part.operations if o.object != key or o.name != BLOCK]
        self._do(key, WAIT, barrier.phase - 1, group.instruction.parts[1] == "try_wait", barrier.expected)

    # Barriers of CTAs and clusters

    def comes(self, group: Group, meeting: object, generation: int) -> None:
        self._do(self._meeting(group, meeting), COME, generation)

    def leaves(self, group: Group, meeting: object, generation: int) -> None:
        self._do(self._meeting(group, meeting), LEAVE, generation)

    def takes_registers(self, cta: Cta, count: int, left: int) -> None:
        self._do(("registers", cta.linear), TAKE, count=count, room=left)

    @staticmethod
    def _meeting(group: Group, meeting: object) -> Object:
        number = getattr(meeting, "id", None)
        return ("bar", group.cta.linear, number) if number is not None else ("cluster", group.cta.cluster.index)

    # Ends

    def exited(self, cta: Cta) -> None:
        self._do(("exit", cta.linear), END)


def _kept(group: Group) -> int:
    """How many groups a wait_group instruction leaves under way."""
    (operand, *_) = group.instruction.operands
    assert isinstance(operand, Immediate)
    return operand.value
