"""Asynchronous stores and reductions of registers: ``st.async``, ``red.async``; and ``st.bulk``.

Source: PTX ISA, "st.async" and "red.async". Into shared memory of the cluster they tell an mbarrier of their bytes; the
forms for global memory have no completion that a program could see but the kernel's end.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Operand, Vector
from ptxdsl.record import dataclass
from ptxdsl.sim.barriers.mbarrier import Barriers, barriers_of, shared_address
from ptxdsl.sim.copies.bulk import is_elsewhere, signal
from ptxdsl.sim.copies.reductions import OPERATIONS, STORAGE, reduce
from ptxdsl.sim.copies.transfer import Transfer
from ptxdsl.sim.host import Group, handles
from ptxdsl.sim.layout import COUNT_LIMIT, RANK_SHIFT
from ptxdsl.sim.machine.timeline import copy_cycles
from ptxdsl.sim.machine.warp import lane_numbers

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Form:
    name: str
    space: str
    operation: str | None
    type: str


@lru_cache(256)
def form(opcode: str) -> Form:
    parts = opcode.split(".")
    operation = next((part for part in parts if part in OPERATIONS), None) if parts[0] == "red" else None
    space = next((part for part in parts if part in ("global", "shared::cluster")), "")
    return Form(".".join(parts[:2]), space, operation, parts[-1])


@handles("st.async", "red.async")
def store(group: Group) -> None:
    made = form(group.instruction.opcode)
    to, source, *rest = group.instruction.operands
    data = _values(group, source, made.type)
    targets = group.values(to, "u64")
    size = data.shape[1]
    machine, cta = group.machine, group.cta
    view = machine.memory.view
    space = made.space or "generic"
    barriers: list[int] = []
    if rest:
        space = "shared::cluster"
        targets = [shared_address(made.space, target) for target in targets]
        barriers = [shared_address(made.space, barrier) for barrier in group.values(rest[0], "u64")]
        for target, barrier in zip(targets, barriers, strict=True):
            if target >> RANK_SHIFT != barrier >> RANK_SHIFT:
                raise group.fault(
                    "E1152",
                    f"{made.name} to shared memory of the CTA of rank {target >> RANK_SHIFT} with an mbarrier in that "
                    f"of rank {barrier >> RANK_SHIFT}",
                    "both must be in the same CTA",
                )
    for target in targets:
        view(cta, space, target, size, write=True, align=size)
    table = barriers_of(machine, cta)
    for barrier in set(barriers):
        if barrier in table.live:
            group.touch(table.live[barrier])

    def write(time: int) -> None:
        machine.accesses(cta, space, np.array(targets, np.uint64), size, "reduce" if made.operation else "write")
        if made.operation is None and barriers and _written_at_once(table, cta, made, targets, data, barriers, time):
            return
        for number, target in enumerate(targets):
            there = view(cta, space, target, size, write=True)
            if made.operation is None:
                there[...] = data[number]
            else:
                storage = STORAGE[made.type]
                old, new = there.view(storage), data[number].view(storage)
                there[...] = reduce(made.operation, made.type, old, new).view(np.uint8)
            if barriers:
                table.spare(target, size, made.name)
                signal(table, cta, barriers[number], size, made.name, time)

    what = f"{size} bytes a lane"
    elsewhere = not rest or is_elsewhere(cta, targets)
    cycles = copy_cycles(size * len(targets))
    machine.start(Transfer("st.async", group, _nothing, write, cycles, what, not rest, elsewhere))


def _written_at_once(
    table: Barriers,
    cta: Cta,
    made: Form,
    targets: list[int],
    data: npt.NDArray[np.uint8],
    barriers: list[int],
    time: int,
) -> bool:
    """Lanes that write neighbouring bytes and tell one mbarrier do so together, if that is the same as one after
    another: nothing is written over, and no phase is complete before the last has told it."""
    size, barrier = data.shape[1], table.live.get(barriers[0])
    start, end = targets[0], targets[0] + data.size
    if barrier is None or barriers.count(barriers[0]) < len(barriers) or targets != list(range(start, end, size)):
        return False
    if not table.is_spare(start, data.size) or not (barrier.pending or 0 < data.size <= barrier.tx):
        return False
    if barrier.tx - data.size < -COUNT_LIMIT or cta.cluster.ctas[start >> RANK_SHIFT].exited:
        return False
    table.memory.view(cta, "shared::cluster", start, data.size, write=True)[...] = data.reshape(-1)
    signal(table, cta, barriers[0], data.size, made.name, time)
    return True


def _nothing() -> None:
    """The values were taken from registers when the instruction was executed."""


def _values(group: Group, operand: Operand, type: str) -> npt.NDArray[np.uint8]:
    """(active lanes, bytes)."""
    items = operand.items if isinstance(operand, Vector) else (operand,)
    columns = [group.read(item, type)[group.lanes] for item in items]
    return np.ascontiguousarray(np.stack(columns, axis=1)).view(np.uint8)


@handles("st.bulk")
def store_zeros(group: Group) -> None:
    """``st.bulk``: zeros in shared memory, at once. Source: PTX ISA, "st.bulk"."""
    to, size_operand, _ = group.instruction.operands
    space = "shared::cta" if "shared::cta" in group.instruction.parts else "generic"
    columns = group.values(to, "u64"), group.values(size_operand, "u64")
    for lane, target, size in zip(lane_numbers(group.mask), *columns, strict=True):
        group.only(1 << lane)
        if size % 8:
            raise group.fault("E1150", f"st.bulk of {size} bytes; the size must be a multiple of 8")
        barriers_of(group.machine, group.cta).spare(shared_address(space, target), size, "st.bulk")
        group.machine.memory.view(group.cta, space, target, size, write=True, align=8)[...] = 0
        group.machine.accesses(group.cta, space, target, size, "write")
